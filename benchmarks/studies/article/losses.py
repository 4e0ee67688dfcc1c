# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The article's own losses, operator by operator: means of GIoU, which training would maximise.

They compute in the dtypes that they are given. Of uint8 boxes the areas wrap modulo 256, and of
bfloat16 predictions even the number of boxes is rounded.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from ...common.losses import EPS, Loss
from ...common.nvcc import load_operators

SOURCE = Path(__file__).with_name("giou.cu")
SLOTS = 256  # the threads of a block, one for each slot of an image


def printed_giou(one: Tensor, other: Tensor) -> Tensor:
    """As it is printed."""
    one_area = (one[..., 2] - one[..., 0]) * (one[..., 3] - one[..., 1])
    other_area = (other[..., 2] - other[..., 0]) * (other[..., 3] - other[..., 1])
    near_corner = torch.max(one[..., :2], other[..., :2])
    far_corner = torch.min(one[..., 2:], other[..., 2:])
    sides = (far_corner - near_corner).clamp(min=0)
    overlap = sides[..., 0] * sides[..., 1]
    union = one_area + other_area - overlap
    iou = overlap / union.clamp(EPS)
    outer_near_corner = torch.min(one[..., :2], other[..., :2])
    outer_far_corner = torch.max(one[..., 2:], other[..., 2:])
    outer_sides = (outer_far_corner - outer_near_corner).clamp(min=0)
    enclosing = (outer_sides[..., 0] * outer_sides[..., 1]).clamp(EPS)
    return iou - (enclosing - union) / enclosing


def loop(pred: Tensor, *boxes: Tensor) -> Tensor:
    """Image by image."""
    total = torch.zeros((), device=pred.device)
    for guesses, truths in zip(pred, boxes, strict=True):
        if len(truths):
            total = total + printed_giou(guesses[: len(truths)], truths).sum()
    return total / max(sum(map(len, boxes)), 1)


def concat(pred: Tensor, *boxes: Tensor) -> Tensor:
    """All true boxes of the batch at once."""
    guesses = torch.cat([row[: len(truths)] for row, truths in zip(pred, boxes, strict=True)])
    return printed_giou(torch.cat(boxes), guesses).sum() / max(len(guesses), 1)


def mask(pred: Tensor, target: Tensor) -> Tensor:
    """All slots, those without a true box times 0."""
    valid = (target[..., 3] > 0).to(pred.dtype)
    count = valid.sum()
    return (printed_giou(target, pred) * valid).sum() / count.clamp(1)


class Kernels:
    """Its kernels, after two casts, which are Python's, and before three reductions by torch. They
    have no backward."""

    def __init__(self, device: torch.device) -> None:
        load_operators(SOURCE, device)
        self.gious, self.mean = torch.ops.article.gious, torch.ops.article.mean

    def loss(self, clamps: bool, branch: bool) -> Loss:
        return partial(on_float, partial(torch.ops.article.loss, clamps=clamps, branch=branch))


def load_printed(source: Path, device: torch.device) -> Loss:
    """A text of the article's operator, in a namespace of its own, since each defines the same."""
    namespace = f"printed_{source.stem}"
    torch.library.define(f"{namespace}::giou_loss", "(Tensor a, Tensor b) -> Tensor")
    load_operators(source, device, f"-Dextension_cpp={namespace}")
    return partial(on_float, getattr(torch.ops, namespace).giou_loss)


def on_float(loss: Loss, pred: Tensor, target: Tensor) -> Tensor:
    return loss(*cast(pred, target))


def cast(pred: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    return pred.float(), target.float()
