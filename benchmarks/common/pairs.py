# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The boxes of matched pairs, and their losses in plain torch."""

from __future__ import annotations

import torch
from torch import Tensor

from .cases import near, true_boxes

# Corners are exact in float32 in either format. Those of a prediction lie on this grid, those of a
# ground-truth box half a step off: nothing ties, where formulations may differ in the gradient.
STEP = 2**-10
SHORTEST_PREDICTION = 1
SPAN = 256  # DETR's boxes are relative to the image


def drawn_boxes(count: int, generator: torch.Generator) -> Tensor:
    return true_boxes(count, generator) + STEP / 2


def predictions(truths: Tensor, generator: torch.Generator) -> Tensor:
    boxes = (near(truths, generator) / STEP).round() * STEP
    # An empty box touches whatever it lies in, which is a tie too.
    boxes[:, 2:] = torch.maximum(boxes[:, 2:], boxes[:, :2] + SHORTEST_PREDICTION)
    return boxes


def relative(boxes: Tensor) -> Tensor:
    one, other = (boxes / SPAN).chunk(2, dim=-1)
    return torch.cat([(one + other) / 2, other - one], dim=-1)


def corners(boxes: Tensor) -> Tensor:
    centre, size = boxes.chunk(2, dim=-1)
    return torch.cat([centre - size / 2, centre + size / 2], dim=-1)


def iou_and_union(one: Tensor, other: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Of corner boxes whose shapes broadcast."""
    sides = torch.minimum(one[..., 2:], other[..., 2:]) - torch.maximum(
        one[..., :2], other[..., :2]
    )
    overlap = _area(sides.clamp(min=0))
    areas = (_area(boxes[..., 2:] - boxes[..., :2]) for boxes in (one, other))
    union = sum(areas) - overlap
    return overlap / (union + eps), union


def giou_of(one: Tensor, other: Tensor, iou: Tensor, union: Tensor, eps: float) -> Tensor:
    outer = torch.maximum(one[..., 2:], other[..., 2:]) - torch.minimum(
        one[..., :2], other[..., :2]
    )
    enclosing = _area(outer)
    return iou - (enclosing - union) / (enclosing + eps)


def _area(sides: Tensor) -> Tensor:
    return sides[..., 0] * sides[..., 1]


def pair_losses(
    pred: Tensor, target: Tensor, pred_index: Tensor, target_index: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """GIoU's losses and L1 of each layer, and the IoU of each pair, of cxcywh boxes."""
    shape = (*pred_index.shape, 4)
    guesses = pred.flatten(0, -2).index_select(0, pred_index.flatten()).view(shape)
    truths = target.index_select(0, target_index.flatten()).view(shape)
    one, other = corners(guesses), corners(truths)
    iou, union = iou_and_union(one, other, 0)
    losses = 1 - giou_of(one, other, iou, union, 0)
    return losses.sum(-1), (guesses - truths).abs().sum((-1, -2)), iou.detach()
