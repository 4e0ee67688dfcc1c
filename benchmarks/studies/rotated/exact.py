# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The losses of rotated boxes in plain torch, by algorithms that lose no digits: (..., 5) twice.

In float64 they are the truth. Those by areas are also the fastest that was found in plain torch,
without sorting: edges are cut where they leave the other box, and what lies outside is moved onto
its border. Gaussians' losses are sums of squares.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

Loss = Callable[[Tensor, Tensor], Tensor]  # of each pair


class Placed(NamedTuple):
    """A box in another one's frame."""

    x: Tensor
    y: Tensor
    cos: Tensor
    sin: Tensor


def place(box: Tensor, frame: Tensor) -> Placed:
    x, y = (box - frame)[..., :2].unbind(-1)
    own, angle = frame[..., 4], box[..., 4] - frame[..., 4]
    cos, sin = own.cos(), own.sin()
    return Placed(cos * x + sin * y, cos * y - sin * x, angle.cos(), angle.sin())


# --- By areas ---


def intersection(pred: Tensor, target: Tensor) -> Tensor:
    """The integral of y dx along pred's edges, clamped to the target."""
    at = place(pred, target)
    w, h = pred[..., 2] / 2, pred[..., 3] / 2
    half_x, half_y = target[..., 2, None] / 2, target[..., 3, None] / 2
    x = at.x[..., None] + around(w * at.cos, -h * at.sin)
    y = at.y[..., None] + around(w * at.sin, h * at.cos)
    end_x = x.roll(-1, -1)
    dx, dy = end_x - x, y.roll(-1, -1) - y
    first, last = shares_within(x, dx, half_x)
    begin, end = y + first * dy, y + last * dy
    first, last = shares_within(begin, end - begin, half_y)
    begin, end = clamp(begin, half_y), clamp(end, half_y)
    mean = begin * first + 0.5 * (begin + end) * (last - first) + end * (1 - last)
    return (mean * (clamp(end_x, half_x) - clamp(x, half_x))).sum(-1).abs()


def around(along: Tensor, across: Tensor) -> Tensor:
    """The corners, one after the other, from the half axes."""
    return torch.stack([along + across, across - along, -along - across, along - across], -1)


def shares_within(start: Tensor, extent: Tensor, half: Tensor) -> tuple[Tensor, Tensor]:
    """Of an edge's length, where it comes between -half and half, and where it leaves."""
    safe = torch.where(extent == 0, 1, extent)
    one, other = ((each - start) / safe for each in (-half, half))
    return torch.minimum(one, other).clamp(0, 1), torch.maximum(one, other).clamp(0, 1)


def clamp(value: Tensor, half: Tensor) -> Tensor:
    return torch.minimum(torch.maximum(value, -half), half)


def hull(pred: Tensor, target: Tensor) -> Tensor:
    """Of both boxes: pred, and what lies between its edges' lines and those of the hull."""
    at = place(pred, target)
    w, h, target_w, target_h = (each / 2 for each in (*sides(pred), *sides(target)))
    cos, sin = at.cos.abs(), at.sin.abs()

    def beyond(difference: Tensor, offset: Tensor) -> Tensor:
        return (difference - offset).clamp(min=0) + (difference + offset).clamp(min=0)

    along, across = at.x * at.cos + at.y * at.sin, at.y * at.cos - at.x * at.sin
    return 4 * w * h + (
        target_h * beyond(target_w - (w * cos + h * sin), at.x)
        + target_w * beyond(target_h - (w * sin + h * cos), at.y)
        + h * beyond(target_w * cos + target_h * sin - w, along)
        + w * beyond(target_w * sin + target_h * cos - h, across)
    )


def sides(box: Tensor) -> tuple[Tensor, Tensor]:
    return box[..., 2], box[..., 3]


def areas(pred: Tensor, target: Tensor) -> Tensor:
    return pred[..., 2] * pred[..., 3] + target[..., 2] * target[..., 3]


def iou(pred: Tensor, target: Tensor, intersection: Loss = intersection) -> Tensor:
    common = intersection(pred, target)
    return 1 - common / (areas(pred, target) - common)


def giou(pred: Tensor, target: Tensor, intersection: Loss = intersection) -> Tensor:
    common, outer = intersection(pred, target), hull(pred, target)
    union = areas(pred, target) - common
    return 1 - common / union + (outer - union) / outer


# --- Of Gaussians, by their sides w, h and W, H ---


class Sides(NamedTuple):
    """Where the target is turned by more than an eighth, its sides are exchanged."""

    w: Tensor
    h: Tensor
    target_w: Tensor
    target_h: Tensor
    at: Placed  # the target, in pred's frame


def gaussians(pred: Tensor, target: Tensor) -> Sides:
    at = place(target, pred)
    w, h = sides(target)
    is_across = at.sin.abs() > at.cos.abs()
    return Sides(
        *sides(pred),
        torch.where(is_across, h, w),
        torch.where(is_across, w, h),
        at._replace(
            cos=torch.where(is_across, at.sin, at.cos), sin=torch.where(is_across, -at.cos, at.sin)
        ),
    )


def probiou(pred: Tensor, target: Tensor) -> Tensor:
    """The Hellinger distance, from Bhattacharyya's."""
    w, h, tw, th, at = gaussians(pred, target)
    cc, ss = at.cos.square(), at.sin.square()
    product = 4 * w * h * tw * th
    square = (w * h - tw * th).square()
    square = square + cc * (w * th - h * tw).square() + ss * (w * tw - h * th).square()
    xx = w.square() + tw.square() * cc + th.square() * ss
    yy = h.square() + tw.square() * ss + th.square() * cc
    xy = (tw.square() - th.square()) * at.sin * at.cos
    offset = yy * at.x.square() + xx * at.y.square() - 2 * xy * at.x * at.y
    distance = 3 * offset / (product + square) + 0.5 * torch.log1p(square / product)
    return (-torch.expm1(-distance)).sqrt()


def kld(pred: Tensor, target: Tensor) -> Tensor:
    w, h, tw, th, at = gaussians(pred, target)

    def of_side(z: Tensor) -> Tensor:
        return 0.5 * z.square() + (z - torch.log1p(z))

    turned = at.sin.square() * (tw.square() - th.square()) / (w * h) * (w.square() - h.square())
    square = 2 * ((at.x / w).square() + (at.y / h).square()) + 0.5 * turned / (w * h)
    return distance_loss((square + of_side((tw - w) / w) + of_side((th - h) / h)).sqrt())


def gwd(pred: Tensor, target: Tensor) -> Tensor:
    w, h, tw, th, at = gaussians(pred, target)
    along, across = w * tw + h * th, w * th + h * tw
    root = ((at.cos * along).square() + (at.sin * across).square()).sqrt()
    turned = 2 * at.sin.square() * (w.square() - h.square()) * (tw.square() - th.square())
    shape = (w - tw).square() + (h - th).square() + turned / (along + root)
    square = at.x.square() + at.y.square() + 0.25 * shape
    return distance_loss((square / (w * h * tw * th).sqrt()).sqrt())


def distance_loss(distance: Tensor) -> Tensor:
    """mmrotate's, by fun="log1p" and tau=1."""
    return 1 - 1 / (1 + torch.log1p(distance))


LOSSES: dict[str, Loss] = {"iou": iou, "giou": giou, "probiou": probiou, "kld": kld, "gwd": gwd}
