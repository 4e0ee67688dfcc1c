# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What do assigners and the criterion of oriented detectors take, beside the originals?

task-aligned is oriented YOLO's assigner, at 1,024 x 1,024 pixels with 21,504 anchors an image,
beside Ultralytics' RotatedTaskAlignedAssigner: predictions are half-trained, as in the study
dense_assigners. max-IoU is Rotated RetinaNet's, at 512 x 512 pixels with 49,104 anchors, beside
torchvision's box_iou, whose kernel is detectron2's as mmcv's is, and its Matcher, image by image;
without low quality, where a box in several equal anchors is a tie that rounding decides. criterion
is all of oriented YOLO11's losses, from a head's output to its gradient, beside v8OBBLoss. Boxes
are up to eight times as long as wide, at any angle.

other boxes counts the anchors whose box is another one than boxloss' in float64. A second pass
counts what a call asks of the GPU. Needs ultralytics, and a torchvision with rotated boxes, each
for its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial

import torch
from boxloss.torch import max_iou_match
from torch import Tensor

from ..common import assigners
from ..common.assigners import BINS, CLASSES, MAX_IOU, NEAR, STRIDES, TASK_ALIGNED, Size
from ..common.losses import installed, isolate_ultralytics
from ..runner.agreement import DisagreementError
from ..runner.clocks import Call, Calls
from ..runner.run import Run, Variant
from .rotated.peers import rotated_iou

# --- Cases ---

CRITERION = "criterion"
SIDES, MOST_LONG = (12.0, 128.0), 8.0  # of ground-truth boxes, the longer side in pixels
RETINA_STRIDES = 8, 16, 32, 64, 128
HIGH, LOW = 0.5, 0.4

SIZES = {
    "task-aligned, 20 boxes": Size(TASK_ALIGNED, 16, 1024, 1024, 20),
    "task-aligned, 100 boxes": Size(TASK_ALIGNED, 16, 1024, 1024, 100),
    "task-aligned, 400 boxes": Size(TASK_ALIGNED, 16, 1024, 1024, 400),
    "max-IoU, 50 boxes": Size(MAX_IOU, 2, 512, 512, 50),
    "criterion, 20 boxes": Size(CRITERION, 16, 1024, 1024, 20),
    "criterion, 100 boxes": Size(CRITERION, 16, 1024, 1024, 100),
}
CASES = tuple(SIZES)


@dataclass(frozen=True)
class Case(assigners.Case):
    """The criterion has a head's output, whose gradients are wanted."""

    leaves: dict[str, Tensor] = field(default_factory=dict)


def make_case(name: str, size: Size, device: torch.device) -> Case:
    made = assigners.make_case(name, size, device, ground_truth, retina_anchors, predictions)
    case = Case(**vars(made))
    return replace(case, leaves=head_output(case)) if size.kind == CRITERION else case


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


def head_output(case: Case) -> dict[str, Tensor]:
    """Of which the criterion decodes about the case's predictions; bins near a side are likely."""
    x, y = (case.pred[..., :2] - case.anchors).unbind(-1)
    cos, sin = case.pred[..., 4].cos(), case.pred[..., 4].sin()
    middle, half = torch.stack((cos * x + sin * y, cos * y - sin * x), -1), case.pred[..., 2:4] / 2
    counts = torch.tensor([rows * columns for rows, columns in case.size.cells()])
    stride = torch.tensor(STRIDES).repeat_interleave(counts).to(half)
    sides = torch.cat((half - middle, half + middle), -1) / stride[:, None]
    apart = sides[..., None] - torch.arange(BINS, device=sides.device)
    outputs = {
        "boxes": (-2 * apart.abs()).flatten(2),
        "scores": case.scores.logit(),
        "angle": case.pred[..., 4:],
    }
    return {name: each.mT.contiguous().requires_grad_() for name, each in outputs.items()}


# --- Variants ---


def max_iou(case: Case) -> tuple[Tensor, ...]:
    return max_iou_match(case.anchors, case.target, case.offsets, high=HIGH, low=LOW)


def load_criterion(case: Case, module: str, name: str) -> Call:
    """Its gradients by a head's output."""
    isolate_ultralytics()
    device, leaves = case.target.device, list(case.leaves.values())
    unit = torch.tensor([case.size.width] * 4 + [1.0], device=device)
    images = torch.arange(case.size.images, device=device).repeat_interleave(case.size.boxes)
    batch = {"batch_idx": images, "cls": case.labels, "bboxes": case.target / unit}
    criterion = getattr(installed(module), name)
    loss_of = assigners.load_yolo_loss(criterion, case.leaves, case.size.cells(), batch)

    def step() -> tuple[Tensor, ...]:
        loss = loss_of()
        return loss.detach(), *torch.autograd.grad(loss, leaves)

    return step


def load_torchvision(case: Case) -> Call:
    """In degrees."""
    target, anchors = case.padded(case.target).clone(), case.anchors.clone()
    for boxes in (target, anchors):
        boxes[..., 4] *= -180 / math.pi
    return assigners.load_matcher(target, anchors, rotated_iou(), HIGH, LOW)


def criterion(module: str, name: str) -> Variant[Case, Call]:
    return Variant(partial(load_criterion, module=module, name=name))


VARIANTS: dict[str, dict[str, Variant[Case, Call]]] = {
    TASK_ALIGNED: {
        "boxloss": Variant(lambda case: partial(assigners.task_aligned, case)),
        "original": Variant(partial(assigners.load_ultralytics, name="RotatedTaskAlignedAssigner")),
    },
    MAX_IOU: {
        "boxloss": Variant(lambda case: partial(max_iou, case)),
        "original": Variant(load_torchvision),
    },
    CRITERION: {
        "boxloss": criterion("boxloss.torch.compat.families.oriented_yolo", "OrientedLoss"),
        "original": criterion("ultralytics.utils.loss", "v8OBBLoss"),
    },
}

# --- Agreement ---

# Of a loss, and of the gradients' norm; theirs has an eps beside what it takes a root of.
MOST_APART = 1e-3


def check(run: Run, case: Case, calls: Calls) -> None:
    if case.size.kind != CRITERION:
        match = assigners.task_aligned if case.size.kind == TASK_ALIGNED else max_iou
        assigners.check(run, case, calls, match(case.double())[0])
    elif "original" in calls:  # without which nothing is known
        ours, theirs = (calls[name]() for name in ("boxloss", "original"))
        parts = [(a - b).norm() / b.norm() for a, b in zip(ours, theirs, strict=True)]
        apart = torch.stack(parts).max().item()  # NaN, if any is
        if not apart <= MOST_APART:
            raise DisagreementError(f"{case.name}: {apart:.2g} of the loss or a gradient apart")
        run.record(case.columns | {"variant": "boxloss"}, "apart", "", apart)


def measure(run: Run) -> None:
    assigners.measure(run, SIZES, make_case, VARIANTS, check)
