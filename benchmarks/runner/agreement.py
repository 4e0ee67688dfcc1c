# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""How far a correct loss may be from the eager formula in fp64, and the error of a wrong one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..common.losses import giou

# Roundings, counted along the formula for a well-ordered prediction and a target of one pixel or
# more. A difference of corners has 1 (corners are exact in the dtype that is computed in); an area
# 3; the union 8 of its own size, for either area is at most the union; the enclosing area 3; a
# quotient those of both sides and its own; then come three operations on at most 2: under 32.
# The gradient of 2 - I/U - U/C is a sum of terms of at most 5 side/U together, because I <= U <= C
# and `side` bounds every derivative of an area; none has more than 24 roundings: under 128 side/U.
LOSS_ROUNDINGS = 32
GRADIENT_ROUNDINGS = 128
UNIT = 2.0**-24  # a rounding in float32

# A sum of n terms has n - 1 roundings, and in an unknown order all of them may hit the total: n * u
# bounds them but says nothing at 33 million boxes. Taken as independent with mean zero they stay
# below LAMBDA * sqrt(n) * u with probability 1 - 2 * exp(-LAMBDA^2 / 2), here all but 3e-8
# (Higham and Mary, 2019).
LAMBDA = 6


class DisagreementError(Exception):
    """A loss is wrong."""


@dataclass(frozen=True)
class Truth:
    """The loss and its gradient in fp64, and how far a correct peer may be from them."""

    loss: float
    loss_allowed: float
    gradient: Tensor
    gradient_allowed: Tensor


def sum_roundings(terms: int) -> float:
    return LAMBDA * math.sqrt(terms)


def steepness(guesses: Tensor, truths: Tensor) -> Tensor:
    """side / U of corner boxes (n, 4), where the larger area, which is at most U, stands in."""
    with torch.no_grad():
        outer = torch.maximum(guesses, truths)[:, 2:] - torch.minimum(guesses, truths)[:, :2]
        areas = [(b[:, 2:] - b[:, :2]).prod(dim=1) for b in (guesses, truths)]
        return outer.amax(dim=1) / torch.maximum(*areas)


def rounding_to(dtype: torch.dtype, exact: Tensor) -> Tensor:
    """Of one conversion: half the spacing, which below the smallest normal number no longer
    shrinks."""
    limits = torch.finfo(dtype)
    return limits.eps / 2 * exact.abs().clamp(min=limits.smallest_normal)


def giou_sum(pred: Tensor, target: Tensor, boxes: int) -> tuple[Tensor, Tensor, Tensor]:
    """The sum of these pairs' losses over `boxes`, which may be more, its gradient, and the
    steepness (n, 1) of each pair's; in fp64."""
    guesses, truths = pred.double().requires_grad_(), target.double()
    loss = (1 - giou(guesses, truths)).sum() / boxes
    (gradient,) = torch.autograd.grad(loss, guesses)
    return loss, gradient, steepness(guesses, truths)[:, None] / boxes


def mean_giou_truth(pred: Tensor, rows: Tensor, truths: Tensor) -> Truth:
    """Of the mean of 1 - GIoU over these rows of all predictions (..., 4), each with its row of
    `truths`; on the CPU."""
    count = max(len(truths), 1)
    loss, gradient, steepest = giou_sum(pred.reshape(-1, 4)[rows], truths, count)
    # A loss is at most 2; a sum of n terms has n - 1 roundings in any order, the division one.
    loss_allowed = 2 * (LOSS_ROUNDINGS + count) * UNIT
    allowed = GRADIENT_ROUNDINGS * UNIT * steepest + rounding_to(pred.dtype, gradient)
    spread = torch.zeros(2, pred.numel() // 4, 4, dtype=torch.float64)
    spread[:, rows] = torch.stack([gradient, allowed])  # exactly 0 in all other rows
    return Truth(loss.item(), loss_allowed, *spread.view(2, *pred.shape))


# For sums that are no mean GIoU. float32 leaves a tenth of this, and bounds that count roundings as
# above allow more of a sum, and of most derivatives.
LOSS_SHARE, GRADIENT_SHARE = 1e-5, 5e-6


def near_truth(
    loss: Tensor, gradient: Tensor, dtype: torch.dtype, gradient_share: float = GRADIENT_SHARE
) -> Truth:
    """By shares of the loss, and of a derivative and the largest of its box, or else of all."""
    size = gradient.abs()
    largest = size.amax(-1, keepdim=True) if size.shape[-1] == 4 else size.max()
    allowed = gradient_share * (size + largest) + rounding_to(dtype, gradient)
    return Truth(loss.item(), LOSS_SHARE * abs(loss.item()), gradient, allowed)


def compare(name: str, loss: Tensor, gradient: Tensor, expected: Truth, case: str) -> None:
    """DisagreementError, unless both are right."""
    # NaN must fail, hence "not within" and not "beyond".
    if not abs(loss.item() - expected.loss) <= expected.loss_allowed:
        raise DisagreementError(
            f"{name}: loss {loss.item():.9g}, but the formula in fp64 gives "
            f"{expected.loss:.9g}; allowed difference {expected.loss_allowed:.2g}; {case}"
        )
    excess = (gradient.double() - expected.gradient).abs() - expected.gradient_allowed
    if not bool((excess <= 0).all()):
        where = int(excess.nan_to_num(nan=torch.inf).argmax())
        index = [int(i) for i in torch.unravel_index(torch.tensor(where), gradient.shape)]
        raise DisagreementError(
            f"{name}: gradient {gradient.flatten()[where].item():.9g} at {index}, but the "
            f"formula in fp64 gives {expected.gradient.flatten()[where].item():.9g}; allowed "
            f"difference {expected.gradient_allowed.flatten()[where].item():.2g}; {case}"
        )
