# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""No time is worth printing for a cost that is wrong: every variant must agree first.

Each is held, entry by entry, against the padded formula in fp64 on the very tensors that are then
timed. An assignment must be SciPy's own, or, from another's cost, as good but for roundings.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..common.agreement import LOSS_ROUNDINGS, UNIT, DisagreementError
from .cases import ASSIGNER, LARGEST_LOGIT, Case
from .formulas import CLOSE_TO_ZERO, FOCAL_ALPHA, class_cost, padded_cost, padded_overlaps
from .matchers import Matches
from .variants import Costs

# A term's factor, a sign, and at most three additions to the other terms; L1 has 3 roundings of its
# own besides, for the differences of its numbers are exact.
FACTOR_ROUNDINGS = 8

# An exponential, a logarithm, an arctangent: 4 ulp at most, of 2 units each. A logarithm near 0 may
# be an approximation of a GPU's: as many units, absolutely.
FUNCTION_ROUNDINGS = 8

# Of sigmoid(x): the exponential, 1 + it, the quotient, which a GPU approximates to 2 ulp. Compiled
# for a GPU the exponential is one of base 2, whose argument is rounded: x log2(e) < 2 x units.
# Then 1 - p has those of p, and its own.
SIGMOID_ROUNDINGS = FUNCTION_ROUNDINGS + 1 + 4 + 2 * LARGEST_LOGIT

# v is 4 / pi^2 d^2 with |d| <= pi / 2. Each angle, also at most pi / 2, has 3 roundings of its
# quotient (which changes it by less than half of what they change, relatively) and its function's:
# d is wrong by 2 * (pi / 2) * 10 + 2 and v by 8 / pi^2 * (pi / 2) * 34 + 4 < 48. Of
# alpha v = v^2 / (1 - iou + v) the derivative by v is at most 2, and by iou at most 1; rho^2 / c^2
# is at most 1 and has 12. All in all 2 * 48 + 2 * LOSS_ROUNDINGS + 12 and a few of sums.
CIOU_ROUNDINGS = 192


@dataclass(frozen=True)
class Truth:
    """Of one image in all layers, (layers, queries, true boxes): the cost in fp64, and how far a
    correct peer may be from it."""

    cost: Tensor
    allowed: Tensor


def truths(case: Case) -> list[Truth]:
    return [truth(case, image) for image in range(len(case.counts))]


def truth(case: Case, image: int) -> Truth:
    own = case.columns(image)
    pred, target = case.pred[:, image, None].double(), case.target[None, own].double()
    cost = case.cost
    if case.kind == ASSIGNER:
        exact = padded_overlaps(pred, target, cost.eps)[:, 0]
        return Truth(exact, torch.full_like(exact, CIOU_ROUNDINGS * UNIT))
    logits = labels = None
    if case.logits is not None:
        assert case.labels is not None
        logits, labels = case.logits[:, image, None].double(), case.labels[None, own]
    exact = padded_cost(pred, logits, target, labels, cost)[:, 0]
    # GIoU is at most 1, made of a quotient at most 1 and one of at most 2.
    roundings = cost.iou_weight * 2 * (LOSS_ROUNDINGS + FACTOR_ROUNDINGS)
    distance = torch.cdist(pred, target.expand(len(pred), -1, -1, -1), p=1)[:, 0]
    allowed = UNIT * (roundings + cost.l1_weight * FACTOR_ROUNDINGS * distance)
    if logits is not None:
        assert labels is not None
        allowed += UNIT * cost.class_weight * class_roundings(logits, labels, cost.class_mode)[:, 0]
    return Truth(exact, allowed)


