# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What torchvision's detectors share: what Matcher and SSDMatcher find in a matrix of IoUs, without
one, and batches, of which each has different parts."""

from collections.abc import Iterator
from functools import partial
from inspect import signature
from typing import Any, Literal

import torch
from torch import Tensor

from ..max_iou_match import max_iou_match
from .faults import GroundTruth
from .made_up import MadeUp, cases_of
from .proof import Case
from .replace import qualified_name
from .targets import Targets, ground_truth_of

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


def match_images(
    rule: Any, anchors: list[Tensor], targets: Targets, classes: int
) -> tuple[GroundTruth, list[dict[str, Tensor]], list[Tensor]]:
    """And as torchvision's losses want them: targets whose labels may be indices, and for each
    anchor the row of its image's boxes."""
    truth = ground_truth_of(targets, "labels", classes, drops_labels=True)
    row = match(rule, torch.stack(anchors), truth.boxes, truth.offsets)
    matched = torch.where(row < 0, row, row - truth.offsets[:-1, None])
    labels = truth.labels.split(truth.counts)
    changed = [{**each, "labels": own} for each, own in zip(targets, labels, strict=True)]
    return truth, changed, list(matched)


SIZE = torch.tensor([160.0, 128.0], dtype=torch.float32)  # of images, in pixels
LEVELS = ((8, (24.0, 32.0, 48.0)), (16, (64.0,)))  # the strides of anchors, and their sides


def cases(model: Any) -> Iterator[Case]:
    return cases_of(partial(_made_up, model), (12,))


def losses_of(model: Any, **made: Any) -> Any:
    names = "targets", "head_outputs", "anchors", "num_anchors_per_level"
    kinds = signature(model.compute_loss).parameters
    return model.compute_loss(*(made[name] for name in names if name in kinds))


def _made_up(model: Any, counts: tuple[int, ...]) -> dict[str, Any]:
    random = MadeUp.of(model)
    levels = [_anchors(stride, sides) for stride, sides in LEVELS]
    anchors = torch.cat(levels)
    head = getattr(getattr(model, "head", None), "classification_head", None)
    classes: int = getattr(head, "num_classes", getattr(head, "num_columns", 2))  # SSD's name
    boxes = [_corners(random.boxes(count)) for count in counts]
    jitter = [4 * random.normal(4 * len(each), 4) for each in boxes]
    near = [each.repeat(4, 1) + moved for each, moved in zip(boxes, jitter, strict=True)]
    outputs = {"cls_logits": classes, "bbox_regression": 4, "bbox_ctrness": 1}
    return {
        "targets": [
            {
                "boxes": each.to(random.device),
                "labels": random.integers(classes, len(each)).to(random.device),
            }
            for each in boxes
        ],
        "anchors": [anchors.to(random.device) for _ in counts],
        "num_anchors_per_level": [len(each) for each in levels],
        "proposals": [
            torch.cat((each, _corners(random.boxes(20)))).to(random.device) for each in near
        ],
        "head_outputs": {
            name: random.output(random.normal(len(counts), len(anchors), width).abs())
            for name, width in outputs.items()
        },
    }


def _anchors(stride: int, sides: tuple[float, ...]) -> Tensor:
    width, height = (int(each) // stride for each in SIZE)
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    centres = (stride * (torch.stack((x, y), -1).view(-1, 1, 2) + 0.5)).to(torch.float32)
    halves = torch.tensor(sides, dtype=torch.float32)[:, None] / 2
    return torch.cat((centres - halves, centres + halves), -1).flatten(0, 1)


def _corners(boxes: Tensor) -> Tensor:
    """In pixels."""
    centres, sizes = boxes.split(2, -1)
    return torch.cat((centres - sizes / 2, centres + sizes / 2), -1) * SIZE.repeat(2)
