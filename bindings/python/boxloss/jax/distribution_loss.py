# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Losses of boxes whose sides are distributions over bins, by what a matcher has found."""

from jax import Array
from jax.typing import ArrayLike

from .._options import DistributionLossMode, Reduction
from .formula import distribution_loss_by_formula
from .loss import losses_of
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
    return losses_of(_DISTRIBUTION_LOSS, distribution_loss, locals())[0]
