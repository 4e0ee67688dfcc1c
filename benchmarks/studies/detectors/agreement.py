# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""No time is worth printing for a criterion that is wrong: every variant must agree first.

Each is held against the plain criterion in fp64 on the very tensors that are then timed: the sum of
its losses, and all gradients that are wanted. A pair that another matcher chose would show in them.
Bounds count roundings of fp32. Of boxes they are those of matched pairs; of scores x, |x| <= X:

    sigmoid p of x, relative                    X + 6
    log(1 + e^x) and the like, <= X + 1         22 (X + 1)
    log of a softmax, <= 2 X + log C            C + 6 X + 10
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ...runner.agreement import (
    GRADIENT_ROUNDINGS,
    LOSS_ROUNDINGS,
    UNIT,
    Truth,
    compare,
    steepness,
    sum_roundings,
)
from .. import matched_pairs
from ..matcher import LARGEST_LOGIT
from .cases import (
    BINS,
    BOX_GAIN,
    CLASS_GAIN,
    CRITERION,
    DFL_GAIN,
    EOS_COEFFICIENT,
    GIOU_WEIGHT,
    L1_WEIGHT,
    NEVER,
    STRIDES,
    VFL_WEIGHT,
    Case,
    DenseCase,
    DetrCase,
    YoloCase,
)
from .criteria import Step, matched, our_step, plain_operators

FACTOR_ROUNDINGS = 8  # a weight, a normalizer, and their quotient or product with a pair's
X = LARGEST_LOGIT

# Of the varifocal loss' weight a p^2, relative; a pair's is its IoU, which has LOSS_ROUNDINGS.
VFL_WEIGHT_ROUNDINGS = 2 * X + 15
# Of its gradient, weight * (p - IoU), in which nothing is more than 1.
VFL_GRADIENT_ROUNDINGS = VFL_WEIGHT_ROUNDINGS + (X + 6) + LOSS_ROUNDINGS + 3

# FCOS' focal loss is a q^2 l with q = 1 - p_t, which is wrong by X + 7, and l <= X + 1: wrong by
# 2 (X + 7) (X + 1) + 22 (X + 1). Of its gradient a (q^2 (p - t) + 2 q p (1 - p) l) that is
# 3 (X + 7) + 3 and 2 ((X + 7) + (2 X + 13)) (X + 1) / 4 + 22 (X + 1) / 2, which is less. So is
# what a centerness, a BCE towards a root of two quotients, is wrong by.
SCORE_ROUNDINGS = 2 * (X + 7) * (X + 1) + 22 * (X + 1)

# CIoU's loss is at most 2.5. With the 5 terms that GIoU has not, of squares: 100. Its derivatives
# are a sum of GIoU's kind and of v's, which is right to about 30, over 1 - iou + v, at least 0.1
# and right to 20: 250 more, over the longer side, for h / (w^2 + h^2) is less than that.
CIOU_LOSS, CIOU_ROUNDINGS, CIOU_ASPECT_ROUNDINGS = 2.5, 100, 250


@dataclass(frozen=True)
class Bounds:
    loss: float
    gradients: dict[str, Tensor]  # of leaves; each a number, or shaped as the gradient

    def __add__(self, other: Bounds) -> Bounds:
        return Bounds(self.loss + other.loss, self.gradients | other.gradients)


Truths = dict[str, Truth]  # of leaves; all with the same loss


def truths(case: Case) -> Truths:
    if isinstance(case, YoloCase):
        return _yolo_truths(case)
    exact = case.in_double()
    loss = our_step(exact, plain_operators(exact.counts))()
    bounds = _detr_bounds(case) if isinstance(case, DetrCase) else _dense_bounds(case)
    return _with_bounds(exact, loss, exact.gradients(loss), bounds)


def _with_bounds(exact: Case, loss: Tensor, gradients: Sequence[Tensor], bounds: Bounds) -> Truths:
    return {
        name: Truth(loss.item(), bounds.loss, gradient, bounds.gradients[name].expand_as(gradient))
        for name, gradient in zip(exact.wanted, gradients, strict=True)
    }


def check(name: str, step: Step, case: Case, expected: Truths) -> None:
    """DisagreementError, unless the loss and all gradients are right on this case."""
    loss = step()
    for leaf, gradient in zip(case.wanted, case.gradients(loss), strict=True):
        about = f"{leaf} of {case.kind}, {case.part}"
        compare(name, loss.detach(), gradient, expected[leaf], about)


