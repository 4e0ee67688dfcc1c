# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Class losses of queries and anchors, by what a matcher has found."""

from jax import Array
from jax.typing import ArrayLike

from .._options import ClassLossMode, Reduction, options_of
from .arguments import as_arrays, as_options
from .batching import as_layers
from .formula import class_loss_by_formula
from .loss_of_logits import LossOfLogits, loss_of_logits


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
    arrays = as_arrays(
        "class_loss",
        logits=logits,
        target_index=target_index,
        labels=labels,
        quality=quality,
        query_quality=query_quality,
        weight=weight,
    )
    given = {
        "mode": mode,
        "alpha": alpha,
        "gamma": gamma,
        "no_object_weight": no_object_weight,
        "reduction": reduction,
    }
    options = as_options("class_loss", given, _DEFAULTS)
    return loss_of_logits(_CLASS_LOSS, arrays, normalizer, options)


_DEFAULTS = {name: option.default for name, option in options_of(class_loss).items()}
_DEFAULTS["mode"] = "focal"  # a word, though none is the default
_CLASS_LOSS = LossOfLogits("class_loss", class_loss_by_formula, as_layers)
