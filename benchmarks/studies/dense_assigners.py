# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What do a dense detector's assigners take, beside the originals with their matrices?

task-aligned is YOLO's, at 640 x 640 pixels with 8,400 anchors an image, beside Ultralytics'
TaskAlignedAssigner: predictions are half-trained, most of those in a box are near it and know its
class. max-IoU is that of Faster R-CNN's RPN, at 800 x 1,056 pixels with 211,038 anchors, beside
torchvision's box_iou and Matcher, image by image. Boxes' sides are from 16 to 256 pixels, of a
thousand boxes from 16 to 64.

boxloss gives for each anchor the row of its box, and a score or the IoU; "boxloss, all targets"
also makes what Ultralytics' assigner returns: boxes, labels, and a score for each class.
torch.compile is the original compiled for these very shapes. Other boxes counts the anchors whose
box is another one than boxloss' in float64. A second pass counts what a call asks of the GPU. Needs
ultralytics and torchvision, each for its own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from boxloss.torch import max_iou_match
from torch import Tensor

from ..common import assigners
from ..common.assigners import CLASSES, MAX_IOU, NEAR, TASK_ALIGNED, Case, Size
from ..common.losses import installed
from ..runner.clocks import Call, Calls
from ..runner.run import Run, Variant, compile_now

# --- Cases ---

SIDES, CROWDED_SIDES = (16.0, 256.0), (16.0, 64.0)  # of ground-truth boxes, in pixels
CROWD = 500
HIGH, LOW = 0.7, 0.3
RPN_STRIDES = 4, 8, 16, 32, 64
RATIOS = 0.5, 1.0, 2.0

SIZES = {
    "task-aligned, 20 boxes": Size(TASK_ALIGNED, 16, 640, 640, 20),
    "task-aligned, 100 boxes": Size(TASK_ALIGNED, 16, 640, 640, 100),
    "task-aligned, 1000 boxes": Size(TASK_ALIGNED, 16, 640, 640, 1000),
    "max-IoU, 50 boxes": Size(MAX_IOU, 2, 800, 1056, 50),
}
CASES = tuple(SIZES)


def true_boxes(size: Size, generator: torch.Generator) -> Tensor:
    """(images, boxes, 4); sides are as often from 16 to 32 pixels as from 128 to 256."""
    shape = size.images, size.boxes, 2
    shortest, longest = CROWDED_SIDES if size.boxes > CROWD else SIDES
    picture = torch.tensor([size.width, size.height])
    sides = shortest * (longest / shortest) ** torch.rand(shape, generator=generator)
    sides = torch.minimum(sides, picture / 2)
    first = (picture - sides) * torch.rand(shape, generator=generator)
    return torch.cat((first, first + sides), -1)


def rpn_anchors(size: Size) -> Tensor:
    """As torchvision's AnchorGenerator: corners of a shape in whole pixels, moved by cells."""
    root = torch.tensor(RATIOS).sqrt()
    levels = []
    for cell, stride in zip(assigners.places(size.cells(RPN_STRIDES)), RPN_STRIDES, strict=True):
        half = (torch.stack((1 / root, root), -1) * 8 * stride) / 2
        shapes = torch.cat((-half, half), -1).round()
        levels.append(((cell * stride).repeat(1, 2)[:, None] + shapes).flatten(0, 1))
    return torch.cat(levels)


def predictions(
    points: Tensor, target: Tensor, generator: torch.Generator, classes: int = CLASSES
) -> dict[str, Tensor]:
    """Of most anchors in a box this box, missed by a little, and its class; of others anything."""

    def are_inside(boxes: Tensor) -> Tensor:
        to_sides = torch.cat((points - boxes[:, None, :2], boxes[:, None, 2:] - points), -1)
        return to_sides.amin(-1) > 0

    own, knows = assigners.learned(points, target, are_inside, generator)
    truth = assigners.own_boxes(target, own)
    sides = (truth[..., 2:] - truth[..., :2]).repeat(1, 1, 2)
    near = truth + NEAR * sides * torch.randn(*own.shape, 4, generator=generator)
    reach = 8 + 56 * torch.rand(*own.shape, 4, generator=generator)
    around = torch.cat((points - reach[..., :2], points + reach[..., 2:]), -1)
    pred = torch.where(knows[..., None], near, around)
    return {"pred": pred, **assigners.class_scores(target, own, knows, classes, generator)}


def make_case(name: str, size: Size, device: torch.device) -> Case:
    return assigners.make_case(name, size, device, true_boxes, rpn_anchors, predictions)


# --- Variants ---


def all_targets(case: Case) -> tuple[Tensor, ...]:
    """Beside them labels, boxes, and scores of each class."""
    row, score, overlap = assigners.task_aligned(case)
    there = row.clamp(min=0)
    labels = case.labels[there]
    scores = torch.zeros_like(case.scores).scatter_(2, labels[..., None], score[..., None])
    return row, score, overlap, labels, case.target[there], scores


def max_iou(case: Case) -> tuple[Tensor, ...]:
    options = {"high": HIGH, "low": LOW, "low_quality": "argmax"}
    return max_iou_match(case.anchors, case.target, case.offsets, **options)


def load_torchvision(case: Case) -> Call:
    box_iou = installed("torchvision.ops").box_iou
    return assigners.load_matcher(case.padded(case.target), case.anchors, box_iou, HIGH, LOW, True)


def load_compiled(load: Callable[[Case], Call], case: Case) -> Call:
    original = load(case)
    compiled = torch.compile(lambda: original(), dynamic=False)
    compile_now(compiled)
    return compiled


VARIANTS: dict[str, dict[str, Variant[Case, Call]]] = {
    TASK_ALIGNED: {
        "boxloss": Variant(lambda case: partial(assigners.task_aligned, case)),
        "boxloss, all targets": Variant(lambda case: partial(all_targets, case)),
        "torch.compile": Variant(partial(load_compiled, assigners.load_ultralytics), True),
        "original": Variant(assigners.load_ultralytics),
    },
    MAX_IOU: {
        "boxloss": Variant(lambda case: partial(max_iou, case)),
        "torch.compile": Variant(partial(load_compiled, load_torchvision), True),
        "original": Variant(load_torchvision),
    },
}


def check(run: Run, case: Case, calls: Calls) -> None:
    match = assigners.task_aligned if case.size.kind == TASK_ALIGNED else max_iou
    assigners.check(run, case, calls, match(case.double())[0])


def measure(run: Run) -> None:
    assigners.measure(run, SIZES, make_case, VARIANTS, check)
