# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The mean GIoU loss in fp64, on the very tensors that are then timed."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ..runner.agreement import Truth, compare, near_truth
from .cases import Case
from .losses import giou

# Of many millions of boxes some have derivatives that nearly cancel. Variants that add an eps of
# 1e-7 to a denominator, where others clamp it, are 100 times nearer, also in float64.
GRADIENT_SHARE, SHARE_IN_DOUBLE = 1e-5, 1e-7


def mean_giou_truth(pred: Tensor, counted: Tensor, target: Tensor) -> Truth:
    """Of the mean of 1 - GIoU of those of `pred` (..., 4) that are counted, a mask or rows of the
    flat list, each with its row of `target`."""
    flat = pred.detach().reshape(-1, 4)
    guesses = flat[counted].double().requires_grad_()
    loss = (1 - giou(guesses, target.double())).sum() / max(len(target), 1)
    (of_counted,) = torch.autograd.grad(loss, guesses)
    gradient = torch.zeros_like(flat, dtype=torch.float64)  # exactly 0 in all other rows
    gradient[counted] = of_counted
    in_double = torch.float64 in (pred.dtype, target.dtype)
    share = SHARE_IN_DOUBLE if in_double else GRADIENT_SHARE
    return near_truth(loss, gradient.view(pred.shape), pred.dtype, share)


def truth(case: Case) -> Truth:
    target = next(iter(case.layouts.values()))[0]
    return mean_giou_truth(case.pred, case.counted.flatten(), target[case.counted])


def check(name: str, loss: Callable[[], Tensor], case: Case, expected: Truth) -> None:
    """DisagreementError, unless loss and gradient are right on this case."""
    value = loss()
    (gradient,) = torch.autograd.grad(value, case.pred)
    compare(name, value, gradient, expected, case.name)
