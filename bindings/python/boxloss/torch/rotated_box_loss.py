# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The losses of rotated boxes."""

import torch
from torch import Tensor
from typing_extensions import Unpack

from .._options import AngleUnit, EpsMode, Reduction, RotatedLoss, RotatedLossParameters, options_of
from .losses import OPTIONS_OF, PairOptions, call_loss

_ROTATED_BOX_LOSS = torch.ops.boxloss.rotated_box_loss.default


class RotatedBoxLossOptions(PairOptions, total=False):
    angle_unit: AngleUnit


def rotated_box_loss(
    pred: Tensor,
    target: Tensor,
    loss: RotatedLoss,
    *,
    weight: Tensor | None = None,
    normalizer: Tensor | float | None = None,
    lengths: Tensor | None = None,
    mask: Tensor | None = None,
    offsets: Tensor | None = None,
    zero_padded: bool = False,
    angle_unit: AngleUnit = "radians",
    reduction: Reduction = "mean",
    eps: float = 1e-7,
    eps_mode: EpsMode = "add",
    pred_index: Tensor | None = None,
    target_index: Tensor | None = None,
    **parameters: Unpack[RotatedLossParameters],
) -> Tensor:
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
    valid, NaN, transforms of torch.func, torch.compile, and jagged nested tensors, here of shape
    (images, boxes of each, 5).

    Args:
        pred: predicted boxes of shape (..., 5), float64, float32, float16 or bfloat16, of any
            strides.
        target: ground-truth boxes, shaped as pred; with offsets (T, 5). Any floating dtype, uint8,
            int16, int32 or int64.
        loss: one of the names above.
        weight, normalizer, lengths, mask, offsets, zero_padded: as for `box_loss`, with 5 for 4 in
            shapes. Padding is five zeros.
        reduction, pred_index, target_index: likewise.
        angle_unit: "radians", clockwise, or "degrees", counterclockwise, of pred and target.
        eps: finite, >= 0, in areas' unit, of "iou" and "giou"; the others do not use it. Boxes in
            [0, 1] lose by it if their sides are below about 1e-3, as in `box_loss`.
        eps_mode: what these divide by is x + eps ("add") or max(x, eps) ("clamp").
        **parameters: the loss' own numbers. floor, from 0 to 1e6 (1e-15 if it is not given), is in
            areas' unit; a box without area needs one above 0. tau, from 1 to 1e6 (1.0 if it is not
            given), is of "kld" and "gwd".

    Returns:
        The loss, float64 when either box tensor is, else float32. Differentiable, twice too, with
        respect to pred, weight and a floating target. Gradients are by the values as they are
        given, those of degrees by degrees; their dtypes and strides are as `box_loss` has them.
        Where edges coincide, a gradient of "iou" and "giou" is split half and half.

    Raises:
        ValueError, TypeError, RuntimeError: what `box_loss` raises.
    """
    pairs = (weight, normalizer, lengths, mask, offsets, zero_padded)
    options = (*pairs, angle_unit, reduction, eps, eps_mode, pred_index, target_index)
    return call_loss(  # type: ignore[no-any-return]
        "rotated_box_loss", _ROTATED_BOX_LOSS, pred, target, loss, options, parameters
    )


OPTIONS = OPTIONS_OF["rotated_box_loss"] = options_of(rotated_box_loss)
