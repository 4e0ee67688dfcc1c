# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The mean GIoU loss of a case in fp64, on the very tensors that are then timed."""

from __future__ import annotations

import torch
from torch import Tensor

from ..runner.agreement import (
    GRADIENT_ROUNDINGS,
    LOSS_ROUNDINGS,
    Truth,
    rounding_to,
    steepness,
    sum_roundings,
)
from .cases import SHORTEST_SIDE, Case
from .losses import EPS, giou

# Some variants add an eps of 1e-7 to both denominators, others clamp them at EPS. No union is below
# the smallest true box: a clamp does nothing, and adding shifts each of the two quotients, at most
# 1, by eps / area, and its derivatives by no more than four times that.
EPS_SHIFT = 4 * 1e-7 / SHORTEST_SIDE**2
assert EPS < SHORTEST_SIDE**2


def truth(case: Case) -> Truth:
    guesses, truths = (boxes.double() for boxes in case.pairs())
    guesses.requires_grad_()
    count = max(case.boxes, 1)
    loss = (1 - giou(guesses, truths)).sum() / count
    (gradient,) = torch.autograd.grad(loss, guesses)

    unit = torch.finfo(compute_dtype(case)).eps / 2
    roundings = LOSS_ROUNDINGS + sum_roundings(case.boxes)
    loss_allowed = 2 * roundings * unit + EPS_SHIFT  # a loss is at most 2
    # These roundings are of side / U, and terms add up to 5 of it.
    steepest = steepness(guesses, truths)[:, None] / count
    # The gradient is rounded once more, to the predictions' dtype.
    allowed = (GRADIENT_ROUNDINGS * unit + 5 * EPS_SHIFT) * steepest + (
        rounding_to(case.pred.dtype, gradient)
    )
    return Truth(loss.item(), loss_allowed, _spread(gradient, case), _spread(allowed, case))


def compute_dtype(case: Case) -> torch.dtype:
    """fp64 when either box tensor is, else fp32."""
    target = next(iter(case.layouts.values()))[0]
    return torch.float64 if torch.float64 in (case.pred.dtype, target.dtype) else torch.float32


def _spread(rows: Tensor, case: Case) -> Tensor:
    spread = rows.new_zeros(case.pred.shape)
    spread[case.counted] = rows
    return spread
