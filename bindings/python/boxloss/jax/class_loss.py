# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Class losses of queries and anchors, by what a matcher has found."""

from jax import Array
from jax.typing import ArrayLike

from .._options import ClassLossMode, Reduction
from .batching import as_layers
from .custom_vjp import losses_of
from .formula import class_loss_by_formula
from .loss_of_logits import loss_of_logits

_CLASS_LOSS = loss_of_logits("class_loss", class_loss_by_formula, as_layers)


def class_loss(
    logits: ArrayLike,
    target_index: ArrayLike,
    labels: ArrayLike,
    *,
    mode: ClassLossMode,
    quality: ArrayLike | None = None,
    query_quality: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    alpha: float | None = None,
    gamma: float | None = None,
    no_object_weight: float = 1.0,
    reduction: Reduction = "mean",
    normalizer: ArrayLike | None = None,
) -> Array:
    """`boxloss.torch.class_loss` for JAX. See docs/jax.md and docs/class-losses.md.

    vmap of logits for the same labels, quality and weight is one call, as of more layers.
    """
    return losses_of(_CLASS_LOSS, class_loss, locals())[0]
