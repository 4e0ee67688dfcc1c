# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The task-aligned match: which ground-truth box each anchor of a dense detector learns."""

from typing import NamedTuple

from jax import Array
from jax.typing import ArrayLike

from .._options import AngleUnit, BoxFormat
from ._library import exportable
from .matches import match


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
    """`boxloss.torch.task_aligned_match` for JAX. See docs/jax.md and docs/assigners.md."""
    topk2 = topk if topk2 is None else topk2
    small_side = min_side if small_side is None else small_side
    return match("task_aligned_match", TaskAlignedMatch, task_aligned_match, locals())
