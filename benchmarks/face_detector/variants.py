# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""One loss, many ways to compute it over pictures with varying numbers of boxes.

A variant is a collate function, which lays out the true boxes of a batch, and a loss over the
predictions and what was collated. All mean the same: prediction k of a picture is paired with its
k-th true box, and the losses 1 - GIoU of all pairs are summed and divided by their number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from boxloss.torch import collate_padded, collate_ragged, giou_loss
from torch import Tensor

EPS = 1e-5

Targets = tuple[Tensor, ...]
CollateBoxes = Callable[[list[Tensor], int], Targets]  # (an (n, 4) tensor a picture, slots)
Loss = Callable[..., Tensor]  # (predictions (B, slots, 4), *targets) -> scalar


class UnavailableError(Exception):
    """Says why a peer cannot run here."""


@dataclass(frozen=True)
class Variant:
    summary: str
    collate: CollateBoxes
    load: Callable[[], Loss]  # raises UnavailableError
    slow_to_start: bool = False  # left out at a small scale, unless asked for by name


# The eager formula


def giou(pred: Tensor, target: Tensor) -> Tensor:
    """GIoU of floating-point boxes; uint8 ones must be cast first, for their areas would wrap."""
    px1, py1, px2, py2 = pred.unbind(-1)
    tx1, ty1, tx2, ty2 = target.unbind(-1)
    width = torch.minimum(px2, tx2) - torch.maximum(px1, tx1)
    height = torch.minimum(py2, ty2) - torch.maximum(py1, ty1)
    overlap = torch.where((width > 0) & (height > 0), width * height, 0.0)
    areas = (px2 - px1) * (py2 - py1) + (tx2 - tx1) * (ty2 - ty1)
    union = (areas - overlap).clamp(min=EPS)
    outer_width = torch.maximum(px2, tx2) - torch.minimum(px1, tx1)
    outer_height = torch.maximum(py2, ty2) - torch.minimum(py1, ty1)
    enclosing = (outer_width * outer_height).clamp(min=EPS)
    return overlap / union - (enclosing - union) / enclosing


# How the true boxes are laid out


def as_list(boxes: list[Tensor], slots: int) -> Targets:
    return tuple(boxes)


def padded(boxes: list[Tensor], slots: int) -> Targets:
    target, _ = collate_padded(boxes, slots)
    return (target,)


def padded_with_lengths(boxes: list[Tensor], slots: int) -> Targets:
    return tuple(collate_padded(boxes, slots))


def ragged(boxes: list[Tensor], slots: int) -> Targets:
    return tuple(collate_ragged(boxes))


# The losses


def loop_loss(pred: Tensor, *boxes: Tensor) -> Tensor:
    total = torch.zeros((), device=pred.device)
    for guesses, truths in zip(pred, boxes, strict=True):
        total = total + (1 - giou(guesses[: len(truths)].float(), truths.float())).sum()
    return total / max(sum(map(len, boxes)), 1)


def concatenated_loss(pred: Tensor, *boxes: Tensor) -> Tensor:
    guesses = torch.cat([row[: len(truths)] for row, truths in zip(pred, boxes, strict=True)])
    truths = torch.cat(boxes)
    return (1 - giou(guesses.float(), truths.float())).sum() / max(len(truths), 1)


def masked_loss(pred: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
    counts = _counts(pred, lengths)
    # Both selections are needed: the first keeps garbage in unused slots out of the gradient (a
    # zero there times NaN is NaN), the second keeps the unused slots' losses out of the sum.
    guesses = torch.where(counts[..., None], pred.float(), 0.0)
    losses = torch.where(counts, 1 - giou(guesses, target.float()), 0.0)
    return losses.sum() / lengths.sum().clamp(min=1)


def load_compiled() -> Loss:
    return torch.compile(masked_loss, dynamic=False)


def load_torchvision() -> Loss:
    try:
        from torchvision.ops import generalized_box_iou_loss
    except ImportError as error:
        raise UnavailableError(f"torchvision is not installed ({error})") from error
    except RuntimeError as error:  # how a torchvision made for another torch build fails
        raise UnavailableError(f"torchvision does not fit this PyTorch ({error})") from error

    def torchvision_loss(pred: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
        counts = _counts(pred, lengths)
        # torchvision adds its eps instead of clamping. Its default of 1e-7 vanishes beside the
        # areas of true boxes, which are one pixel or more; EPS would not.
        total = generalized_box_iou_loss(
            pred[counts].float(), target[counts].float(), reduction="sum"
        )
        return total / lengths.sum().clamp(min=1)

    return torchvision_loss


def fused_padded_loss(pred: Tensor, target: Tensor) -> Tensor:
    return giou_loss(pred, target, zero_padded=True, eps=EPS, eps_mode="clamp")


def fused_lengths_loss(pred: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
    return giou_loss(pred, target, lengths=lengths, eps=EPS, eps_mode="clamp")


def fused_ragged_loss(pred: Tensor, flat: Tensor, offsets: Tensor) -> Tensor:
    return giou_loss(pred, flat, offsets=offsets, eps=EPS, eps_mode="clamp")


def _counts(pred: Tensor, lengths: Tensor) -> Tensor:
    """(B, slots): which predictions have a true box."""
    return torch.arange(pred.shape[1], device=pred.device) < lengths[:, None]


BASELINE = "loop"

VARIANTS = {
    "loop": Variant("eager, one loss for each picture", as_list, lambda: loop_loss),
    "concat": Variant("eager, all true boxes concatenated", as_list, lambda: concatenated_loss),
    "mask": Variant("eager, padded and masked", padded_with_lengths, lambda: masked_loss),
    "torchvision": Variant(
        "torchvision's loss, padded, boolean mask", padded_with_lengths, load_torchvision
    ),
    "compile": Variant(
        "torch.compile of mask", padded_with_lengths, load_compiled, slow_to_start=True
    ),
    "fused-padded": Variant(
        "boxloss, all-zero targets are padding", padded, lambda: fused_padded_loss
    ),
    "fused-lengths": Variant(
        "boxloss, boxes for each picture given", padded_with_lengths, lambda: fused_lengths_loss
    ),
    "fused-ragged": Variant("boxloss, flat boxes and offsets", ragged, lambda: fused_ragged_loss),
}