def class_roundings(logits: Tensor, labels: Tensor, mode: str) -> Tensor:
    """How many units a class term may be wrong by."""
    size = class_cost(logits, labels, mode).abs()
    if mode == "softmax":
        # p = exp(x - s) or exp(x - m) / sum, with m the largest logit and s at most m + log C. Of
        # each difference the rounding is of its size, that of s too, and an error in an exponent is
        # one of its power, relatively: x - s, s, a sum's x - m are below 2 m + log C. The sum
        # itself has C - 1, and three functions and the quotient their own.
        largest = logits.abs().amax(-1, keepdim=True)
        classes = logits.shape[-1]
        exponents = 4 * (2 * largest + math.log(classes))
        return size * (exponents + classes + 4 * FUNCTION_ROUNDINGS + FACTOR_ROUNDINGS)
    index = labels[:, None].expand(*logits.shape[:-1], -1)
    p = logits.gather(-1, index).sigmoid()
    rest = 1 - p
    # A logarithm's is that of its argument, relatively, and its own; a square's twice its side's.
    log_p, log_rest = -(p + CLOSE_TO_ZERO).log(), -(rest + CLOSE_TO_ZERO).log()
    positive = rest**2 * (SIGMOID_ROUNDINGS + 1 + FUNCTION_ROUNDINGS * (1 + log_p))
    positive += 2 * rest * (SIGMOID_ROUNDINGS + 1) * log_p
    of_rest = (SIGMOID_ROUNDINGS * p + 2) / rest
    negative = p**2 * (of_rest + FUNCTION_ROUNDINGS * (1 + log_rest))
    negative += p**2 * 2 * SIGMOID_ROUNDINGS * log_rest
    # Either power has its own besides.
    factors = (FACTOR_ROUNDINGS + FUNCTION_ROUNDINGS) * (rest**2 * log_p + p**2 * log_rest)
    return FOCAL_ALPHA * positive + (1 - FOCAL_ALPHA) * negative + factors


def check(name: str, costs: Costs, case: Case, expected: list[Truth]) -> None:
    """DisagreementError, unless all entries are right."""
    result = costs.call()
    for image, right in enumerate(expected):
        for layer, (exact, allowed) in enumerate(zip(right.cost, right.allowed, strict=True)):
            found = costs.block(result, layer, image)
            if found.shape != exact.shape:
                raise DisagreementError(
                    f"{name}: {tuple(found.shape)} entries for {tuple(exact.shape)}; {case.name}"
                )
            # NaN must fail, hence "not within" and not "beyond".
            wrong = ~((found.double() - exact).abs() <= allowed)
            if bool(wrong.any()):
                query, box = (int(i) for i in wrong.nonzero()[0])
                raise DisagreementError(
                    f"{name}: {found[query, box].item():.9g} for query {query} and box {box} in "
                    f"image {image} of layer {layer}, but the formula in fp64 gives "
                    f"{exact[query, box].item():.9g}; allowed difference "
                    f"{allowed[query, box].item():.2g}; {case.name}"
                )


def check_same(name: str, found: tuple[Tensor, Tensor], loop: tuple[Tensor, Tensor]) -> None:
    """The same pairs in each layer, in any order."""
    for which, one, other in zip(("pred", "target"), _ordered(found), _ordered(loop), strict=True):
        if not torch.equal(one, other):
            raise DisagreementError(f"{name}: {which}_index is not SciPy's on each image")


def _ordered(pairs: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    pred_index, order = pairs[0].sort()
    return pred_index, pairs[1].gather(-1, order)


def check_best(name: str, matches: Matches, best: Matches, case: Case, right: list[Truth]) -> None:
    """A match that is best for costs that are wrong by `allowed` is, with the true costs, worse
    than the best by no more than all that its entries and the best's may be wrong by."""
    for layer, (found, wanted) in enumerate(zip(matches, best, strict=True)):
        for image, ((src, tgt), best_pairs) in enumerate(zip(found, wanted, strict=True)):
            size = case.shape.queries // case.shape.groups
            for group in range(case.shape.groups):
                own = src // size == group
                n = min(size, case.counts[image])
                if not len(src[own].unique()) == len(tgt[own].unique()) == int(own.sum()) == n:
                    raise DisagreementError(
                        f"{name}: image {image} of layer {layer} is not matched"
                    )
            cost, allowed = right[image].cost[layer].cpu(), right[image].allowed[layer].cpu()
            excess = cost[src, tgt].sum() - cost[best_pairs].sum()
            may = allowed[src, tgt].sum() + allowed[best_pairs].sum()
            if not abs(excess) <= may:
                raise DisagreementError(
                    f"{name}: image {image} of layer {layer} is matched at {excess:.3g} more than "
                    f"needed; allowed {may:.2g}; {case.name}"
                )
