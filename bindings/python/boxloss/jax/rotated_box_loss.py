# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The losses of rotated boxes."""

from typing import TYPE_CHECKING

from jax import Array
from jax.typing import ArrayLike

from .._options import AngleUnit, EpsMode, Reduction, RotatedLoss, RotatedLossParameters
from .custom_vjp import losses_of
from .pair_loss import pair_loss

if TYPE_CHECKING:
    from typing_extensions import Unpack

_ROTATED_BOX_LOSS = pair_loss("rotated_box_loss", "rotated_box_loss", ("loss", "angle_unit"))


def rotated_box_loss(
    pred: ArrayLike,
    target: ArrayLike,
    loss: RotatedLoss,
    *,
    weight: ArrayLike | None = None,
    normalizer: ArrayLike | None = None,
    lengths: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    zero_padded: bool = False,
    angle_unit: AngleUnit = "radians",
    reduction: Reduction = "mean",
    eps: float = 1e-7,
    eps_mode: EpsMode = "add",
    pred_index: ArrayLike | None = None,
    target_index: ArrayLike | None = None,
    **parameters: "Unpack[RotatedLossParameters]",
) -> Array:
    """`boxloss.torch.rotated_box_loss` for JAX. See docs/jax.md and docs/rotated.md.

    What `box_loss` here has of its own, this has, too.

    Second derivatives of "iou" and "giou" lose digits where boxes are nearly parallel: take
    float64.
    """
    return losses_of(_ROTATED_BOX_LOSS, rotated_box_loss, locals())[0]
