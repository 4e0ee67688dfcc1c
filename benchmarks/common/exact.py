# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The mean GIoU loss in fp64, on the very tensors that are then timed."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ..runner.agreement import LOSS_SHARE, Truth, compare, near_truth, typical
from .cases import Case
from .losses import giou

# Of the loss and of its gradient. In float64 what is left is an eps of 1e-7, which some variants
# add to a denominator, of 16 or more, where others clamp it.
SHARES, SHARES_IN_DOUBLE = (LOSS_SHARE, 2e-6), (5e-8, 1e-7)


def mean_giou_truth(pred: Tensor, counted: Tensor, target: Tensor) -> Truth:
    """Of the mean of 1 - GIoU of those of `pred` (..., 4) that are counted, a mask or rows of the
    flat list, each with its row of `target`."""
    flat = pred.detach().reshape(-1, 4)
    guesses = flat[counted].double().requires_grad_()
    loss = (1 - giou(guesses, target.double())).sum() / max(len(target), 1)
    (gradient,) = torch.autograd.grad(loss, guesses)
    in_double = torch.float64 in (pred.dtype, target.dtype)
    of_loss, of_gradient = SHARES_IN_DOUBLE if in_double else SHARES
    near = near_truth(loss, gradient, pred.dtype, of_gradient, of_loss)
    # Of equal boxes all derivatives are 0, or what is left of them.
    allowed = near.gradient_allowed + of_gradient * typical(gradient)
    spread = torch.zeros(2, *flat.shape, dtype=torch.float64, device=pred.device)
    spread[:, counted] = torch.stack([gradient, allowed])  # exactly 0 in all other rows
    return Truth(near.loss, near.loss_allowed, *spread.view(2, *pred.shape))


def truth(case: Case) -> Truth:
    target = next(iter(case.layouts.values()))[0]
    return mean_giou_truth(case.pred, case.counted.flatten(), target[case.counted])


def check(name: str, loss: Callable[[], Tensor], case: Case, expected: Truth) -> None:
    """DisagreementError, unless loss and gradient are right on this case."""
    value = loss()
    (gradient,) = torch.autograd.grad(value, case.pred)
    compare(name, value, gradient, expected, case.name)
