# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Max-IoU matching: the ground-truth box of each anchor, without the matrix of IoUs."""

from functools import partial
from typing import NamedTuple

import jax
from jax import Array
from jax.typing import ArrayLike

from .._options import AngleUnit, LowQuality, options_of
from ._library import exportable, index_dtype, run
from .arguments import as_arrays, as_options
from .partitioning import in_auto_axes


@exportable
class MaxIouMatch(NamedTuple):
    """What `max_iou_match` returns."""

    target_index: Array
    iou: Array


def max_iou_match(
    anchors: ArrayLike,
    target: ArrayLike,
    offsets: ArrayLike,
    *,
    high: float,
    low: float,
    low_quality: LowQuality = "none",
    min_pos_iou: float = 0.0,
    angle_unit: AngleUnit = "radians",
) -> MaxIouMatch:
    """The ground-truth box of each anchor: the one of its image that it overlaps most.

    An anchor whose best IoU is less than `low` has none, -1; one whose best IoU is less than `high`
    is to be ignored, -2. All images at once, by a custom call, and no matrix of IoUs is written.

    It is torchvision's Matcher (RPN and RetinaNet: "argmax") and SSDMatcher ("force"), and
    mmdetection's MaxIoUAssigner ("overwrite"). Of equally good boxes an anchor gets the first. A
    NaN in an IoU is the best of all: such an anchor is matched, and the loss shows it.

    Rotated boxes, in anchors and target, are (..., 5) as for `rotated_box_loss`, with the same
    rules. A box without area has the IoU 0.

    Args:
        anchors: (A, 4), which all images share, or (images, A, 4), x1, y1, x2, y2; float64,
            float32, float16 or bfloat16. It is fast where neighbours in the list are near each
            other, as on a grid; the order changes no result.
        target: the ground-truth boxes of all images (T, 4), x1, y1, x2, y2, any dtype of
            `box_loss`.
        offsets: (images + 1), int32 or int64: image b owns target rows offsets[b] to offsets[b +
            1]. If one decreases or lies outside [0, T], everything is -1, since values are not
            known while JAX traces.
        high, low: thresholds of the IoU, `low` not more than `high`. They are compared in the dtype
            of `iou`. Static, as the following.
        low_quality: what becomes of anchors whose IoU is a box's best, however low it is.
            "none": nothing. "argmax": each of them gets the box that it overlaps most, which may be
            another one, torchvision's ``allow_low_quality_matches``. "overwrite": each gets the box
            whose best it is, of several the last, mmdetection's ``match_low_quality``. "force": the
            box's first best anchor gets it, SSD's rule, and mmdetection's with
            ``gt_max_assign_all=False``; of boxes with the same anchor the last has it. A box
            that overlaps no anchor has the best IoU 0, with every anchor; `min_pos_iou` above 0
            leaves it out.
        min_pos_iou: low_quality is for boxes whose best IoU is not less, and not NaN.
        angle_unit: "radians" or "degrees", of rotated boxes.

    Returns:
        target_index (images, A), int32, or int64 with jax_enable_x64: the anchor's row of target,
        -1 or -2. As an index of the losses, what is negative is no pair. iou (images, A): its best
        IoU, 0 in images without boxes; float64 where anchors or target is, else float32. Neither
        has a gradient.

    Raises:
        ValueError: a bad value or shape. TypeError: a bad dtype, or no array.
    """
    arrays = as_arrays("max_iou_match", anchors=anchors, target=target, offsets=offsets)
    arrays = {name: jax.lax.stop_gradient(each) for name, each in arrays.items()}
    given = {
        "high": high,
        "low": low,
        "low_quality": low_quality,
        "min_pos_iou": min_pos_iou,
        "angle_unit": angle_unit,
    }
    options = as_options("max_iou_match", given, _DEFAULTS)
    options["index"] = index_dtype()
    match = partial(run, "boxloss_jax_max_iou_match", "max_iou_match", options=options)
    found = in_auto_axes(match, arrays)
    return MaxIouMatch(found["target_index"], found["iou"])


_DEFAULTS = {name: option.default for name, option in options_of(max_iou_match).items()}