# --- DETR's kind ---


def _detr_bounds(case: DetrCase) -> Bounds:
    bounds = _box_bounds(case)
    if case.part == CRITERION:
        with torch.no_grad():
            scores = case.scores(case.leaves).double()
        of_scores = _cross_entropy if case.kind == "detr" else _varifocal
        loss, gradient = of_scores(case, scores)
        allowed = scores.new_tensor(gradient * UNIT)
        bounds += Bounds(loss * UNIT, dict.fromkeys(case.score_leaves, allowed))
    return bounds


def _box_bounds(case: DetrCase) -> Bounds:
    exact = case.in_double()
    _, _, *indices = matched(exact, plain_operators(case.counts))
    pairs = matched_pairs.Case(
        case.kind,
        "f32/f32",
        case.shape,
        case.boxes(case.leaves).detach(),
        torch.cat([each["boxes"] for each in case.inputs["labels"]]),
        *indices,
        "cxcywh",
        eps=0,
        giou_weight=GIOU_WEIGHT,
        l1_weight=L1_WEIGHT,
        normalizer=torch.tensor(float(sum(case.counts)), device=case.device),
    )
    sums = matched_pairs.truth(pairs).sums
    # Back to where the layers come from.
    leaves = {name: case.leaves[name].double() for name in case.box_leaves}
    allowed = torch.autograd.grad(case.boxes(leaves), [*leaves.values()], sums.gradient_allowed)
    return Bounds(sums.loss_allowed, dict(zip(leaves, allowed, strict=True)))


def _varifocal(case: DetrCase, scores: Tensor) -> tuple[float, float]:
    """Of a sum of weight * BCE, where a BCE is at most |x| + 1."""
    number = sum(case.counts)
    size = (0.75 * scores.sigmoid().square() * (scores.abs() + 1)).sum().item()
    size += case.pairs * (X + 1)
    roundings = VFL_WEIGHT_ROUNDINGS + 22 + FACTOR_ROUNDINGS + sum_roundings(scores.numel())
    return VFL_WEIGHT * roundings * size / number, VFL_WEIGHT * VFL_GRADIENT_ROUNDINGS / number


def _cross_entropy(case: DetrCase, scores: Tensor) -> tuple[float, float]:
    """Of each layer's mean, where a pair weighs 1 and all else weighs less. An entry's gradient is
    weight * (softmax - 1) / sum of weights."""
    layers, images, queries, classes = scores.shape
    largest = 2 * X + math.log(classes)
    of_one = classes + 6 * X + 10 + FACTOR_ROUNDINGS
    of_sums = sum_roundings(images * queries)
    pairs = sum(case.counts)
    weights = pairs + EOS_COEFFICIENT * (images * queries - pairs)
    return layers * (of_one + 2 * of_sums * largest), (of_one + of_sums) / weights


# --- Anchors ---


def _dense_bounds(case: DenseCase) -> Bounds:
    found = case.found
    pred, target, weight = found.pred.double(), found.target.double(), found.weight.double()
    total = weight.sum().item()
    slope = steepness(pred, target)
    of_sum = FACTOR_ROUNDINGS + sum_roundings(case.pairs)
    loss = UNIT * 2 * (LOSS_ROUNDINGS + of_sum) * total
    gradient = UNIT * (GRADIENT_ROUNDINGS + FACTOR_ROUNDINGS) * slope
    spread = torch.zeros_like(case.leaves["bbox_regression"], dtype=torch.float64)
    spread[found.where] = (weight * gradient)[:, None] * found.leverage
    bounds = Bounds(loss, {"bbox_regression": spread})
    return bounds + _fcos_scores(case) if case.kind == "fcos" else bounds


def _fcos_scores(case: DenseCase) -> Bounds:
    """Sums of all entries of the classes, and of a centerness for each pair, over the pairs."""
    logits = case.leaves["cls_logits"].numel()
    roundings = (SCORE_ROUNDINGS + sum_roundings(case.pairs) * (X + 1)) * case.pairs
    roundings += SCORE_ROUNDINGS * logits + sum_roundings(logits) * logits * (X + 1)
    gradient = torch.tensor(SCORE_ROUNDINGS * UNIT / case.pairs, device=case.device)
    return Bounds(roundings * UNIT / case.pairs, {"cls_logits": gradient, "bbox_ctrness": gradient})


# --- YOLO ---

