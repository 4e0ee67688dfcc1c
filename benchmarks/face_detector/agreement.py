# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""No time is worth printing for a loss that is wrong: all variants must agree first.

Each variant's loss and gradient on one batch are compared with the eager formula in fp64. The
predictions lie near the true boxes, so that boxes overlap; every slot without a true box holds NaN,
so that a mask that leaks is found out.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..common.agreement import GRADIENT_ROUNDINGS, LOSS_ROUNDINGS, UNIT, DisagreementError
from ..common.losses import Loss, giou
from .variants import Targets


def probe_predictions(boxes: list[Tensor], slots: int, dtype: torch.dtype, seed: int) -> Tensor:
    """(B, slots, 4): a jittered, well-ordered copy of each true box; NaN where there is none."""
    generator = torch.Generator().manual_seed(seed)
    pred = torch.full((len(boxes), slots, 4), torch.nan)
    for row, truths in zip(pred, boxes, strict=True):
        jittered = truths + torch.randn(truths.shape, generator=generator) * 8
        corners = jittered.view(-1, 2, 2).sort(dim=1).values
        row[: len(truths)] = corners.view(-1, 4)
    return pred.to(dtype)


def check(name: str, loss: Loss, pred: Tensor, targets: Targets, boxes: list[Tensor]) -> float:
    """The variant's loss on this batch, or DisagreementError. `boxes` are on the CPU."""
    probe = pred.detach().clone().requires_grad_()
    value = loss(probe, *targets)
    value.backward()
    gradient = probe.grad
    assert gradient is not None

    truth, truth_gradient, steepest = _reference(pred.cpu(), boxes)
    longest_sum = sum(pred.shape[:2])  # the loop adds slots, then pictures
    tolerance = 2 * (LOSS_ROUNDINGS + longest_sum) * UNIT  # a loss is at most 2
    # NaN must fail, hence "not within" and not "beyond".
    if not abs(value.item() - truth) <= tolerance:
        raise DisagreementError(
            f"{name}: loss {value.item():.9g}, but the eager formula in fp64 gives {truth:.9g}; "
            f"allowed difference {tolerance:.2g}"
        )
    # The gradient is computed in fp32 and rounded once to the predictions' dtype.
    rounding = torch.finfo(pred.dtype).eps / 2
    allowed = GRADIENT_ROUNDINGS * UNIT * steepest + rounding * truth_gradient.abs()
    excess = (gradient.cpu().double() - truth_gradient).abs() - allowed
    if not bool((excess <= 0).all()):
        where = int(excess.nan_to_num(nan=torch.inf).argmax())
        picture, slot, corner = (
            int(i) for i in torch.unravel_index(torch.tensor(where), pred.shape)
        )
        raise DisagreementError(
            f"{name}: gradient {gradient.flatten()[where].item():.9g} of coordinate {corner} of "
            f"prediction {slot} of picture {picture}, but the eager formula in fp64 gives "
            f"{truth_gradient.flatten()[where].item():.9g}; "
            f"allowed difference {allowed.flatten()[where].item():.2g}"
        )
    return value.item()


def _reference(pred: Tensor, boxes: list[Tensor]) -> tuple[float, Tensor, Tensor]:
    """Loss, gradient and side/U of the derivation above, in fp64."""
    counts = torch.arange(pred.shape[1]) < torch.tensor([len(b) for b in boxes])[:, None]
    guesses = pred[counts].double().requires_grad_()
    truths = torch.cat(boxes).double()
    count = max(len(truths), 1)
    loss = (1 - giou(guesses, truths)).sum() / count
    (gradient,) = torch.autograd.grad(loss, guesses)
    outer = torch.maximum(guesses, truths)[:, 2:] - torch.minimum(guesses, truths)[:, :2]
    areas = [(b[:, 2:] - b[:, :2]).prod(dim=1) for b in (guesses, truths)]
    steepness = outer.amax(dim=1) / torch.maximum(*areas) / count  # the larger area is at most U
    return loss.item(), _scatter(gradient, counts), _scatter(steepness[:, None].detach(), counts)


def _scatter(rows: Tensor, counts: Tensor) -> Tensor:
    """Rows back to their slots; zero, exactly, where there is no true box."""
    slots = torch.zeros(*counts.shape, 4, dtype=rows.dtype)
    slots[counts] = rows.expand(-1, 4)
    return slots
