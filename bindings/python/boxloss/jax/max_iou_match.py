# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Max-IoU matching: the ground-truth box of each anchor, without the matrix of IoUs."""

from typing import NamedTuple

from jax import Array
from jax.typing import ArrayLike

from .._options import AngleUnit, LowQuality
from ._library import exportable
from .matches import match


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
    """`boxloss.torch.max_iou_match` for JAX. See docs/jax.md and docs/assigners.md."""
    return match("max_iou_match", MaxIouMatch, max_iou_match, locals())
