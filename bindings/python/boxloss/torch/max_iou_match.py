# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Max-IoU matching: the ground-truth box of each anchor, without the matrix of IoUs."""

from typing import NamedTuple

import torch
from torch import Tensor

from .._options import AngleUnit, LowQuality
from .arguments import beside, call, check_tensors, exportable, members_of

_MATCH = torch.ops.boxloss.max_iou_match.default


@exportable
class MaxIouMatch(NamedTuple):
    """What `max_iou_match` returns, on the anchors' device."""

    target_index: Tensor
    iou: Tensor


def max_iou_match(
    anchors: Tensor,
    target: Tensor,
    offsets: Tensor,
    *,
    high: float,
    low: float,
    low_quality: LowQuality = "none",
    min_pos_iou: float = 0.0,
    angle_unit: AngleUnit = "radians",
) -> MaxIouMatch:
    """The ground-truth box of each anchor: the one of its image that it overlaps most.

    An anchor whose best IoU is less than `low` has none, -1; one whose best IoU is less than `high`
    is to be ignored, -2. All images at once, and no matrix of IoUs is written. On a GPU it runs
    without a synchronization, and can be captured in a CUDA graph.

    It is torchvision's Matcher (RPN: "argmax"; RetinaNet: "argmax", too) and SSDMatcher ("force"),
    and mmdetection's MaxIoUAssigner ("overwrite"), of box_iou's bits: in float32 each operation is
    rounded as torch's operators do. Of equally good boxes an anchor gets the first. A NaN in an IoU
    is the best of all, as for torch.max: such an anchor is matched, and the loss shows it.

    Rotated boxes, in anchors and target, are (..., 5) as for `rotated_box_loss`. The rules are the
    same, for mmrotate's Rotated RetinaNet ("overwrite") and others; what decides is the exact IoU
    up to rounding, with the same bits on every device. A box without area has the IoU 0.

    Args:
        anchors: (A, 4), which all images share, or (images, A, 4), x1, y1, x2, y2; float64,
            float32, float16 or bfloat16, of any strides. It is fast where neighbours in the list
            are near each other, as on a grid; the order changes no result.
        target: the ground-truth boxes of all images (T, 4), x1, y1, x2, y2, any dtype of
            `box_loss`.
        offsets: (images + 1), int32 or int64, on anchors' device or on the CPU: image b owns target
            rows offsets[b] to offsets[b + 1]. Bad ones are as for `hungarian_match`.
        high, low: thresholds of the IoU, `low` not more than `high`. They are compared in the dtype
            of `iou`, as torch compares a tensor with a number.
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
        target_index (images, A), int64: the anchor's row of target, -1 or -2. As an index of the
        losses, what is negative is no pair. iou (images, A): its best IoU, 0 in images without
        boxes; float64 where anchors or target is, else float32. Neither requires a gradient.

    Raises:
        ValueError: a bad value or shape; on the CPU, offsets that decrease or lie outside [0, T].
            TypeError: a bad dtype, or no tensor. RuntimeError: tensors on several devices, or on
            one without an implementation of it in this build; a transform of torch.func.
    """
    check_tensors("max_iou_match", anchors=anchors, target=target, offsets=offsets)
    offsets = beside(offsets, anchors)
    options = (high, low, low_quality, min_pos_iou, angle_unit)
    result = call("max_iou_match", _MATCH, (anchors, target, offsets, *options))
    return members_of(MaxIouMatch, result)  # type: ignore[no-any-return]
