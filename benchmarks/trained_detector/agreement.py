# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""No detector is worth training with a loss that is wrong: all variants must agree first.

Each variant's loss and gradient are compared with the eager formula in fp64. The predictions of the
cells with a face lie near its box, so that boxes overlap; all others hold NaN, so that a pair which
does not count, or an index that leads astray, is found out.
"""

from __future__ import annotations

from collections.abc import Sequence

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
)
from ..common.losses import giou
from .model import CELLS
from .pictures import Assigned
from .variants import Variant, positions

JITTER = 8  # pixels


def probe_predictions(pairs: Sequence[Assigned], seed: int) -> Tensor:
    """(B, 256, 4): in each cell with a face a jittered, well-ordered copy of its box."""
    boxes = torch.cat([each for each, _ in pairs])
    generator = torch.Generator().manual_seed(seed)
    jittered = boxes + torch.randn(boxes.shape, generator=generator) * JITTER
    pred = torch.full((len(pairs) * CELLS**2, 4), torch.nan)
    pred[positions(pairs)] = jittered.view(-1, 2, 2).sort(dim=1).values.view(-1, 4)
    return pred.view(len(pairs), CELLS**2, 4)


def truth(pred: Tensor, pairs: Sequence[Assigned]) -> Truth:
    """Of the loss of `pairs`, in fp64, on the CPU."""
    where = positions(pairs)
    guesses = pred.view(-1, 4)[where].double().requires_grad_()
    truths = torch.cat([boxes for boxes, _ in pairs]).double()
    count = max(len(truths), 1)
    loss = (1 - giou(guesses, truths)).sum() / count
    (gradient,) = torch.autograd.grad(loss, guesses)
    # A loss is at most 2; a sum of n terms has n - 1 roundings, and the division one.
    loss_allowed = 2 * (LOSS_ROUNDINGS + count) * UNIT
    allowed = GRADIENT_ROUNDINGS * UNIT * steepness(guesses, truths)[:, None] / count
    allowed = allowed + rounding_to(torch.float32, gradient)
    spread = pred.new_zeros(2, pred.numel() // 4, 4, dtype=torch.float64)
    spread[0, where], spread[1, where] = gradient, allowed  # exactly 0 in all other cells
    return Truth(loss.item(), loss_allowed, *spread.view(2, *pred.shape))


def check(name: str, variant: Variant, pairs: Sequence[Assigned], device: torch.device) -> float:
    """The variant's loss of these pairs, or DisagreementError."""
    pred = probe_predictions(pairs, seed=0)
    probe = pred.to(device).requires_grad_()
    targets = (
        each.to(device) if isinstance(each, Tensor) else each for each in variant.lay_out(pairs)
    )
    loss = variant.loss(probe, *targets)
    (gradient,) = torch.autograd.grad(loss, probe)
    compare(name, loss, gradient.cpu(), truth(pred, pairs), f"{len(pairs)} pictures")
    return loss.item()
