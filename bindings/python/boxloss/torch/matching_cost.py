# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Costs and overlaps of all predictions with all ground-truth boxes of the same image."""

import torch
from torch import Tensor
from typing_extensions import Unpack

from .._options import (
    AngleUnit,
    BoxFormat,
    ClassMode,
    CostParameters,
    EpsMode,
    Loss,
    RotatedLoss,
    parameters_of,
)
from .arguments import call

_MATCHING_COST = torch.ops.boxloss.matching_cost.default
_PAIRWISE_IOU = torch.ops.boxloss.pairwise_iou.default


def matching_cost(
    pred: Tensor,
    target: Tensor,
    offsets: Tensor,
    *,
    logits: Tensor | None = None,
    labels: Tensor | None = None,
    class_cost: Tensor | None = None,
    loss: Loss | RotatedLoss = "giou",
    iou_weight: float = 2.0,
    l1_weight: float = 5.0,
    class_weight: float = 1.0,
    class_mode: ClassMode = "softmax",
    focal_alpha: float = 0.25,
    focal_gamma: float = 2.0,
    pred_format: BoxFormat = "cxcywh",
    target_format: BoxFormat = "cxcywh",
    eps: float = 0.0,
    eps_mode: EpsMode = "add",
    nonfinite: float | None = None,
    angle_weight: float = 0.0,
    angle_unit: AngleUnit = "radians",
    **parameters: Unpack[CostParameters],
) -> Tensor:
    """The cost that a matcher minimizes, of each query with each ground-truth box of its own image.

    All images and decoder layers at once, in one kernel ("softmax" runs torch's log-softmax
    before). All ground-truth boxes are one list, as from `collate_ragged`, and each is a column of
    the result: image b's block is ``cost[..., offsets[b] : offsets[b + 1]]``. An entry is::

        iou_weight * (loss - 1) + l1_weight * sum(|pred - target|) + class_weight * class term

    The defaults are DETR's, for boxes in [0, 1]: in pixels L1 would outweigh the others. `box_loss`
    and `box_losses` have others, corners and an eps for pixels: give them this cost's formats and
    eps. A term whose weight is 0 is left out. There is no gradient. For the
    assignment see `hungarian_match`.

    Rotated boxes are (..., 5), as for `rotated_box_loss`, with a loss of theirs. L1 is over their
    first four numbers, and ``angle_weight * (1 - cos(2 * difference of the angles))`` is added.
    Half a turn is its period, as it is a box'; the difference itself would jump at the ends of the
    angles' range.

    Args:
        pred: predicted boxes (..., images, queries, 4), float64, float32, float16 or bfloat16,
            of any strides. Leading dimensions, such as decoder layers, are matched separately.
        target: the ground-truth boxes of all images (T, 4), any dtype that `box_loss` takes.
        offsets: (images + 1), int32 or int64: image b owns target rows offsets[b] to offsets[b +
            1], clamped to [0, T]. See check_indices.
        logits: (..., images, queries, classes), of any floating dtype, with pred's leading
            dimensions.
        labels: the class of each ground-truth box (T), int32 or int64. Outside [0, classes) the
            class term is 0.
        class_cost: instead of logits, the class term of each entry: shaped as the result, or with
            leading dimensions that are 1 or missing; of any floating dtype.
        loss: a name as for `box_loss` or, for rotated boxes, `rotated_box_loss`.
        class_mode: "softmax": -softmax(logits)[label], DETR's; "sigmoid": -sigmoid(logit);
            "focal": with p = sigmoid(logit), Deformable DETR's ``focal_alpha * (1 - p)**focal_gamma
            * -log(p + 1e-8) - (1 - focal_alpha) * p**focal_gamma * -log(1 - p + 1e-8)``.
        focal_alpha, focal_gamma: finite, focal_gamma not negative.
        pred_format, target_format: "xyxy", "xywh" or "cxcywh"; equal, unless l1_weight is 0. Not
            used for rotated boxes, which have one.
        eps, eps_mode: as for `box_loss`; for boxes in pixels eps may be 1e-7.
        nonfinite: replaces NaN and infinities, with a number that is finite as a float32; None
            keeps them.
        angle_weight: finite; 0 unless boxes are rotated.
        angle_unit: "radians" or "degrees", of rotated boxes.
        **parameters: the loss' own numbers, as for `box_loss` or `rotated_box_loss`.

    Returns:
        (..., queries, T), always float32; computed in float64 where pred or target is. Columns of
        no image are 0. Never requires a gradient.

    Raises:
        ValueError, TypeError, RuntimeError: what `box_loss` raises.
    """
    boxes, classes = (pred, target, offsets), (logits, labels, class_cost)
    weights = (loss, iou_weight, l1_weight, class_weight, class_mode, focal_alpha, focal_gamma)
    options = (pred_format, target_format, eps, eps_mode, nonfinite, angle_weight, angle_unit)
    own = [parameters_of("matching_cost", loss, parameters)] if parameters else []
    arguments = (*boxes, *classes, *weights, *options, *own)
    return call("matching_cost", _MATCHING_COST, arguments)  # type: ignore[no-any-return]


def pairwise_iou(
    pred: Tensor,
    target: Tensor,
    offsets: Tensor,
    loss: Loss | RotatedLoss = "ciou",
    *,
    pred_format: BoxFormat = "xyxy",
    target_format: BoxFormat = "xyxy",
    eps: float = 1e-7,
    eps_mode: EpsMode = "add",
    angle_unit: AngleUnit = "radians",
    **parameters: Unpack[CostParameters],
) -> Tensor:
    """1 - loss of each box with each ground-truth box of its own image: IoU, GIoU and others.

    pred is (..., images, boxes, 4), the result (..., boxes, T), float32, without a gradient; images
    may share their boxes through ``anchors.expand(images, -1, -1)``. The defaults are `box_loss`',
    corners in pixels, and not `matching_cost`'s. For the other arguments, rotated boxes, the
    columns and the errors see `matching_cost`.
    Rotated boxes need a loss of theirs by name.
    """
    options = (pred_format, target_format, eps, eps_mode, angle_unit)
    own = [parameters_of("pairwise_iou", loss, parameters)] if parameters else []
    arguments = (pred, target, offsets, loss, *options, *own)
    return call("pairwise_iou", _PAIRWISE_IOU, arguments)  # type: ignore[no-any-return]
