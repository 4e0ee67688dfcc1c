# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Costs and overlaps of all predictions with all ground-truth boxes of the same image."""

from collections.abc import Mapping
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._options import (
    AngleUnit,
    BoxFormat,
    ClassMode,
    CostParameters,
    EpsMode,
    Loss,
    RotatedLoss,
    options_of,
    parameters_of,
)
from ._library import call, traced
from .arguments import as_arrays, as_options, compute_dtype
from .batching import batchable, repeated
from .partitioning import in_auto_axes

if TYPE_CHECKING:
    from typing_extensions import Unpack


def matching_cost(
    pred: ArrayLike,
    target: ArrayLike,
    offsets: ArrayLike,
    *,
    logits: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    class_cost: ArrayLike | None = None,
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
    **parameters: "Unpack[CostParameters]",
) -> Array:
    """The cost that a matcher minimizes, of each query with each ground-truth box of its own image.

    All images and decoder layers at once, in one kernel ("softmax" runs JAX's log-softmax before).
    All ground-truth boxes are one list, and each is a column of the result: image b's block is
    ``cost[..., offsets[b] : offsets[b + 1]]``. An entry is::

        iou_weight * (loss - 1) + l1_weight * sum(|pred - target|) + class_weight * class term

    The defaults are DETR's. A term whose weight is 0 is left out. There is no gradient. For the
    assignment see `hungarian_match`. Words and numbers are static.

    Rotated boxes are (..., 5), as for `rotated_box_loss`, with a loss of theirs. L1 is over their
    first four numbers, and ``angle_weight * (1 - cos(2 * difference of the angles))``, whose period
    is half a turn, is added.

    Args:
        pred: predicted boxes (..., images, queries, 4), float64, float32, float16 or bfloat16.
            Leading dimensions, such as decoder layers, are matched separately.
        target: the ground-truth boxes of all images (T, 4), any dtype that `box_loss` takes.
        offsets: (images + 1), int32 or int64: image b owns target rows offsets[b] to offsets[b +
            1], clamped to [0, T].
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
        eps, eps_mode: as for `box_loss`.
        nonfinite: replaces NaN and infinities, with a number that is finite as a float32; None
            keeps them.
        angle_weight: finite; 0 unless boxes are rotated.
        angle_unit: "radians" or "degrees", of rotated boxes.
        **parameters: the loss' own numbers, as for `box_loss` or `rotated_box_loss`.

    Returns:
        (..., queries, T), always float32; computed in float64 where pred or target is. Columns of
        no image are 0.

    Raises:
        ValueError: a bad value or shape. TypeError: a bad dtype, or no array.
    """
    arrays = as_arrays(
        "matching_cost",
        pred=pred,
        target=target,
        offsets=offsets,
        logits=logits,
        labels=labels,
        class_cost=class_cost,
    )
    options = {
        "loss": loss,
        "iou_weight": iou_weight,
        "l1_weight": l1_weight,
        "class_weight": class_weight,
        "class_mode": class_mode,
        "focal_alpha": focal_alpha,
        "focal_gamma": focal_gamma,
        "pred_format": pred_format,
        "target_format": target_format,
        "eps": eps,
        "eps_mode": eps_mode,
        "nonfinite": nonfinite,
        "angle_weight": angle_weight,
        "angle_unit": angle_unit,
    }
    return _cost("matching_cost", arrays, options, parameters)


_DEFAULTS = {
    name: option.default
    for name, option in options_of(matching_cost).items()
    if name not in ("logits", "labels", "class_cost")
}


def pairwise_iou(
    pred: ArrayLike,
    target: ArrayLike,
    offsets: ArrayLike,
    loss: Loss | RotatedLoss = "ciou",
    *,
    pred_format: BoxFormat = "xyxy",
    target_format: BoxFormat = "xyxy",
    eps: float = 1e-7,
    eps_mode: EpsMode = "add",
    angle_unit: AngleUnit = "radians",
    **parameters: "Unpack[CostParameters]",
) -> Array:
    """1 - loss of each box with each ground-truth box of its own image: IoU, GIoU and others.

    pred is (..., images, boxes, 4), the result (..., boxes, T), float32, without a gradient. For
    the other arguments, rotated boxes, the columns and the errors see `matching_cost`.
    Rotated boxes need a loss of theirs by name.
    """
    arrays = as_arrays("pairwise_iou", pred=pred, target=target, offsets=offsets)
    options = _DEFAULTS | {
        "loss": loss,
        "iou_weight": -1,  # 1 - loss
        "l1_weight": 0,
        "pred_format": pred_format,
        "target_format": target_format,
        "eps": eps,
        "eps_mode": eps_mode,
        "angle_unit": angle_unit,
    }
    return _cost("pairwise_iou", arrays, options, parameters)


def _cost(
    function: str, arrays: dict[str, Array], options: dict[str, Any], parameters: Mapping[str, Any]
) -> Array:
    own = parameters_of(function, options["loss"], parameters)
    options = as_options(function, options, _DEFAULTS) | {"parameters": own}
    arrays = {name: jax.lax.stop_gradient(each) for name, each in arrays.items()}
    cost: Array = in_auto_axes(partial(_computed, function, options), arrays)["cost"]
    return cost


def _computed(function: str, options: dict[str, Any], arrays: dict[str, Array]) -> dict[str, Array]:
    """By name; many predictions for the same ground-truth boxes have a leading dimension more."""

    def many(size: int, batched: set[str], arrays: dict[str, Array]) -> dict[str, Array] | None:
        if not batched <= {"pred", "logits"}:
            return None
        return _computed(function, options, repeated(size, batched, arrays, {"pred", "logits"}))

    return batchable(partial(_computed_alone, function, options), many)(arrays)


def _computed_alone(
    function: str, options: dict[str, Any], arrays: dict[str, Array]
) -> dict[str, Array]:
    # Its checks come first, since JAX raises errors of its own.
    results = traced("boxloss_jax_matching_cost", function, arrays, options)
    arrays = dict(arrays)
    if "logits" in arrays and options["class_mode"] == "softmax":
        scores = arrays["logits"].astype(compute_dtype(arrays["pred"], arrays["target"]))
        arrays["logits"] = jax.nn.log_softmax(scores)
    if "class_cost" in arrays and prod(arrays["class_cost"].shape[:-2]) != 1:
        arrays["class_cost"] = jnp.broadcast_to(arrays["class_cost"], results["cost"].shape)
    return {"cost": call("boxloss_jax_matching_cost", arrays, results, options)["cost"]}
