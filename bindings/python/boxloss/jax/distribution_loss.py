# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Losses of boxes whose sides are distributions over bins, by what a matcher has found."""

from jax import Array
from jax.typing import ArrayLike

from .._options import DistributionLossMode, Reduction, options_of
from .arguments import as_arrays, as_options
from .formula import distribution_loss_by_formula
from .loss_of_logits import LossOfLogits, loss_of_logits


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
    """`boxloss.torch.distribution_loss` for JAX, with its modes, arguments and errors.

    They are also in docs/class-losses.md. The arrays are of JAX or NumPy: logits, target_index
    (int32 or int64), quality, reference, target, edges, teacher, confidence and, if it is no
    number, normalizer. mode, reg_scale, temperature and reduction are static: under jit they are no
    arguments of it.

    Returns:
        What torch's gives. Differentiable by logits in reverse mode, any number of times.

    Raises:
        TypeError: also forward mode, for which `use_implementation` has the formula.
    """
    arrays = as_arrays(
        "distribution_loss",
        logits=logits,
        target_index=target_index,
        quality=quality,
        reference=reference,
        target=target,
        edges=edges,
        teacher=teacher,
        confidence=confidence,
    )
    given = {
        "mode": mode,
        "reg_scale": reg_scale,
        "temperature": temperature,
        "reduction": reduction,
    }
    options = as_options("distribution_loss", given, _DEFAULTS)
    return loss_of_logits(_DISTRIBUTION_LOSS, arrays, normalizer, options)


_DEFAULTS = {name: option.default for name, option in options_of(distribution_loss).items()}
_DEFAULTS["mode"] = "fgl"  # a word, though none is the default
_DISTRIBUTION_LOSS = LossOfLogits("distribution_loss", distribution_loss_by_formula)
