# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The mean GIoU loss of a case in fp64, on the very tensors that are then timed."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ..runner.agreement import (
    GRADIENT_ROUNDINGS,
    LOSS_ROUNDINGS,
    UNIT,
    Truth,
    compare,
    giou_sum,
    rounding_to,
    sum_roundings,
)
from .cases import SHORTEST_SIDE, Case
from .losses import EPS

# Some variants add an eps of 1e-7 to both denominators, others clamp them at EPS. No union is below
# the smallest true box: a clamp does nothing, and adding shifts each of the two quotients, at most
# 1, by eps / area, and its derivatives by no more than four times that.
EPS_SHIFT = 4 * 1e-7 / SHORTEST_SIDE**2
assert EPS < SHORTEST_SIDE**2


def truth(case: Case) -> Truth:
    unit = torch.finfo(compute_dtype(case)).eps / 2
    loss, gradient, allowed = sum_truth(*case.pairs(), max(case.boxes, 1), unit)
    gradient, allowed = _spread(gradient, case), _spread(allowed, case)
    return Truth(loss.item(), loss_allowed(case.boxes, unit), gradient, allowed)


def sum_truth(
    pred: Tensor, target: Tensor, boxes: int, unit: float = UNIT
) -> tuple[Tensor, Tensor, Tensor]:
    """`giou_sum`, with how far a correct gradient may be from it in place of the steepness."""
    loss, gradient, steepest = giou_sum(pred, target, boxes)
    # These roundings are of side / U, and terms add up to 5 of it.
    allowed = (GRADIENT_ROUNDINGS * unit + 5 * EPS_SHIFT) * steepest
    # The gradient is rounded once more, to the predictions' dtype.
    return loss, gradient, allowed + rounding_to(pred.dtype, gradient)


def loss_allowed(boxes: int, unit: float = UNIT) -> float:
    """Between the mean loss of so many and the exact one."""
    return 2 * (LOSS_ROUNDINGS + sum_roundings(boxes)) * unit + EPS_SHIFT  # a loss is at most 2


def check(name: str, loss: Callable[[], Tensor], case: Case, expected: Truth) -> float:
    """The loss' error, or DisagreementError, unless it and its gradient are right on this case."""
    value = loss()
    (gradient,) = torch.autograd.grad(value, case.pred)
    compare(name, value, gradient, expected, case.name)
    return abs(value.item() - expected.loss)


def compute_dtype(case: Case) -> torch.dtype:
    """fp64 when either box tensor is, else fp32."""
    target = next(iter(case.layouts.values()))[0]
    return torch.float64 if torch.float64 in (case.pred.dtype, target.dtype) else torch.float32


def _spread(rows: Tensor, case: Case) -> Tensor:
    spread = rows.new_zeros(case.pred.shape)
    spread[case.counted] = rows
    return spread
