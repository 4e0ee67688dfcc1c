# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What others have for rotated boxes: losses of each pair, of (pairs, 5) twice, in radians unless
it is said."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from ...common.losses import installed, isolate_ultralytics
from ...runner.run import UnavailableError
from . import exact
from .exact import Loss, around, sides

NEIGHBOURS = 32  # pairs that a function of all with all is given at once


# --- A kernel, whose IoU has no gradient ---


def rotated_iou() -> Loss:
    """torchvision's box_iou of all with all, which is detectron2's kernel; in degrees."""
    box_iou = partial(installed("torchvision.ops.boxes").box_iou, fmt="cxcywhr")
    box = torch.ones(1, 5)
    try:
        box_iou(box, box)
    except (TypeError, ValueError) as error:  # older ones have no such argument, or format
        raise UnavailableError("this torchvision has no rotated boxes") from error
    return box_iou


def load_torchvision() -> Loss:
    """Of few pairs at once, all with all, whose diagonal is wanted; in degrees."""
    iou = rotated_iou()

    @torch.no_grad()
    def loss(pred: Tensor, target: Tensor) -> Tensor:
        few = zip(pred.split(NEIGHBOURS), target.split(NEIGHBOURS), strict=True)
        return 1 - torch.cat([iou(*each).diagonal() for each in few])

    return loss


# --- Clipping of polygons, as it is usually written in plain torch ---

TOLERANCE = 1e-6  # of a side's length: corners that lie on the other box' border are in it


def corners(box: Tensor) -> Tensor:
    """(..., 4, 2)"""
    w, h = (side / 2 for side in sides(box))
    cos, sin = box[..., 4].cos(), box[..., 4].sin()
    offset = torch.stack([around(w * cos, -h * sin), around(w * sin, h * cos)], -1)
    return box[..., None, :2] + offset


def inside(points: Tensor, box: Tensor) -> Tensor:
    """Which of (..., points, 2) are in the box."""
    x, y = (points - box[..., None, :2]).unbind(-1)
    w, h, angle = (each[..., None] for each in box[..., 2:].unbind(-1))
    cos, sin = angle.cos(), angle.sin()
    is_along = (cos * x + sin * y).abs() <= w * (0.5 + TOLERANCE)
    return is_along & ((cos * y - sin * x).abs() <= h * (0.5 + TOLERANCE))


def crossings(one: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """Where edges of two polygons meet, and whether they do."""
    start, along = one[..., :, None, :], (one.roll(-1, -2) - one)[..., :, None, :]
    begin, beside = other[..., None, :, :], (other.roll(-1, -2) - other)[..., None, :, :]
    turn = cross(along, beside)
    safe = torch.where(turn == 0, 1, turn)
    share, of_other = cross(begin - start, beside) / safe, cross(begin - start, along) / safe
    meets = (turn != 0) & (share >= 0) & (share <= 1) & (of_other >= 0) & (of_other <= 1)
    points = start + torch.where(meets, share, 0)[..., None] * along
    return points.flatten(-3, -2), meets.flatten(-2)


def cross(one: Tensor, other: Tensor) -> Tensor:
    return one[..., 0] * other[..., 1] - one[..., 1] * other[..., 0]


def clipping(pred: Tensor, target: Tensor) -> Tensor:
    """The area of those of 24 points, crossings and corners, that are in both boxes, sorted by
    their angles around their mean."""
    # Centres are subtracted first: far from the origin digits would be lost.
    origin = torch.nn.functional.pad(target[..., :2], (0, 3))
    pred, target = pred - origin, target - origin
    one, other = corners(pred), corners(target)
    met, is_met = crossings(one, other)
    points = torch.cat([one, other, met], -2)
    counts = torch.cat([inside(one, target), inside(other, pred), is_met], -1)
    kept = torch.where(counts[..., None], points, 0)
    number = counts.sum(-1, keepdim=True).clamp(min=1)
    kept = kept - torch.where(counts[..., None], (kept.sum(-2) / number)[..., None, :], 0)
    with torch.no_grad():
        angle = torch.where(counts, torch.atan2(kept[..., 1], kept[..., 0]), torch.inf)
        order = angle.argsort(-1)
    around = kept.gather(-2, order[..., None].expand_as(kept))
    # What does not count comes last, and becomes the first point.
    counted = counts.gather(-1, order)[..., None]
    around = torch.where(counted, around, around[..., :1, :])
    return 0.5 * cross(around, around.roll(-1, -2)).sum(-1).abs()


def clipped_iou(pred: Tensor, target: Tensor) -> Tensor:
    return exact.iou(pred, target, clipping)


def clipped_giou(pred: Tensor, target: Tensor) -> Tensor:
    return exact.giou(pred, target, clipping)


# --- Gaussians ---


def load_ultralytics() -> Loss:
    isolate_ultralytics()
    metrics = installed("ultralytics.utils.metrics")
    if not hasattr(metrics, "probiou"):
        raise UnavailableError("this Ultralytics has no probiou")
    return lambda pred, target: 1 - metrics.probiou(pred, target).squeeze(-1)


# mmrotate's losses, from their papers' formulas: Yang et al. 2021 and 2022. Bounds are its own.
LEAST = 1e-7


def covariance(box: Tensor) -> tuple[Tensor, Tensor]:
    """Of half the sides as deviations: R S R', and its determinant."""
    w, h = (side.clamp(LEAST, 1e7) / 2 for side in sides(box))
    cos, sin = box[..., 4].cos(), box[..., 4].sin()
    turn = torch.stack([cos, -sin, sin, cos], -1).unflatten(-1, (2, 2))
    found = turn @ torch.diag_embed(torch.stack([w, h], -1).square()) @ turn.mT
    return found, determinant(found)


def determinant(matrix: Tensor) -> Tensor:
    (a, b), (c, d) = (row.unbind(-1) for row in matrix.unbind(-2))
    return a * d - b * c


def inverse(matrix: Tensor) -> Tensor:
    (a, b), (c, d) = (row.unbind(-1) for row in matrix.unbind(-2))
    adjugate = torch.stack([d, -b, -c, a], -1).unflatten(-1, (2, 2))
    return adjugate / determinant(matrix)[..., None, None]


def trace(matrix: Tensor) -> Tensor:
    return matrix.diagonal(dim1=-2, dim2=-1).sum(-1)


def kld(pred: Tensor, target: Tensor) -> Tensor:
    (one, of_one), (other, of_other) = covariance(pred), covariance(target)
    offset = (pred - target)[..., :2, None]
    inverted = inverse(one)
    centres = (offset.mT @ inverted @ offset).squeeze((-2, -1))
    shapes = trace(inverted @ other) + of_one.log() - of_other.log()
    return exact.distance_loss((0.5 * (centres + shapes) - 1).clamp(LEAST).sqrt())


def gwd(pred: Tensor, target: Tensor) -> Tensor:
    (one, of_one), (other, of_other) = covariance(pred), covariance(target)
    offset = (pred - target)[..., :2].square().sum(-1)
    root = (of_one * of_other).clamp(LEAST).sqrt()
    shapes = trace(one) + trace(other) - 2 * (trace(one @ other) + 2 * root).clamp(LEAST).sqrt()
    scale = 2 * root.clamp(LEAST).sqrt().clamp(LEAST).sqrt().clamp(LEAST)
    return exact.distance_loss((offset + shapes).clamp(LEAST).sqrt() / scale)
