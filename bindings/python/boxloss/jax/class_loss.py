# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Class losses of queries and anchors, by what a matcher has found."""

from jax import Array
from jax.typing import ArrayLike

from .._options import ClassLossMode, Reduction
from .batching import as_layers
from .formula import class_loss_by_formula
from .loss import losses_of
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
    """`boxloss.torch.class_loss` for JAX, with its modes, arguments and errors.

    They are also in docs/class-losses.md. The arrays are of JAX or NumPy: logits, target_index,
    labels, quality, query_quality, weight and, if it is no number, normalizer. Indices and labels
    are int32 or int64. mode, alpha, gamma, no_object_weight and reduction are static: under jit
    they are no arguments of it.

    vmap of logits for the same labels, quality and weight is one call, as of more layers.

    Returns:
        What torch's gives. Differentiable by logits in reverse mode, any number of times.

    Raises:
        TypeError: also forward mode, for which `use_implementation` has the formula.
    """
    return losses_of(_CLASS_LOSS, class_loss, locals())[0]
