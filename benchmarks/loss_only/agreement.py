# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""No time is worth printing for a loss that is wrong: every peer must agree with boxloss first.

Both are held against the eager formula in fp64 on the very tensors that are then timed. That is
stricter than comparing them with each other, and it says which of them is wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..common.agreement import GRADIENT_ROUNDINGS, LOSS_ROUNDINGS, DisagreementError
from ..common.cases import SHORTEST_SIDE, Case
from ..common.losses import EPS, Loss, giou

# A sum of n terms has n - 1 roundings, and in an unknown order all of them may hit the total: n * u
# bounds them but says nothing at 33 million boxes. Taken as independent with mean zero they stay
# below LAMBDA * sqrt(n) * u with probability 1 - 2 * exp(-LAMBDA^2 / 2), here all but 3e-8
# (Higham and Mary, 2019).
LAMBDA = 6

# Some peers add an eps of 1e-7 to both denominators, others clamp them at EPS. No union is below
# the smallest true box: a clamp does nothing, and adding shifts each of the two quotients, at most
# 1, by eps / area, and its derivatives by no more than four times that.
EPS_SHIFT = 4 * 1e-7 / SHORTEST_SIDE**2
assert EPS < SHORTEST_SIDE**2


@dataclass(frozen=True)
class Truth:
    """The loss and its gradient in fp64, and how far a correct peer may be from them."""

    loss: float
    loss_allowed: float
    gradient: Tensor
    gradient_allowed: Tensor


def truth(case: Case) -> Truth:
    guesses, truths = (boxes.double() for boxes in case.pairs())
    guesses.requires_grad_()
    count = max(case.boxes, 1)
    loss = (1 - giou(guesses, truths)).sum() / count
    (gradient,) = torch.autograd.grad(loss, guesses)

    unit = torch.finfo(compute_dtype(case)).eps / 2
    roundings = LOSS_ROUNDINGS + LAMBDA * math.sqrt(case.boxes)
    loss_allowed = 2 * roundings * unit + EPS_SHIFT  # a loss is at most 2
    # These roundings are of side / U, and terms add up to 5 of it. Here the larger area, which is
    # at most U, stands in for U.
    with torch.no_grad():
        outer = torch.maximum(guesses, truths)[:, 2:] - torch.minimum(guesses, truths)[:, :2]
        areas = [(b[:, 2:] - b[:, :2]).prod(dim=1) for b in (guesses, truths)]
        steepest = outer.amax(dim=1) / torch.maximum(*areas) / count
    # The gradient is rounded once more to the predictions' dtype: by half its spacing there, which
    # below the smallest normal number no longer shrinks.
    pred = torch.finfo(case.pred.dtype)
    allowed = (GRADIENT_ROUNDINGS * unit + 5 * EPS_SHIFT) * steepest[:, None] + (
        pred.eps / 2 * gradient.abs().clamp(min=pred.smallest_normal)
    )
    return Truth(loss.item(), loss_allowed, _spread(gradient, case), _spread(allowed, case))


def check(name: str, loss: Loss, case: Case, targets: tuple[Tensor, ...], expected: Truth) -> None:
    """DisagreementError, unless the loss and its gradient are right on this case."""
    value = loss(case.pred, *targets)
    (gradient,) = torch.autograd.grad(value, case.pred)
    # NaN must fail, hence "not within" and not "beyond".
    if not abs(value.item() - expected.loss) <= expected.loss_allowed:
        raise DisagreementError(
            f"{name}: loss {value.item():.9g}, but the eager formula in fp64 gives "
            f"{expected.loss:.9g}; allowed difference {expected.loss_allowed:.2g}; {case.name}"
        )
    excess = (gradient.double() - expected.gradient).abs() - expected.gradient_allowed
    if not bool((excess <= 0).all()):
        where = int(excess.nan_to_num(nan=torch.inf).argmax())
        index = [int(i) for i in torch.unravel_index(torch.tensor(where), gradient.shape)]
        raise DisagreementError(
            f"{name}: gradient {gradient.flatten()[where].item():.9g} at {index}, but the eager "
            f"formula in fp64 gives {expected.gradient.flatten()[where].item():.9g}; allowed "
            f"difference {expected.gradient_allowed.flatten()[where].item():.2g}; {case.name}"
        )


def compute_dtype(case: Case) -> torch.dtype:
    """fp64 when either box tensor is, else fp32."""
    target = next(iter(case.layouts.values()))[0]
    return torch.float64 if torch.float64 in (case.pred.dtype, target.dtype) else torch.float32


def _spread(rows: Tensor, case: Case) -> Tensor:
    spread = rows.new_zeros(case.pred.shape)
    spread[case.counted] = rows
    return spread
