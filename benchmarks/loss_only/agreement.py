# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""No time is worth printing for a loss that is wrong: every peer must agree with boxloss first.

Both are held against the eager formula in fp64 on the very tensors that are then timed. That is
stricter than comparing them with each other, and it says which of them is wrong.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..common.agreement import (
    GRADIENT_ROUNDINGS,
    LOSS_ROUNDINGS,
    Truth,
    compare,
    rounding_to,
    steepness,
    sum_roundings,
)
from ..common.cases import SHORTEST_SIDE, Case
from ..common.losses import EPS, Loss, giou

# Some peers add an eps of 1e-7 to both denominators, others clamp them at EPS. No union is below
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


def check(name: str, loss: Loss, case: Case, targets: tuple[Tensor, ...], expected: Truth) -> None:
    """DisagreementError, unless the loss and its gradient are right on this case."""
    value = loss(case.pred, *targets)
    (gradient,) = torch.autograd.grad(value, case.pred)
    compare(name, value, gradient, expected, case.name)


def compute_dtype(case: Case) -> torch.dtype:
    """fp64 when either box tensor is, else fp32."""
    target = next(iter(case.layouts.values()))[0]
    return torch.float64 if torch.float64 in (case.pred.dtype, target.dtype) else torch.float32


def _spread(rows: Tensor, case: Case) -> Tensor:
    spread = rows.new_zeros(case.pred.shape)
    spread[case.counted] = rows
    return spread
