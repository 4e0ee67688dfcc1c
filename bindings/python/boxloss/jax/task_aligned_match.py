# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The task-aligned match: which ground-truth box each anchor of a dense detector learns."""

from functools import partial
from typing import NamedTuple

import jax
from jax import Array
from jax.typing import ArrayLike

from .._options import AngleUnit, BoxFormat, options_of
from ._library import exportable, index_dtype, run
from .arguments import as_arrays, as_options
from .partitioning import in_auto_axes


@exportable
class TaskAlignedMatch(NamedTuple):
    """What `task_aligned_match` returns, each (images, anchors)."""

    target_index: Array
    score: Array
    overlap: Array


def task_aligned_match(
    scores: ArrayLike,
    pred: ArrayLike,
    points: ArrayLike,
    target: ArrayLike,
    offsets: ArrayLike | None,
    labels: ArrayLike,
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
    box's. A NaN is no candidate. All images at once, by a custom call, with the same bits every
    time.

    Rotated boxes, in pred and target, are (..., 5) as for `rotated_box_loss`: the assignment of
    Ultralytics' RotatedTaskAlignedAssigner, whose overlap is 1 less the "probiou" loss.

    Args:
        scores: probabilities (images, anchors, classes), of any floating dtype.
        pred: predicted boxes (images, anchors, 4), likewise.
        points: the anchors' points (x, y) in the boxes' unit, (anchors, 2) for all images or
            (images, anchors, 2), likewise. On the CPU it is fast where neighbours in the list are
            near each other, as on a grid; the order changes no result but of ties.
        target: the ground-truth boxes as corners, of any dtype that `box_loss` takes: of all images
            (T, 4), with offsets; or padded (images, N, 4), where box j of image b is row b * N + j.
            One is padding if the sum of its numbers, an angle in radians, is not above 0.
        offsets: (images + 1), int32 or int64: image b owns target rows offsets[b] to offsets[b +
            1]; None for padded boxes. If one decreases or lies outside [0, T], no anchor has a box,
            since values are not known while JAX traces.
        labels: the class of each ground-truth box, (T) or (images, N), int32 or int64. The box of
            one outside [0, classes) gets no anchor.
        topk: how many anchors a box chooses. Static, as the following.
        topk2: how many it keeps in the end, those of the highest metrics; None, or topk: all.
        alpha, beta: exponents, finite and not negative.
        min_side: if it is above 0, a point also lies in a box if it lies in the one that has
            shorter sides enlarged to this, about its centre. Ultralytics has strides[1], 16.
        pred_format: "xyxy", "xywh" or "cxcywh". Not used for rotated boxes, which have one.
        small_side: sides below this are enlarged; None: those below min_side. Until
            8.4.128 Ultralytics had strides[0], 8.
        angle_unit: "radians" or "degrees", of rotated boxes.

    Returns:
        target_index, int32, or int64 with jax_enable_x64: the row of target that the anchor learns,
        or -1, as an index for the losses and for class targets; score and overlap, float32, 0 where
        there is none. Computed in float64 where scores, pred, points or target is; decided on
        float32. No gradient.

    Raises:
        ValueError: a bad value or shape. TypeError: a bad dtype, or no array.
    """
    arrays = as_arrays(
        "task_aligned_match",
        scores=scores,
        pred=pred,
        points=points,
        target=target,
        offsets=offsets,
        labels=labels,
    )
    arrays = {name: jax.lax.stop_gradient(each) for name, each in arrays.items()}
    given = {
        "topk": topk,
        "topk2": topk if topk2 is None else topk2,
        "alpha": alpha,
        "beta": beta,
        "min_side": min_side,
        "pred_format": pred_format,
        "small_side": min_side if small_side is None else small_side,
        "angle_unit": angle_unit,
    }
    options = as_options("task_aligned_match", given, _DEFAULTS)
    options["index"] = index_dtype()
    match = partial(run, "boxloss_jax_task_aligned_match", "task_aligned_match", options=options)
    found = in_auto_axes(match, arrays)
    return TaskAlignedMatch(*(found[name] for name in TaskAlignedMatch._fields))


_DEFAULTS = {name: option.default for name, option in options_of(task_aligned_match).items()}
_DEFAULTS["topk2"] = _DEFAULTS["topk"]  # which it is if it is not given
_DEFAULTS["small_side"] = _DEFAULTS["min_side"]  # likewise