# A CIoU is a sum of three terms of at most 1, with some 20 roundings in each.
OVERLAP_ROUNDINGS = 64
BETA = 6  # of the metric: the power of an overlap


def _yolo_truths(case: YoloCase) -> Truths:
    """A score has its anchor's overlap to the power of BETA, that of its box's best anchor in the
    divisor, and an overlap: it is as wrong as those are, relative. So is what it weighs. That
    Ultralytics' boxes are in cells, and their heights have an eps more, drowns in that."""
    exact = case.in_double()
    operators = plain_operators(exact.counts)
    seen: list[Any] = []

    def matched(*arguments: Any, **options: Any) -> Any:
        seen.extend((arguments, operators["task_aligned_match"](*arguments, **options)))
        return seen[-1]

    loss = our_step(exact, {**operators, "task_aligned_match": matched})()
    gradients = dict(zip(exact.wanted, exact.gradients(loss), strict=True))
    (_, pred, points, target, *_), (row, score, overlap) = seen
    foreground = row >= 0
    total = score.sum().clamp(min=1)
    weight = score / total
    images, anchors = row.shape
    least = overlap.clamp(min=1e-3)
    of_score = (2 * BETA + 1) * OVERLAP_ROUNDINGS * UNIT / least * foreground
    of_total = (weight * of_score).sum() + sum_roundings(anchors * images) * UNIT
    relative = of_score + of_total + FACTOR_ROUNDINGS * UNIT

    # What a pair's losses are wrong by, beside their weight; boxes are in pixels, sides in cells.
    truths_ = target[row.clamp(min=0)]
    slope = steepness(pred.flatten(0, 1), truths_.flatten(0, 1)).view_as(row) * foreground
    longest = (truths_[..., 2:] - truths_[..., :2]).amax(-1)
    stride = points.new_tensor([float(each) for each in STRIDES]).repeat_interleave(
        torch.tensor([each.shape[2:].numel() for each in case.inputs["feats"]], device=row.device)
    )
    of_ciou = UNIT * (GRADIENT_ROUNDINGS * slope + CIOU_ASPECT_ROUNDINGS / longest) * stride
    of_softmax = BINS + 10 + FACTOR_ROUNDINGS + 2 * BINS  # of logits that are 0 or far from it
    largest = -NEVER + math.log(BINS)
    own = weight * images * (BOX_GAIN * of_ciou * BINS / 4 + DFL_GAIN * UNIT * of_softmax)
    by_boxes = (relative * gradients["boxes"].abs().movedim(1, 0) + own).movedim(0, 1)

    of_class = CLASS_GAIN * images / total
    moved = SCORE_ROUNDINGS * UNIT + of_score * score
    by_scores = of_total * gradients["scores"].abs() + (of_class * moved)[:, None]
    # max(x, 0) - x t + log(1 + e^-|x|), whose terms are right to X + 10 roundings of themselves.
    logits = case.leaves["scores"].detach().double()
    entropy = functional.softplus(logits).sum() + X * score.sum()
    of_pair = BOX_GAIN * (1 - overlap) + DFL_GAIN * _dfl(exact, points, truths_, stride)
    of_loss = (weight * relative * of_pair).sum()
    of_loss += UNIT * (BOX_GAIN * CIOU_LOSS * CIOU_ROUNDINGS + DFL_GAIN * largest * of_softmax)
    of_bce = of_total + UNIT * (X + 10 + sum_roundings(logits.numel()))
    of_loss += CLASS_GAIN / total * ((of_score * score).sum() * X + of_bce * entropy)
    bounds = Bounds((images * of_loss).item(), {"boxes": by_boxes, "scores": by_scores})
    return _with_bounds(exact, loss, [*gradients.values()], bounds)


def _dfl(case: YoloCase, points: Tensor, target: Tensor, stride: Tensor) -> Tensor:
    """The distribution focal loss of each anchor towards its (images, anchors, 4) target."""
    to_sides = torch.cat((points - target[..., :2], target[..., 2:] - points), -1)
    sides = (to_sides / stride[:, None]).clamp(0, BINS - 1.01).mT
    lower = sides.long()
    logs = case.leaves["boxes"].detach().unflatten(1, (4, BINS)).log_softmax(2)
    near, far = (logs.gather(2, each[:, :, None])[:, :, 0] for each in (lower, lower + 1))
    return -(near * (lower + 1 - sides) + far * (sides - lower)).mean(1)
