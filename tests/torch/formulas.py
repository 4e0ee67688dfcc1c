# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Each loss of a pair of corner boxes, in plain PyTorch.

torch.minimum and torch.maximum share the gradient of a tie half and half, and torch.abs has none
at 0, as boxloss promises. Where a quotient is set to a constant, its divisor is replaced before
the division: a NaN that is masked afterwards still reaches the gradient.
"""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor


class Pair:
    """What the losses are made of. A box is its four coordinates x1, y1, x2, y2."""

    def __init__(
        self,
        p: Sequence[Tensor],
        t: Sequence[Tensor],
        eps: Tensor,
        eps_mode: str,
        **numbers: float,
    ) -> None:
        """`numbers` are the loss' own."""
        (px1, py1, px2, py2), (tx1, ty1, tx2, ty2) = self.p, self.t = p, t
        self.eps, self.eps_mode, self.numbers = eps, eps_mode, numbers
        self.pw, self.ph = px2 - px1, py2 - py1
        self.tw, self.th = tx2 - tx1, ty2 - ty1
        inter_w = torch.minimum(px2, tx2) - torch.maximum(px1, tx1)
        inter_h = torch.minimum(py2, ty2) - torch.maximum(py1, ty1)
        overlap = (inter_w > 0) & (inter_h > 0)
        self.inter = torch.where(overlap, inter_w * inter_h, 0.0)
        self.union = self.guard(self.pw * self.ph + self.tw * self.th - self.inter)
        self.iou = self.inter / self.union
        self.cw = torch.maximum(px2, tx2) - torch.minimum(px1, tx1)
        self.ch = torch.maximum(py2, ty2) - torch.minimum(py1, ty1)
        # From pred's centre to target's; of equal boxes exactly 0.
        self.dx = 0.5 * ((tx1 - px1) + (tx2 - px2))
        self.dy = 0.5 * ((ty1 - py1) + (ty2 - py2))

    def guard(self, x: Tensor) -> Tensor:
        """x after eps."""
        return x + self.eps if self.eps_mode == "add" else torch.maximum(x, self.eps)


def iou(pair: Pair) -> Tensor:
    return 1 - pair.iou


def iou_squared(pair: Pair) -> Tensor:
    return 1 - pair.iou * pair.iou


def iou_log(pair: Pair) -> Tensor:
    # Not torch.maximum, which would share the gradient where iou is eps.
    return -torch.log(torch.where(pair.iou < pair.eps, pair.eps, pair.iou))


def giou(pair: Pair) -> Tensor:
    enclosing = pair.guard(pair.cw * pair.ch)
    return 1 - (pair.iou - (enclosing - pair.union) / enclosing)


def diou(pair: Pair) -> Tensor:
    diagonal = pair.guard(pair.cw * pair.cw + pair.ch * pair.ch)
    return 1 - pair.iou + (pair.dx * pair.dx + pair.dy * pair.dy) / diagonal


def ciou(pair: Pair) -> Tensor:
    v = aspect(pair)
    # Of alpha nothing is differentiated.
    constant = v.detach()
    whole = pair.guard(torch.clamp(1 - pair.iou.detach(), min=0.0) + constant)
    return diou(pair) + fraction(constant, whole) * v


def ciou_gated(pair: Pair) -> Tensor:
    v = aspect(pair)
    constant = v.detach()
    whole = torch.clamp(1 - pair.iou.detach(), min=0.0) + constant
    is_open = 2 * pair.inter > pair.union
    return diou(pair) + torch.where(is_open, fraction(constant, whole), 0.0).detach() * v


def aspect(pair: Pair) -> Tensor:
    """v."""
    difference = angle(pair.tw, pair.th) - angle(pair.pw, pair.ph)
    return 4 / math.pi**2 * (difference * difference)


def angle(w: Tensor, h: Tensor) -> Tensor:
    """atan(w / h) that is +-pi / 2 for h = 0; of a point it is 0, and constant."""
    w, h = torch.where(h < 0, -w, w), torch.where(h < 0, -h, h)
    is_point = (w == 0) & (h == 0)
    return torch.atan2(torch.where(is_point, 0.0, w), torch.where(is_point, 1.0, h))


def fraction(part: Tensor, whole: Tensor) -> Tensor:
    """part / whole, which lies in [0, 1] but for rounding; 0 where part is."""
    quotient = part / torch.where(part == 0, 1.0, whole)
    return torch.clamp(torch.where(part == 0, 0.0, quotient), min=0.0, max=1.0)


def eiou(pair: Pair) -> Tensor:
    dw, dh = pair.pw - pair.tw, pair.ph - pair.th
    w = dw * dw / pair.guard(pair.cw * pair.cw)
    h = dh * dh / pair.guard(pair.ch * pair.ch)
    return diou(pair) + w + h


def siou(pair: Pair) -> Tensor:
    sx, sy = pair.dx + pair.eps, pair.dy + pair.eps
    square = sx * sx + sy * sy
    is_one_point = square == 0
    cosine = 2 * torch.abs(sx * sy) / torch.where(is_one_point, 1.0, square)

    def nearness(s: Tensor, side: Tensor) -> Tensor:
        ratio = s / torch.maximum(side, pair.eps)
        return torch.exp((cosine - 2) * (ratio * ratio))

    def shape(a: Tensor, b: Tensor) -> Tensor:
        longer = torch.maximum(torch.abs(a), torch.abs(b))
        ratio = torch.abs(a - b) / torch.where(longer == 0, 1.0, longer)
        cost = 1 - torch.exp(-ratio)
        return (cost * cost) * (cost * cost)

    distance = (1 - nearness(sx, pair.cw)) + (1 - nearness(sy, pair.ch))
    return 1 - pair.iou + 0.5 * (distance + (shape(pair.pw, pair.tw) + shape(pair.ph, pair.th)))


def alpha_iou(pair: Pair) -> Tensor:
    return 1 - pair.iou ** pair.numbers["alpha"]


def nwd(pair: Pair) -> Tensor:
    square = pair.guard(0.5 * corner_distance(pair))
    is_apart = square > 0
    root = torch.where(is_apart, torch.sqrt(torch.where(is_apart, square, 1.0)), 0.0)
    return 1 - torch.exp(-root / pair.numbers["constant"])


def mpdiou(pair: Pair) -> Tensor:
    diagonal = pair.numbers["image_width"] ** 2 + pair.numbers["image_height"] ** 2
    return 1 - pair.iou + corner_distance(pair) / diagonal


def corner_distance(pair: Pair) -> Tensor:
    """Of both corners, squared."""
    return sum((p - t) ** 2 for p, t in zip(pair.p, pair.t, strict=True))


def inner_iou(pair: Pair) -> Tensor:
    def inner(box: Sequence[Tensor]) -> list[Tensor]:
        x1, y1, x2, y2 = box
        x, y, ratio = 0.5 * (x1 + x2), 0.5 * (y1 + y2), pair.numbers["ratio"]
        w, h = 0.5 * ratio * (x2 - x1), 0.5 * ratio * (y2 - y1)
        return [x - w, y - h, x + w, y + h]

    return 1 - Pair(inner(pair.p), inner(pair.t), pair.eps, pair.eps_mode).iou


FORMULAS: dict[str, Callable[[Pair], Tensor]] = {
    function.__name__: function
    for function in (
        *(iou, iou_squared, iou_log, giou, diou, ciou, ciou_gated, eiou, siou),
        *(alpha_iou, nwd, mpdiou, inner_iou),
    )
}
LOSSES = tuple(FORMULAS)
