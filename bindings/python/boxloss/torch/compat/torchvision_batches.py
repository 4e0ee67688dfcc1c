# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Batches for torchvision's detectors, which have different parts of them."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from .made_up import MadeUp, cases_of
from .proof import Case

SIZE = torch.tensor([160.0, 128.0], dtype=torch.float32)  # of images, in pixels
LEVELS = ((8, (24.0, 32.0, 48.0)), (16, (64.0,)))  # the strides of anchors, and their sides


def cases(model: Any) -> Iterator[Case]:
    return cases_of(partial(_made_up, model), (12,))


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
        "anchors_of_levels": [len(each) for each in levels],
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
