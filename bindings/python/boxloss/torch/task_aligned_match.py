# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The task-aligned match: which ground-truth box each anchor of a dense detector learns."""

from typing import NamedTuple

import torch
from torch import Tensor

from .._options import AngleUnit, BoxFormat
from .arguments import beside, call, check_tensors, exportable, members_of

_MATCH = torch.ops.boxloss.task_aligned_match.default


@exportable
class TaskAlignedMatch(NamedTuple):
    """What `task_aligned_match` returns, each (images, anchors), on the scores' device."""

    target_index: Tensor
    score: Tensor
    overlap: Tensor


def task_aligned_match(
    scores: Tensor,
    pred: Tensor,
    points: Tensor,
    target: Tensor,
    offsets: Tensor | None,
    labels: Tensor,
    *,
    topk: int = 10,
    topk2: int | None = None,
    alpha: float = 0.5,
    beta: float = 6.0,
    min_side: float = 0.0,
    pred_format: BoxFormat = "xyxy",
    small_side: float | None = None,
    angle_unit: AngleUnit = "radians",
) -> TaskAlignedMatch:
    """The task-aligned assignment (TOOD, ICCV 2021) as Ultralytics' TaskAlignedAssigner has it.

    An anchor whose point lies in a ground-truth box is a candidate of it, with the metric
    ``scores[label] ** alpha * overlap ** beta``, the overlap being CIoU, or 0 where that is
    negative. Each box chooses the ``topk`` candidates of the highest metrics; an anchor that
    several boxes chose goes to the one of highest overlap among all that it is a candidate of. Its
    score is the metric, times the highest overlap and over the highest metric (plus 1e-9) of its
    box's anchors.

    Only a metric above 0 counts, of equal metrics the first anchor's, of equal overlaps the first
    box's. It is Ultralytics' assignment wherever that gives a score other than 0, but where two
    metrics or overlaps differ by no more than their rounding, and where a box has fewer than
    ``topk`` metrics above 0: Ultralytics' choice among zeros, which its topk leaves open, may send
    an anchor that such a box "chose" to a third box. A NaN is no candidate.

    Rotated boxes, in pred and target, are (..., 5) as for `rotated_box_loss`: the assignment of
    Ultralytics' RotatedTaskAlignedAssigner. The overlap is 1 less the "probiou" loss, without
    Ultralytics' eps, which for equal boxes leaves 0.9996, and without its loss of digits for thin
    and small boxes. A point lies in a box by Ultralytics' four inequalities, edges included.

    It runs on the scores' device without a synchronization, can be captured in a CUDA graph, and
    gives the same bits every time. use_implementation("aten") changes nothing, since torch has no
    operator for it.

    Args:
        scores: probabilities (images, anchors, classes), of any floating dtype and strides.
        pred: predicted boxes (images, anchors, 4), likewise.
        points: the anchors' points (x, y) in the boxes' unit, (anchors, 2) for all images or
            (images, anchors, 2), likewise. On the CPU it is fast where neighbours in the list are
            near each other, as on a grid; the order changes no result but of ties.
        target: the ground-truth boxes as corners, of any dtype that `box_loss` takes: of all images
            (T, 4), with offsets; or padded (images, N, 4), where box j of image b is row b * N + j.
            One is padding if the sum of its numbers, an angle in radians, is not above 0.
        offsets: (images + 1), int32 or int64, on the scores' device or on the CPU: image b owns
            target rows offsets[b] to offsets[b + 1]; None for padded boxes. Bad ones are as for
            `hungarian_match`: on a GPU no anchor has a box.
        labels: the class of each ground-truth box, (T) or (images, N), int32 or int64. One outside
            [0, classes) is an error on the CPU, unless its box is padding; elsewhere its box gets
            no anchor.
        topk: how many anchors a box chooses.
        topk2: how many it keeps in the end, those of the highest metrics; None, or topk: all.
        alpha, beta: exponents, finite and not negative.
        min_side: if it is above 0, a point also lies in a box if it lies in the one that has
            shorter sides enlarged to this, about its centre. Ultralytics has strides[1], 16.
        pred_format: "xyxy", "xywh" or "cxcywh". Not used for rotated boxes, which have one.
        small_side: sides below this are enlarged; None: those below min_side. Until
            8.4.128 Ultralytics had strides[0], 8.
        angle_unit: "radians" or "degrees", of rotated boxes.

    Returns:
        target_index, int64: the row of target that the anchor learns, or -1, as an index for the
        losses and for class targets; score and overlap, float32, 0 where there is none. Computed in
        float64 where scores, pred, points or target is; decided on float32. No gradient.

    Raises:
        ValueError: a bad value or shape; on the CPU, offsets and labels as above. TypeError: a bad
            dtype, or no tensor. RuntimeError: tensors on several devices, no implementation for
            their device in this build, or one that does not serve it; a transform of torch.func.
    """
    check_tensors("task_aligned_match", scores=scores)
    offsets = beside(offsets, scores)
    tensors = (scores, pred, points, target, offsets, labels)
    options = (topk, topk2, alpha, beta, min_side, pred_format, small_side, angle_unit)
    result = call("task_aligned_match", _MATCH, (*tensors, *options))
    return members_of(TaskAlignedMatch, result)  # type: ignore[no-any-return]
