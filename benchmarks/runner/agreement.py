# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""How far a correct loss may be from the same formula in fp64, and the error of a wrong one.

The conformance suite bounds every rounding. Here only another formula would be found out, a pair
that is left out, or what leaks out of an unused slot: of most losses float32 leaves a tenth of what
is allowed, or less.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

LOSS_SHARE, GRADIENT_SHARE = 1e-5, 3e-6
# Of a GIoU of float32 boxes, whose formula has fewer than 32 roundings of at most 2.
GIOU_ERROR = 2 * 32 * 2.0**-24


class DisagreementError(Exception):
    """A loss is wrong."""


@dataclass(frozen=True)
class Truth:
    """The loss and its gradient in fp64, and how far a correct peer may be from them."""

    loss: float
    loss_allowed: float
    gradient: Tensor
    gradient_allowed: Tensor


def near_truth(
    loss: Tensor,
    gradient: Tensor,
    dtype: torch.dtype,
    gradient_share: float = GRADIENT_SHARE,
    loss_share: float = LOSS_SHARE,
) -> Truth:
    """By shares of the loss, and of a derivative and the largest of its box, or else of all; and
    by the gradient's last rounding, to `dtype`."""
    size = gradient.abs()
    if size.shape[-1] == 4:
        largest = size.amax(-1, keepdim=True)
        # A box's derivatives may cancel; then what others have says how large their parts are.
        largest = largest + torch.where(largest > 0, typical(gradient), 0.0)
    else:
        largest = size.max()
    limits = torch.finfo(dtype)
    # Half the spacing, which below the smallest normal number no longer shrinks.
    rounding = limits.eps / 2 * size.clamp(min=limits.smallest_normal)
    allowed = gradient_share * (size + largest) + rounding
    return Truth(loss.item(), loss_share * abs(loss.item()), gradient, allowed)


def typical(gradient: Tensor) -> Tensor:
    """The mean of the largest derivatives of boxes, of those that have any."""
    largest = gradient.abs().amax(-1)
    return largest.sum() / (largest > 0).sum().clamp(min=1)


def compare(name: str, loss: Tensor, gradient: Tensor, expected: Truth, case: str) -> None:
    """DisagreementError, unless both are right."""
    compare_entries(f"{name}: loss", loss, expected.loss, expected.loss_allowed, case)
    allowed = expected.gradient_allowed
    compare_entries(f"{name}: gradient", gradient, expected.gradient, allowed, case)


def compare_entries(
    name: str, found: Tensor, right: Tensor | float, allowed: Tensor | float, case: str
) -> None:
    """DisagreementError, unless all numbers are right."""
    right, allowed = (
        torch.as_tensor(each, dtype=torch.float64, device=found.device) for each in (right, allowed)
    )
    if found.shape != right.shape:
        shapes = f"{tuple(found.shape)} numbers for {tuple(right.shape)}"
        raise DisagreementError(f"{name}: {shapes}; {case}")
    # NaN must fail, hence "not within" and not "beyond".
    wrong = ~((found.double() - right).abs() <= allowed)
    if bool(wrong.any()):
        at = tuple(wrong.nonzero()[0].tolist())
        place = f" at {list(at)}" if at else ""
        off = allowed.expand_as(right)[at]
        raise DisagreementError(
            f"{name} {found[at].item():.9g}{place}, but the formula in fp64 gives "
            f"{right[at].item():.9g}; allowed difference {off.item():.2g}; {case}"
        )
