# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What the examples take from boxloss, by the same names, in plain torch.

Written with care: each box meets its own, all layers at once, and nobody waits for the device but
for the cost, which SciPy wants, and for which of YOLO's anchors are foreground.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from boxloss.torch import collate_ragged
from torch import Tensor
from torch.nn import functional

from ..common.losses import scipy_assignment
from ..matched_pairs.variants import giou_of
from ..matcher import formulas
from ..matcher.cases import Cost

EPS = 1e-7
Operators = Mapping[str, Callable[..., Any]]


def operators(counts: tuple[int, ...], compiled: bool = False) -> Operators:
    """For images that have `counts` true boxes."""
    match = partial(hungarian_match, counts=counts)
    found = {
        "collate_ragged": collate_ragged,  # one cat and one copy
        "matching_cost": partial(matching_cost, most=max(counts), fused=compiled),
        "hungarian_match": match,
        "box_losses": box_losses,
        "box_loss": box_loss,
        "giou_loss": giou_loss,
        "ciou_loss": ciou_loss,
    }
    return with_eager_host(found) if compiled else found


def with_eager_host(found: Operators) -> Operators:
    """With what is nothing to compile left out of the graphs: it builds lists, or is SciPy."""
    names = ("collate_ragged", "hungarian_match")
    return {**found, **{name: torch.compiler.disable(found[name]) for name in names}}


# DETR


def matching_cost(
    boxes: Tensor,
    true_boxes: Tensor,
    offsets: Tensor,
    *,
    logits: Tensor,
    labels: Tensor,
    most: int,
    fused: bool,
    iou_weight: float,
    l1_weight: float,
    class_weight: float,
    class_mode: str = "softmax",
    **ignored: Any,
) -> Tensor:
    """(layers, images, queries, most): each image's true boxes are padded."""
    rows = offsets[:-1, None] + torch.arange(most, device=offsets.device)
    rows = rows.clamp(max=len(true_boxes) - 1)
    cost = Cost("giou", iou_weight, l1_weight, class_weight, class_mode)
    return formulas.padded_cost(
        boxes.detach(), logits.detach(), true_boxes[rows], labels[rows], cost, fused
    )


def hungarian_match(
    cost: Tensor, offsets: Tensor, *, counts: tuple[int, ...]
) -> tuple[Tensor, Tensor]:
    """SciPy on each image of each layer; one copy there, and one back."""
    assign = scipy_assignment()
    layers, images, queries, _ = cost.shape
    firsts = [*accumulate(counts, initial=0)]
    pairs = []
    for block, costs in enumerate(cost.flatten(0, 1).cpu().numpy()):
        image = block % images
        row, column = assign(costs[:, : counts[image]])
        pairs.append(np.stack([row + block * queries, column + firsts[image]]))
    found = torch.from_numpy(np.concatenate(pairs, axis=1))
    found = found.to(cost.device, non_blocking=True)
    pred_index, target_index = found.view(2, layers, -1)
    return pred_index, target_index


def box_losses(
    pred: Tensor,
    target: Tensor,
    loss: str,
    *,
    pred_index: Tensor,
    target_index: Tensor,
    normalizer: Tensor,
    **ignored: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    """GIoU's loss and L1 of each layer, and the IoU of each pair, which gets no gradient."""
    shape = (*pred_index.shape, 4)
    guesses = pred.flatten(0, -2).index_select(0, pred_index.flatten()).view(shape)
    truths = target.index_select(0, target_index.flatten()).view(shape)
    one, other = formulas.corners(guesses), formulas.corners(truths)
    iou, union = formulas.iou_and_union(one, other, 0)
    losses = 1 - giou_of(one, other, iou, union, 0)
    distance = (guesses - truths).abs().sum((-1, -2))
    return losses.sum(-1) / normalizer, distance / normalizer, iou.detach()


# Anchors


def box_loss(
    pred: Tensor,
    true_boxes: Tensor,
    loss: str,
    *,
    target_index: Tensor,
    weight: Tensor,
    reduction: str,
) -> Tensor:
    assert (loss, reduction) == ("giou", "sum")
    losses = 1 - formulas.giou(pred, true_boxes[target_index], EPS)
    return (losses * weight.to(losses.dtype)).sum()


def giou_loss(pred: Tensor, true_boxes: Tensor, *, target_index: Tensor) -> Tensor:
    """The mean of all pairs, by a mask; -1 is none."""
    foreground = target_index >= 0
    truths = functional.pad(true_boxes, (0, 0, 0, 1))[target_index]
    # Selected twice, or else what is not finite in the background would reach the gradient.
    losses = 1 - formulas.giou(torch.where(foreground[:, None], pred, 0.0), truths, EPS)
    return torch.where(foreground, losses, 0.0).sum() / foreground.sum().clamp(min=1)


def ciou_loss(
    pred: Tensor,
    target: Tensor,
    *,
    pred_index: Tensor,
    target_index: Tensor,
    weight: Tensor,
    normalizer: Tensor,
) -> Tensor:
    one, other = pred.flatten(0, 1)[pred_index], target.flatten(0, 1)[target_index]
    return ((1 - ciou(one, other)) * weight).sum() / normalizer


def ciou(one: Tensor, other: Tensor) -> Tensor:
    iou, _ = formulas.iou_and_union(one, other, EPS)
    width, height = formulas.outer_sides(one, other)
    across, down = ((one[..., :2] + one[..., 2:]) - (other[..., :2] + other[..., 2:])).unbind(-1)
    away = (across.square() + down.square()) / 4 / (width.square() + height.square() + EPS)
    v = 4 / math.pi**2 * (formulas.angle(other) - formulas.angle(one)).square()
    alpha = (v / (1 - iou + v + EPS)).detach()
    return iou - away - alpha * v
