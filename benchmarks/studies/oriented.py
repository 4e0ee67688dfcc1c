# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What do the assigners of oriented detectors take, beside the originals?

task-aligned is oriented YOLO's assigner, at 1,024 x 1,024 pixels with 21,504 anchors an image,
beside Ultralytics' RotatedTaskAlignedAssigner: predictions are half-trained, as in the study
dense_assigners. max-IoU is Rotated RetinaNet's, at 512 x 512 pixels with 49,104 anchors, beside
torchvision's box_iou, whose kernel is detectron2's as mmcv's is, and its Matcher, image by image;
without low quality, where a box in several equal anchors is a tie that rounding decides. Boxes are
up to eight times as long as wide, at any angle.

other boxes counts the anchors whose box is another one than boxloss' in float64. A second pass
counts what a call asks of the GPU. Needs ultralytics, and a torchvision with rotated boxes, each
for its own.
"""

from __future__ import annotations

import math
from functools import partial

import torch
from boxloss.torch import max_iou_match
from torch import Tensor

from ..common import assigners
from ..common.assigners import CLASSES, MAX_IOU, NEAR, TASK_ALIGNED, Case, Size
from ..runner.clocks import Call
from ..runner.run import Run, Variant
from .rotated.peers import rotated_iou

# --- Cases ---

SIDES, MOST_LONG = (12.0, 128.0), 8.0  # of ground-truth boxes, the longer side in pixels
RETINA_STRIDES = 8, 16, 32, 64, 128
HIGH, LOW = 0.5, 0.4

SIZES = {
    "task-aligned, 20 boxes": Size(TASK_ALIGNED, 16, 1024, 1024, 20),
    "task-aligned, 100 boxes": Size(TASK_ALIGNED, 16, 1024, 1024, 100),
    "task-aligned, 400 boxes": Size(TASK_ALIGNED, 16, 1024, 1024, 400),
    "max-IoU, 50 boxes": Size(MAX_IOU, 2, 512, 512, 50),
}
CASES = tuple(SIZES)


def ground_truth(size: Size, generator: torch.Generator) -> Tensor:
    """(images, boxes, 5), as many short ones as long ones."""
    shape = size.images, size.boxes

    def uniform(low: float, high: float, *more: int) -> Tensor:
        return low + (high - low) * torch.rand(*shape, *more, generator=generator)

    shortest, longest = SIDES
    long = shortest * (longest / shortest) ** uniform(0, 1)
    short = long / MOST_LONG ** uniform(0, 1)
    centre, angle = uniform(0, size.width, 2), uniform(-math.pi / 4, 3 * math.pi / 4)
    return torch.cat((centre, torch.stack((long, short, angle), -1)), -1)


def retina_anchors(size: Size) -> Tensor:
    """Three sizes of three shapes in each cell, not turned, as mmrotate's."""
    scales, ratios = 4 * 2 ** (torch.arange(3) / 3), torch.tensor([0.5, 1, 2]).sqrt()
    w, h = (scales[:, None] / ratios).flatten(), (scales[:, None] * ratios).flatten()
    levels = []
    for cell, stride in zip(
        assigners.places(size.cells(RETINA_STRIDES)), RETINA_STRIDES, strict=True
    ):
        middles = (cell * stride).float()[:, None].expand(-1, len(w), -1)
        shapes = torch.stack((w * stride, h * stride, torch.zeros_like(w)), -1)
        levels.append(torch.cat((middles, shapes.expand(len(cell), -1, -1)), -1).flatten(0, 1))
    return torch.cat(levels)


def predictions(points: Tensor, target: Tensor, generator: torch.Generator) -> dict[str, Tensor]:
    """Of most anchors in a box this box, missed by a little, and its class; of others anything."""

    def are_inside(boxes: Tensor) -> Tensor:
        to_point = points - boxes[:, None, :2]
        cos, sin = boxes[:, None, 4].cos(), boxes[:, None, 4].sin()
        along = cos * to_point[..., 0] + sin * to_point[..., 1]
        across = cos * to_point[..., 1] - sin * to_point[..., 0]
        reach = torch.stack((along.abs(), across.abs()), -1) <= boxes[:, None, 2:4] / 2
        return reach.all(-1)

    own, knows = assigners.learned(points, target, are_inside, generator)
    truth = assigners.own_boxes(target, own)
    unit = torch.cat((truth[..., [2, 3, 2, 3]], torch.ones_like(truth[..., :1])), -1)
    near = truth + NEAR * unit * torch.randn(*own.shape, 5, generator=generator)
    any_box = torch.rand(*own.shape, 3, generator=generator) * torch.tensor([64, 64, math.pi]) + 4
    around = torch.cat((points.expand(*own.shape, 2), any_box), -1)
    pred = torch.where(knows[..., None], near, around)
    return {"pred": pred, **assigners.class_scores(target, own, knows, CLASSES, generator)}


# --- Variants ---


def max_iou(case: Case) -> tuple[Tensor, ...]:
    return max_iou_match(case.anchors, case.target, case.offsets, high=HIGH, low=LOW)


def load_torchvision(case: Case) -> Call:
    """In degrees."""
    target, anchors = case.padded(case.target).clone(), case.anchors.clone()
    for boxes in (target, anchors):
        boxes[..., 4] *= -180 / math.pi
    return assigners.load_matcher(target, anchors, rotated_iou(), HIGH, LOW)


VARIANTS: dict[str, dict[str, Variant[Case, Call]]] = {
    TASK_ALIGNED: {
        "boxloss": Variant(lambda case: partial(assigners.task_aligned, case)),
        "original": Variant(partial(assigners.load_ultralytics, name="RotatedTaskAlignedAssigner")),
    },
    MAX_IOU: {
        "boxloss": Variant(lambda case: partial(max_iou, case)),
        "original": Variant(load_torchvision),
    },
}


def measure(run: Run) -> None:
    assigners.measure(run, SIZES, (ground_truth, retina_anchors, predictions), VARIANTS, max_iou)
