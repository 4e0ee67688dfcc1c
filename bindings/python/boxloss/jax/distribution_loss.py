# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Losses of boxes whose sides are distributions over bins, by what a matcher has found."""

from jax import Array
from jax.typing import ArrayLike

from .._options import DistributionLossMode, Reduction
from .custom_vjp import losses_of
from .formula import distribution_loss_by_formula
from .loss_of_logits import loss_of_logits

_DISTRIBUTION_LOSS = loss_of_logits("distribution_loss", distribution_loss_by_formula)


def distribution_loss(
    logits: ArrayLike,
    target_index: ArrayLike,
    *,
    mode: DistributionLossMode,
    quality: ArrayLike | None = None,
    reference: ArrayLike | None = None,
    target: ArrayLike | None = None,
    edges: ArrayLike | None = None,
    reg_scale: float = 4.0,
    teacher: ArrayLike | None = None,
    confidence: ArrayLike | None = None,
    temperature: float = 5.0,
    reduction: Reduction = "mean",
    normalizer: ArrayLike | None = None,
) -> Array:
    """`boxloss.torch.distribution_loss` for JAX. See docs/jax.md and docs/class-losses.md."""
    return losses_of(_DISTRIBUTION_LOSS, distribution_loss, locals())[0]
