# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""One loss, three ways to compute it.

All have the same predictions (B, 256, 4), and true boxes that each belong to a cell: 1 - GIoU of
every pair, divided by their number in the batch. A variant is how a data loader lays out the
pairs, and the loss.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from boxloss.torch import collate_padded, giou_loss
from torch import Tensor

from ..common.losses import EPS, Loss, giou, masked_loss
from .model import CELLS
from .pictures import Assigned

Targets = tuple[Tensor | list[int], ...]  # tensors go to the device, lists stay on the host
LayOut = Callable[[Sequence[Assigned]], Targets]

SLOWEST, EAGER, FUSED = "loop", "padded", "ragged"


@dataclass(frozen=True)
class Variant:
    summary: str
    lay_out: LayOut
    loss: Loss


# How the pairs are laid out


def positions(pairs: Sequence[Assigned]) -> Tensor:
    """Each box's row among all predictions of the batch."""
    return torch.cat([cells + image * CELLS**2 for image, (_, cells) in enumerate(pairs)])


def by_image(pairs: Sequence[Assigned]) -> Targets:
    boxes, cells = zip(*pairs, strict=True)
    return torch.cat(boxes), torch.cat(cells), list(map(len, boxes))


def padded(pairs: Sequence[Assigned]) -> Targets:
    boxes, cells = (list(each) for each in zip(*pairs, strict=True))
    target, lengths = collate_padded(boxes)
    where = torch.nn.utils.rnn.pad_sequence(cells, batch_first=True)
    return target, where, lengths


def by_index(pairs: Sequence[Assigned]) -> Targets:
    return torch.cat([boxes for boxes, _ in pairs]), positions(pairs).int()


# The losses


def loop_loss(pred: Tensor, flat: Tensor, cells: Tensor, counts: list[int]) -> Tensor:
    total = torch.zeros((), device=pred.device)
    for row, where, truths in zip(pred, cells.split(counts), flat.split(counts), strict=True):
        guesses = row.index_select(0, where)
        total = total + (1 - giou(guesses, truths.float())).sum()
    return total / max(len(flat), 1)


def padded_loss(pred: Tensor, target: Tensor, cells: Tensor, lengths: Tensor) -> Tensor:
    guesses = pred.gather(1, cells[..., None].expand(-1, -1, 4))
    return masked_loss(guesses, target, lengths)


def ragged_loss(pred: Tensor, flat: Tensor, index: Tensor) -> Tensor:
    return giou_loss(pred, flat, pred_index=index, eps=EPS, eps_mode="clamp")


VARIANTS = {
    FUSED: Variant("boxloss, by index", by_index, ragged_loss),
    EAGER: Variant("eager, padded", padded, padded_loss),
    SLOWEST: Variant("eager, in a loop", by_image, loop_loss),
}
