# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The losses of rotated boxes."""

from typing import TYPE_CHECKING

from jax import Array
from jax.typing import ArrayLike

from .._options import (
    AngleUnit,
    EpsMode,
    Reduction,
    RotatedLoss,
    RotatedLossParameters,
    options_of,
    parameters_of,
)
from .pair_loss import PairLoss, losses_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

_ROTATED_BOX_LOSS = PairLoss("rotated_box_loss", ("loss", "angle_unit"))


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
    """A loss of paired rotated boxes, in one fused kernel, forward and backward.

    A box is (cx, cy, w, h, angle): it is turned around its centre by the angle, of up to 1e4.
    Radians turn clockwise on the screen (x to the right, y down), as in mmrotate and Ultralytics:
    its width lies along (cos, sin). Degrees turn counterclockwise, as in detectron2 and
    torchvision's "cxcywhr". Turned by half a turn, or by a quarter with w and h exchanged, it is
    the same box, with the same loss up to rounding.

    ``loss`` names the formula. Two are of areas; x' is x + eps, or max(x, eps) with eps_mode
    "clamp":

    - "iou": 1 - I / U' with intersection I and union U;
    - "giou": 1 - (I / U' - (C' - U') / C') with the area C of the convex hull of both boxes. At
      angle 0 that is not `box_loss`' "giou", whose enclosing box is larger than the hull.

    The others compare the boxes as Gaussians, whose variances along the sides are w² / 12 + floor
    of "probiou", w² / 4 + floor of the rest:

    - "probiou": their Hellinger distance, 1 - `probiou` of Ultralytics;
    - "kld", "gwd": 1 - 1 / (tau + log(1 + d)), mmrotate's with fun="log1p", where d² is the
      divergence KL(target || pred), or the squared Wasserstein distance over the geometric mean of
      both Gaussians' areas;
    - "kfiou": 1 - V / (A + B - V) with the area V of the Gaussians' product: mmrotate's without
      the loss of the centres that it adds. Centres have no part in V. Equal boxes have 2/3.

    A Gaussian's area is 4 √det: without a floor the box'. Equal boxes have 0 in all losses but
    "kfiou", if tau is 1, and up to eps. There "probiou", "kld" and "gwd" have a tip, as a distance
    has, and a gradient of 0. Boxes apart have no gradient of "iou" by their position; that
    of "probiou" vanishes with their distance.

    pred and target have one unit, any. What is not said here is as in `box_loss`: which pairs are
    valid, NaN, and what is static.

    Args:
        pred: predicted boxes of shape (..., 5), float64, float32, float16 or bfloat16.
        target: ground-truth boxes, shaped as pred; with offsets (T, 5). Any floating dtype, uint8,
            int16, int32 or int64.
        loss: one of the names above.
        weight: factors of shape (...), any floating dtype; with offsets (T), with indices theirs.
        normalizer: what reduction "mean" divides the sum by instead of the number of valid pairs:
            a number, or an array as `box_loss` takes it.
        lengths: (images), int32 or int64: of image b's slots the first lengths[b] are valid. pred
            and target have shape (images, slots, 5).
        mask: bool of shape (...): true for valid pairs.
        offsets: (images + 1), int32 or int64: target rows offsets[b] to offsets[b + 1] belong to
            image b and are paired with its first predictions; pred has shape (images, slots, 5).
        zero_padded: pairs whose target is five zeros are not valid; shapes as with lengths.
        angle_unit: "radians", clockwise, or "degrees", counterclockwise, of pred and target.
        reduction: "mean" (sum / max(number of valid pairs, 1)), "sum", or "none": one loss for
            each slot, with offsets for each target row, with indices for each pair, 0 for
            invalid ones.
        eps: finite, >= 0, in areas' unit, of "iou" and "giou"; the others do not use it. Boxes in
            [0, 1] lose by it if their sides are below about 1e-3, as in `box_loss`.
        eps_mode: what these divide by is x + eps ("add") or max(x, eps) ("clamp").
        pred_index: (P) or (S, P), int32 or int64: pair k reads row pred_index[k] of pred, as in
            `box_loss`.
        target_index: the same for target. An operand without an index has the index' shape,
            followed by 5.
        **parameters: the loss' own numbers. floor, from 0 to 1e6 (1e-15 if it is not given), is in
            areas' unit; a box without area needs one above 0. tau, from 1 to 1e6 (1.0 if it is not
            given), is of "kld" and "gwd".

    Returns:
        The loss, float64 when either box array is float64, else float32. Differentiable in reverse
        mode, any number of times, with respect to pred, weight and a floating target. Gradients are
        by the values as they are given, those of degrees by degrees, in their input's dtype. Where
        edges coincide, a gradient of "iou" and "giou" is split half and half.

    Raises:
        ValueError: a bad value or shape. TypeError: a bad dtype, or no array; forward
            mode, for which `use_implementation` has the formula.
    """
    options = {
        "loss": loss,
        "weight": weight,
        "normalizer": normalizer,
        "lengths": lengths,
        "mask": mask,
        "offsets": offsets,
        "zero_padded": zero_padded,
        "angle_unit": angle_unit,
        "reduction": reduction,
        "eps": eps,
        "eps_mode": eps_mode,
        "pred_index": pred_index,
        "target_index": target_index,
    }
    own = parameters_of("rotated_box_loss", loss, parameters)
    kind = _ROTATED_BOX_LOSS
    return losses_of(kind, kind.name, pred, target, options, _DEFAULTS, own)[0]


_DEFAULTS = {name: option.default for name, option in options_of(rotated_box_loss).items()}
