# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""No time is worth printing for a loss that is wrong: every variant must agree first.

Each is held against the aligned formula in fp64 on the very tensors that are then timed: its total,
the gradient of the predictions, and each pair's IoU.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..common.agreement import (
    GRADIENT_ROUNDINGS,
    LOSS_ROUNDINGS,
    UNIT,
    DisagreementError,
    Truth,
    compare,
    rounding_to,
    steepness,
    sum_roundings,
)
from .cases import Case
from .variants import PairLoss, corners, giou_of, iou_and_union

# A pair's factors come after its loss, or after any of its derivatives: its weight, the normalizer,
# the weights of GIoU and L1, and sums of those two. A pair's L1 distance has 3 roundings of its
# own, for the differences of its numbers are exact, or nearly: the 8 hold them too.
FACTOR_ROUNDINGS = 8


@dataclass(frozen=True)
class PairTruth:
    sums: Truth
    iou: Tensor


def truth(case: Case) -> PairTruth:
    guesses = case.pred.detach().flatten(0, -2)[case.pred_index.flatten()].double()
    truths = case.target[case.target_index.flatten()].double()
    guesses.requires_grad_()
    one, other = guesses, truths
    if case.box_format == "cxcywh":
        one, other = corners(guesses), corners(truths)
    iou, union = iou_and_union(one, other, case.eps)
    losses = 1 - giou_of(one, other, iou, union, case.eps)
    distances = (guesses - truths).abs().sum(-1)
    factor = torch.ones_like(iou) if case.weight is None else case.weight.double()
    if case.normalizer is not None:
        factor = factor / case.normalizer.double()
    terms = factor * (case.giou_weight * losses + case.l1_weight * distances)
    (gradient,) = torch.autograd.grad(terms.sum(), guesses)

    with torch.no_grad():
        largest = factor * (
            case.giou_weight * 2 + case.l1_weight * distances
        )  # a loss is at most 2
        roundings = LOSS_ROUNDINGS + FACTOR_ROUNDINGS + sum_roundings(case.pairs)
        loss_allowed = roundings * UNIT * largest.sum().item()
        # Roundings are of side / U, for a corner. A centre's derivative is the sum of two corners',
        # hence twice. Gradients of a row that repeats add up, each at most 5 side / U.
        repeats = int(torch.bincount(case.pred_index.flatten()).max())
        roundings = GRADIENT_ROUNDINGS + FACTOR_ROUNDINGS + 5 * repeats
        giou_part = 2 * roundings * case.giou_weight * steepness(one, other)
        l1_part = (FACTOR_ROUNDINGS + repeats) * case.l1_weight
        allowed = UNIT * (factor * (giou_part + l1_part))[:, None].expand(-1, 4)
        gradient, allowed = _spread(gradient, case), _spread(allowed, case)
        allowed += rounding_to(case.pred.dtype, gradient)
    sums = Truth(terms.sum().item(), loss_allowed, gradient, allowed)
    return PairTruth(sums, iou.detach().view(case.pred_index.shape))


def check(name: str, loss: PairLoss, case: Case, expected: PairTruth) -> None:
    """DisagreementError, unless total, gradient and IoUs are right on this case."""
    result = loss(case.pred)
    # A copy: a CUDA graph's results do not outlast its next replay.
    iou = None if result.iou is None else result.iou.detach().clone()
    (gradient,) = torch.autograd.grad(result.total, case.pred)
    compare(name, result.total, gradient, expected.sums, case.name)
    if not case.l1_weight:
        return
    if iou is None or iou.shape != expected.iou.shape:
        raise DisagreementError(f"{name}: IoU is missing or of another shape; {case.name}")
    allowed = LOSS_ROUNDINGS * UNIT
    excess = (iou.double() - expected.iou).abs().max().item()
    if not excess <= allowed:
        raise DisagreementError(
            f"{name}: IoU is off by {excess:.2g}; allowed difference {allowed:.2g}; {case.name}"
        )


def _spread(rows: Tensor, case: Case) -> Tensor:
    """To the predictions they are of, where they add up."""
    spread = rows.new_zeros(case.pred.shape)
    spread.view(-1, 4).index_add_(0, case.pred_index.flatten(), rows)
    return spread
