# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The cost in plain torch, all layers and images at once: of boxes and labels that are padded.

The same text makes the truth in fp64 and, compiled, the best that torch.compile is given.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .cases import Cost

CLOSE_TO_ZERO = 1e-8  # keeps the logarithms of a focal cost finite, in every original
FOCAL_ALPHA = 0.25


def padded_cost(
    pred: Tensor,
    logits: Tensor | None,
    target: Tensor,
    labels: Tensor | None,
    cost: Cost,
    fused: bool = False,
) -> Tensor:
    """(layers, images, queries, most), of predictions (layers, images, queries, 4) and true boxes
    (images, most, 4). A compiler that fuses needs no operator that does many steps at once."""
    guesses, truths = pred[..., :, None, :], target[:, None]
    one, other = guesses, truths
    if cost.box_format == "cxcywh":
        one, other = corners(pred)[..., :, None, :], corners(target)[:, None]
    total = -cost.iou_weight * giou(one, other, cost.eps)
    if cost.l1_weight:
        if fused:
            distance = (guesses - truths).abs().sum(-1)
        else:
            distance = torch.cdist(pred, target.expand(len(pred), -1, -1, -1), p=1)
        total = total + cost.l1_weight * distance
    if logits is not None:
        assert labels is not None
        total = total + cost.class_weight * class_cost(logits, labels, cost.class_mode)
    largest = torch.finfo(total.dtype).max
    return torch.nan_to_num(total, nan=largest, posinf=largest, neginf=largest)


def padded_overlaps(pred: Tensor, target: Tensor, eps: float) -> Tensor:
    """What an assigner takes: (layers, images, queries, most) too."""
    return ciou(pred[..., :, None, :], target[:, None], eps)


def class_cost(logits: Tensor, labels: Tensor, mode: str) -> Tensor:
    index = labels[:, None].expand(*logits.shape[:-1], -1)
    if mode == "softmax":
        return -(logits.gather(-1, index) - logits.logsumexp(-1, keepdim=True)).exp()
    if labels.shape[-1] < logits.shape[-1]:  # whichever is less to compute
        return focal(logits.gather(-1, index))
    return focal(logits).gather(-1, index)


def focal(logits: Tensor) -> Tensor:
    p = logits.sigmoid()
    positive = FOCAL_ALPHA * (1 - p).square() * (p + CLOSE_TO_ZERO).log()
    return (1 - FOCAL_ALPHA) * p.square() * (1 - p + CLOSE_TO_ZERO).log() - positive


def corners(boxes: Tensor) -> Tensor:
    centre, size = boxes.chunk(2, dim=-1)
    return torch.cat([centre - size / 2, centre + size / 2], dim=-1)


def giou(one: Tensor, other: Tensor, eps: float) -> Tensor:
    """Of corner boxes whose shapes broadcast."""
    iou, union = iou_and_union(one, other, eps)
    width, height = outer_sides(one, other)
    enclosing = width * height + eps
    return iou - (enclosing - union) / enclosing


def ciou(one: Tensor, other: Tensor, eps: float) -> Tensor:
    iou, _ = iou_and_union(one, other, eps)
    width, height = outer_sides(one, other)
    # Twice the way from centre to centre.
    across, down = ((one[..., :2] + one[..., 2:]) - (other[..., :2] + other[..., 2:])).unbind(-1)
    away = (across.square() + down.square()) / 4 / (width.square() + height.square() + eps)
    v = 4 / math.pi**2 * (angle(other) - angle(one)).square()
    alpha = v / ((1 - iou).clamp(min=0) + v + eps)
    return iou - away - alpha * v


def iou_and_union(one: Tensor, other: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    low = torch.maximum(one[..., :2], other[..., :2])
    high = torch.minimum(one[..., 2:], other[..., 2:])
    overlap = product((high - low).clamp(min=0))
    union = area(one) + area(other) - overlap + eps
    return overlap / union, union


def outer_sides(one: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    low = torch.minimum(one[..., :2], other[..., :2])
    high = torch.maximum(one[..., 2:], other[..., 2:])
    width, height = (high - low).unbind(-1)
    return width, height


def area(boxes: Tensor) -> Tensor:
    return product(boxes[..., 2:] - boxes[..., :2])


def product(sides: Tensor) -> Tensor:
    return sides[..., 0] * sides[..., 1]


def angle(boxes: Tensor) -> Tensor:
    width, height = (boxes[..., 2:] - boxes[..., :2]).unbind(-1)
    return torch.atan(width / height)
