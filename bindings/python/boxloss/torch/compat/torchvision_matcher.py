# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What torchvision's Matcher and SSDMatcher find in a matrix of IoUs, without one."""

from typing import Any, Literal

import torch
from torch import Tensor

from ..max_iou_match import max_iou_match
from .replace import qualified_name
from .targets import GroundTruth, Targets

# By the class, and whether it allows matches of low quality.
_LOW_QUALITY: dict[tuple[str, bool], Literal["none", "argmax", "force"]] = {
    ("Matcher", False): "none",
    ("Matcher", True): "argmax",
    ("SSDMatcher", False): "force",
}

MATCHERS = {
    "torchvision.models.detection._utils": ("Matcher", "SSDMatcher"),
    "torchvision.ops.boxes": ("box_iou",),
}


def match(rule: Any, boxes: Tensor, true_boxes: Tensor, offsets: Tensor) -> Tensor:
    """The row of each box' ground-truth box, -1 for the background, -2 for what is ignored.

    Args:
        rule: a Matcher or an SSDMatcher of torchvision.models.detection._utils.
    """
    kind = type(rule)
    allows = bool(getattr(rule, "allow_low_quality_matches", False))
    low_quality = _LOW_QUALITY.get((kind.__name__, allows))
    if kind.__module__ != "torchvision.models.detection._utils" or low_quality is None:
        raise ValueError(
            f"the matcher is a {qualified_name(kind)} with allow_low_quality_matches={allows}; "
            "boxloss computes what torchvision's own Matcher finds, and its SSDMatcher with False"
        )
    return max_iou_match(
        boxes,
        true_boxes,
        offsets,
        high=rule.high_threshold,
        low=rule.low_threshold,
        low_quality=low_quality,
    ).target_index


def in_images(
    targets: Targets, truth: GroundTruth, row: Tensor
) -> tuple[list[dict[str, Tensor]], list[Tensor]]:
    """As torchvision's losses want them: targets whose labels may be indices, and rows by image."""
    matched = torch.where(row < 0, row, row - truth.offsets[:-1, None])
    labels = truth.labels.split(truth.counts)
    changed = [{**each, "labels": own} for each, own in zip(targets, labels, strict=True)]
    return changed, list(matched)
