# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Losses are held against the formula in fp64, which is never there for more than a chunk of the
boxes: in the dense sweep not even their gradients would fit."""

from __future__ import annotations

import torch
from torch import Tensor

from ..common.agreement import (
    GRADIENT_ROUNDINGS,
    LOSS_ROUNDINGS,
    UNIT,
    Truth,
    compare,
    rounding_to,
    steepness,
    sum_roundings,
)
from ..common.cases import Case
from ..common.losses import giou
from ..loss_only.agreement import EPS_SHIFT, truth
from .cases import Subject, chunks

SAMPLE = 2**16  # boxes at the beginning, in the middle and at the end, whose gradient is looked at

Differences = dict[str, float]  # of each loss from the exact one


def check_ragged(subject: Subject, case: Case) -> Differences:
    """DisagreementError, unless every loss and its gradient are right."""
    expected = truth(case)
    found = {}
    for name, loss in subject.losses.items():
        value = loss()
        (gradient,) = torch.autograd.grad(value, subject.pred)
        compare(name, value, gradient, expected, case.name)
        found[name] = abs(value.item() - expected.loss)
    return found


def check_dense(subject: Subject, target: Tensor) -> Differences:
    """The same; of the gradients samples."""
    pred, boxes = subject.pred.detach(), subject.boxes
    exact = exact_sum(pred, target) / boxes
    found = {}
    for name, loss in subject.losses.items():
        value = loss()
        (gradient,) = torch.autograd.grad(value, subject.pred)
        for part in samples(boxes):
            expected = _truth(pred[part], target[part], boxes, exact)
            compare(name, value, gradient[part], expected, f"{boxes:,} pairs, from {part.start:,}")
        found[name] = abs(value.item() - exact)
    return found


def exact_sum(pred: Tensor, target: Tensor) -> float:
    """Of the losses."""
    total = torch.zeros((), dtype=torch.float64, device=pred.device)
    for part in chunks(len(pred)):
        total += (1 - giou(pred[part].double(), target[part].double())).sum()
    return total.item()


def loss_allowed(boxes: int) -> float:
    """Between a mean loss and the exact one."""
    return 2 * (LOSS_ROUNDINGS + sum_roundings(boxes)) * UNIT + EPS_SHIFT  # a loss is at most 2


def samples(boxes: int) -> list[slice]:
    """Each once: of few boxes they are the same."""
    size = min(SAMPLE, boxes)
    firsts = dict.fromkeys((0, (boxes - size) // 2, boxes - size))
    return [slice(first, first + size) for first in firsts]


def _truth(pred: Tensor, target: Tensor, boxes: int, exact: float) -> Truth:
    """Of the loss of all boxes, with the gradient of these."""
    guesses, truths = pred.double().requires_grad_(), target.double()
    (gradient,) = torch.autograd.grad((1 - giou(guesses, truths)).sum() / boxes, guesses)
    steepest = steepness(guesses, truths)[:, None] / boxes
    allowed = (GRADIENT_ROUNDINGS * UNIT + 5 * EPS_SHIFT) * steepest
    return Truth(exact, loss_allowed(boxes), gradient, allowed + rounding_to(pred.dtype, gradient))
