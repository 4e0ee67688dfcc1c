# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What torchvision's Matcher finds in a matrix of IoUs, without one."""

from typing import Any

from torch import Tensor

from ..max_iou_match import max_iou_match
from .replace import qualified_name


def match(rule: Any, boxes: Tensor, true_boxes: Tensor, offsets: Tensor) -> Tensor:
    """The row of each box' true box, -1 for the background, -2 for what is ignored.

    Args:
        rule: a torchvision.models.detection._utils.Matcher.
    """
    if type(rule).__module__ != "torchvision.models.detection._utils":
        raise ValueError(
            f"the matcher is a {qualified_name(type(rule))}; boxloss computes what torchvision's "
            "own Matcher finds"
        )
    return max_iou_match(
        boxes,
        true_boxes,
        offsets,
        high=rule.high_threshold,
        low=rule.low_threshold,
        low_quality="argmax" if rule.allow_low_quality_matches else "none",
    ).target_index
