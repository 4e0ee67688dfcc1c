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
from dataclasses import dataclass

import torch
from torch import Tensor

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
    CRITERION,
    EOS_COEFFICIENT,
    GIOU_WEIGHT,
    L1_WEIGHT,
    VFL_WEIGHT,
    Case,
    DenseCase,
    DetrCase,
)
from .criteria import EPS, Step, matched, our_step, plain_operators

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
# Ultralytics adds its eps to heights as well. With e = eps / side that changes an area by e of it,
# an IoU by 2 e, v by 1.3 e, alpha v by 3.3 e: a loss by less than 6 e. A derivative is a sum of at
# most some 10 quotients of lengths, over a side: 60 e / side.
CIOU_EPS_LOSS, CIOU_EPS_GRADIENT = 6 * EPS, 60 * EPS


@dataclass(frozen=True)
class Bounds:
    loss: float
    gradients: dict[str, Tensor]  # of leaves; each a number, or shaped as the gradient

    def __add__(self, other: Bounds) -> Bounds:
        return Bounds(self.loss + other.loss, self.gradients | other.gradients)


Truths = dict[str, Truth]  # of leaves; all with the same loss


def truths(case: Case) -> Truths:
    exact = case.in_double()
    loss = our_step(exact, plain_operators(exact.counts))()
    bounds = _detr_bounds(case) if isinstance(case, DetrCase) else _dense_bounds(case)
    return {
        name: Truth(loss.item(), bounds.loss, gradient, bounds.gradients[name].expand_as(gradient))
        for name, gradient in zip(case.wanted, exact.gradients(loss), strict=True)
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
    if case.kind == "yolo":
        sides = torch.cat([boxes[:, 2:] - boxes[:, :2] for boxes in (pred, target)], 1)
        shortest, longest = sides.amin(1), sides[:, :2].amax(1)
        loss = UNIT * CIOU_LOSS * (CIOU_ROUNDINGS + of_sum) * total
        loss += (CIOU_EPS_LOSS * weight / shortest).sum().item()
        gradient = UNIT * (GRADIENT_ROUNDINGS * slope + CIOU_ASPECT_ROUNDINGS / longest)
        gradient += CIOU_EPS_GRADIENT / shortest.square()
    else:
        loss = UNIT * 2 * (LOSS_ROUNDINGS + of_sum) * total
        gradient = UNIT * (GRADIENT_ROUNDINGS + FACTOR_ROUNDINGS) * slope
    name = "pred_bboxes" if case.kind == "yolo" else "bbox_regression"
    spread = torch.zeros_like(case.leaves[name], dtype=torch.float64)
    spread[found.where] = (weight * gradient)[:, None] * found.leverage
    bounds = Bounds(loss, {name: spread})
    if case.kind == "fcos":
        bounds += _fcos_scores(case)
    if case.kind == "yolo":
        bounds += _distributions(case)
    return bounds


def _fcos_scores(case: DenseCase) -> Bounds:
    """Sums of all entries of the classes, and of a centerness for each pair, over the pairs."""
    logits = case.leaves["cls_logits"].numel()
    roundings = (SCORE_ROUNDINGS + sum_roundings(case.pairs) * (X + 1)) * case.pairs
    roundings += SCORE_ROUNDINGS * logits + sum_roundings(logits) * logits * (X + 1)
    gradient = torch.tensor(SCORE_ROUNDINGS * UNIT / case.pairs, device=case.device)
    return Bounds(roundings * UNIT / case.pairs, {"cls_logits": gradient, "bbox_ctrness": gradient})


def _distributions(case: DenseCase) -> Bounds:
    """For each pair the mean of 4 sides' cross entropies towards two neighbouring bins, whose
    weights come from a distance of at most BINS."""
    of_softmax = BINS + 6 * X + 10 + FACTOR_ROUNDINGS
    largest = 2 * X + math.log(BINS)
    weight = case.found.weight.double()
    of_sum = of_softmax + 2 * BINS * largest + sum_roundings(4 * case.pairs) * largest
    shape = case.leaves["pred_dist"].shape[:2]
    spread = torch.zeros(shape, dtype=torch.float64, device=case.device)
    spread[case.found.where] = UNIT * weight * (of_softmax + 2 * BINS)
    return Bounds(UNIT * of_sum * weight.sum().item(), {"pred_dist": spread[..., None]})
