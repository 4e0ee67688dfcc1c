# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What do dense assigners take, beside the originals with their matrices?

task-aligned is YOLO's, at 640 x 640 pixels with 8,400 anchors an image, and oriented YOLO's, at
1,024 x 1,024 with 21,504, beside Ultralytics' assigners: predictions are half-trained, most of
those in a box are near it and know its class. max-IoU is that of Faster R-CNN's RPN, at 800 x 1,056
pixels with 211,038 anchors, and of Rotated RetinaNet, at 512 x 512 with 49,104, beside
torchvision's box_iou and Matcher, image by image. Rotated boxes' IoU is detectron2's kernel, as
mmcv's is, and they have no low quality: a box in several equal anchors would be a tie that rounding
decides. Boxes' sides are from 16 to 256 pixels, of a thousand boxes from 16 to 64; rotated ones are
up to eight times as long as wide.

boxloss gives for each anchor the row of its box, and a score or the IoU; "boxloss, all targets"
also makes what Ultralytics' assigner returns: boxes, labels, and a score for each class.
torch.compile is the original compiled for these very shapes. Other boxes counts the anchors whose
box is another one than boxloss' in float64. A second pass counts what a call asks of the GPU. Needs
ultralytics, and a torchvision with rotated boxes, each for its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from boxloss.torch import max_iou_match, task_aligned_match
from torch import Tensor

from ..common.losses import installed, isolate_ultralytics
from ..runner.agreement import DisagreementError
from ..runner.clocks import Call, Calls
from ..runner.run import Row, Run, Variant, compile_now
from .rotated.pairs import in_degrees
from .rotated.peers import rotated_iou

# --- Cases ---

CLASSES = 80
NEAR = 0.1  # by how much a prediction in a box misses it, of its sides and in radians
TRAINED = 0.6  # of the anchors in a box
UNSURE, SURE = -4.6, 4.0  # logits: of no class, and by how much more one knows its own
SIDES, CROWDED_SIDES, ROTATED_SIDES = (16.0, 256.0), (16.0, 64.0), (12.0, 128.0)  # in pixels
CROWD = 500
MOST_LONG = 8.0  # of a rotated box, whose longer side ROTATED_SIDES are
TOPK, ALPHA, BETA = 10, 0.5, 6.0
STRIDES = 8, 16, 32


@dataclass(frozen=True)
class Size:
    images: int
    height: int
    width: int
    boxes: int
    is_rotated: bool = False

    def cells(self, strides: tuple[int, ...] = STRIDES) -> list[tuple[int, int]]:
        """Rows and columns of each level."""
        return [(math.ceil(self.height / each), math.ceil(self.width / each)) for each in strides]

    def given(self, boxes: Tensor) -> Tensor:
        return boxes if self.is_rotated else corners(boxes)


SIZES = {
    "task-aligned, 20 boxes": Size(16, 640, 640, 20),
    "task-aligned, 100 boxes": Size(16, 640, 640, 100),
    "task-aligned, 1000 boxes": Size(16, 640, 640, 1000),
    "max-IoU, 50 boxes": Size(2, 800, 1056, 50),
    "rotated task-aligned, 20 boxes": Size(16, 1024, 1024, 20, True),
    "rotated task-aligned, 100 boxes": Size(16, 1024, 1024, 100, True),
    "rotated task-aligned, 400 boxes": Size(16, 1024, 1024, 400, True),
    "rotated max-IoU, 50 boxes": Size(2, 512, 512, 50, True),
}
CASES = tuple(SIZES)


@dataclass(frozen=True)
class Case:
    """Boxes are as boxloss takes them: corners, or (cx, cy, w, h, radians)."""

    name: str
    size: Size
    target: Tensor  # (images * boxes, 4 or 5)
    offsets: Tensor  # (images + 1)
    # Of max-IoU boxes, (anchors, 4 or 5); of the task-aligned one points, (anchors, 2).
    anchors: Tensor
    # Of the task-aligned one.
    scores: Tensor | None = None  # (images, anchors, classes)
    pred: Tensor | None = None  # (images, anchors, 4 or 5)
    labels: Tensor | None = None  # (images * boxes)

    @property
    def columns(self) -> Row:
        size = self.size
        return {"case": self.name, "anchors": size.images * len(self.anchors), "boxes": size.boxes}

    def padded(self, values: Tensor) -> Tensor:
        """(images, boxes, ...) of what each ground-truth box has: all images have as many."""
        return values.unflatten(0, (self.size.images, self.size.boxes))

    def double(self) -> Case:
        return replace(self, target=self.target.double(), anchors=self.anchors.double())


def make_case(name: str, size: Size, device: torch.device) -> Case:
    """Made on the CPU: the same numbers on every device."""
    generator = torch.Generator().manual_seed(0)
    target = true_boxes(size, generator)
    made = {"target": size.given(target).flatten(0, 1)}
    made["offsets"] = torch.arange(size.images + 1) * size.boxes
    if "max-IoU" in name:
        made["anchors"] = box_anchors(size)
    else:
        made["anchors"] = points(size.cells())
        made |= predictions(made["anchors"], target, generator)
        made["pred"] = size.given(made["pred"])
    return Case(name, size, **{key: each.to(device) for key, each in made.items()})


def true_boxes(size: Size, generator: torch.Generator) -> Tensor:
    """(images, boxes, 5), upright ones without an angle; as many short sides as long ones."""

    def uniform(*more: int) -> Tensor:
        return torch.rand(size.images, size.boxes, *more, generator=generator)

    picture = torch.tensor([size.width, size.height])
    if size.is_rotated:
        shortest, longest = ROTATED_SIDES
        long = shortest * (longest / shortest) ** uniform(1)
        angle = math.pi * (uniform(1) - 0.25)
        return torch.cat((picture * uniform(2), long, long / MOST_LONG ** uniform(1), angle), -1)
    shortest, longest = CROWDED_SIDES if size.boxes > CROWD else SIDES
    sides = torch.minimum(shortest * (longest / shortest) ** uniform(2), picture / 2)
    centre = sides / 2 + (picture - sides) * uniform(2)
    return torch.cat((centre, sides, torch.zeros_like(sides[..., :1])), -1)


def corners(boxes: Tensor) -> Tensor:
    """Of upright boxes, without their angle."""
    centre, half = boxes[..., :2], boxes[..., 2:4] / 2
    return torch.cat((centre - half, centre + half), -1)


def box_anchors(size: Size) -> Tensor:
    """As torchvision's RPN has them, in whole pixels; or mmrotate's, three sizes, not turned."""
    scales = 4 * 2 ** (torch.arange(3) / 3) if size.is_rotated else torch.tensor([8.0])
    strides = (8, 16, 32, 64, 128) if size.is_rotated else (4, 8, 16, 32, 64)
    root = torch.tensor([0.5, 1, 2]).sqrt()
    shapes = torch.stack((scales[:, None] / root, scales[:, None] * root), -1).flatten(0, 1)
    levels = [
        stride * torch.cat(torch.broadcast_tensors(cell[:, None], shapes), -1).flatten(0, 1)
        for cell, stride in zip(places(size.cells(strides)), strides, strict=True)
    ]
    anchors = size.given(torch.nn.functional.pad(torch.cat(levels), (0, 1)))
    return anchors if size.is_rotated else anchors.round()


def points(cells: list[tuple[int, int]]) -> Tensor:
    """Middles of cells, row by row, in pixels."""
    levels = zip(places(cells), STRIDES, strict=True)
    return torch.cat([(cell + 0.5) * stride for cell, stride in levels])


def places(cells: list[tuple[int, int]]) -> list[Tensor]:
    """Column and row of each cell of each level."""
    return [torch.cartesian_prod(*map(torch.arange, level)).flip(1) for level in cells]


def predictions(
    points: Tensor, target: Tensor, generator: torch.Generator, classes: int = CLASSES
) -> dict[str, Tensor]:
    """Of most anchors in a box this box, missed by a little, and its class; of others anything."""
    owns, is_inside = [], []
    for boxes in target:  # one by one: a thousand boxes of all images are gigabytes
        chance = torch.rand(len(boxes), len(points), generator=generator)
        found = chance.where(are_inside(points, boxes), -1.0).max(0)
        owns.append(found.indices)
        is_inside.append(found.values >= 0)
    own = torch.stack(owns)
    knows = torch.stack(is_inside) & (torch.rand(own.shape, generator=generator) < TRAINED)
    image = torch.arange(len(own))[:, None]

    truth = target[image, own]
    unit = torch.cat((truth[..., [2, 3, 2, 3]], torch.ones_like(truth[..., :1])), -1)
    near = truth + NEAR * unit * torch.randn(*own.shape, 5, generator=generator)
    any_box = torch.rand(*own.shape, 3, generator=generator) * torch.tensor([64, 64, math.pi]) + 4
    around = torch.cat((points.expand(*own.shape, 2), any_box), -1)
    pred = torch.where(knows[..., None], near, around)

    labels = torch.randint(classes, target.shape[:2], generator=generator)
    logits = UNSURE + torch.randn(*own.shape, classes, generator=generator)
    logits.scatter_add_(-1, labels[image, own][..., None], SURE * knows[..., None].float())
    return {"pred": pred, "scores": logits.sigmoid(), "labels": labels.flatten()}


def are_inside(points: Tensor, boxes: Tensor) -> Tensor:
    """(boxes, points)"""
    x, y = (points - boxes[:, None, :2]).unbind(-1)
    cos, sin = boxes[:, None, 4].cos(), boxes[:, None, 4].sin()
    reach = torch.stack((cos * x + sin * y, cos * y - sin * x), -1).abs() <= boxes[:, None, 2:4] / 2
    return reach.all(-1)


# --- Variants ---


def task_aligned(case: Case) -> tuple[Tensor, ...]:
    given = case.scores, case.pred, case.anchors, case.target, case.offsets, case.labels
    options = {"topk": TOPK, "alpha": ALPHA, "beta": BETA, "min_side": float(STRIDES[1])}
    return task_aligned_match(*given, **options)


def all_targets(case: Case) -> tuple[Tensor, ...]:
    """Beside them labels, boxes, and scores of each class."""
    row, score, overlap = task_aligned(case)
    there = row.clamp(min=0)
    labels = case.labels[there]
    scores = torch.zeros_like(case.scores).scatter_(2, labels[..., None], score[..., None])
    return row, score, overlap, labels, case.target[there], scores


def load_ultralytics(case: Case) -> Call:
    isolate_ultralytics()
    name = "RotatedTaskAlignedAssigner" if case.size.is_rotated else "TaskAlignedAssigner"
    assigner = getattr(installed("ultralytics.utils.tal"), name)(
        TOPK, case.scores.shape[2], ALPHA, BETA, stride=[float(each) for each in STRIDES]
    )
    target, labels = case.padded(case.target), case.padded(case.labels)
    has_box = target.sum(2, keepdim=True) > 0
    given = case.scores, case.pred, case.anchors, labels[..., None].float(), target, has_box.float()
    return partial(assigner, *given)


HIGH, LOW, ROTATED_HIGH, ROTATED_LOW = 0.7, 0.3, 0.5, 0.4


def max_iou(case: Case) -> tuple[Tensor, ...]:
    given = case.anchors, case.target, case.offsets
    if case.size.is_rotated:
        return max_iou_match(*given, high=ROTATED_HIGH, low=ROTATED_LOW)
    return max_iou_match(*given, high=HIGH, low=LOW, low_quality="argmax")


def load_torchvision(case: Case) -> Call:
    """Of rotated boxes in degrees."""
    matcher = installed("torchvision.models.detection._utils").Matcher
    target, anchors = case.padded(case.target), case.anchors
    if case.size.is_rotated:
        box_iou, match = rotated_iou(), matcher(ROTATED_HIGH, ROTATED_LOW)
        target, anchors = in_degrees(target), in_degrees(anchors)
    else:
        box_iou, match = installed("torchvision.ops").box_iou, matcher(HIGH, LOW, True)
    return lambda: [match(box_iou(boxes, anchors)) for boxes in target]


def compiled(original: Variant[Case, Call]) -> Variant[Case, Call]:
    def load(case: Case) -> Call:
        call = original.load(case)
        compiled = torch.compile(lambda: call(), dynamic=False)
        compile_now(compiled)
        return compiled

    return Variant(load, slow_to_start=True)


ULTRALYTICS, TORCHVISION = Variant(load_ultralytics), Variant(load_torchvision)
ROTATED_TASK_ALIGNED: dict[str, Variant[Case, Call]] = {
    "boxloss": Variant(lambda case: partial(task_aligned, case)),
    "original": ULTRALYTICS,
}
ROTATED_MAX_IOU: dict[str, Variant[Case, Call]] = {
    "boxloss": Variant(lambda case: partial(max_iou, case)),
    "original": TORCHVISION,
}
# By what a case's name begins with; the first is what ratios are taken to.
VARIANTS: dict[str, dict[str, Variant[Case, Call]]] = {
    "task-aligned": {
        **ROTATED_TASK_ALIGNED,
        "boxloss, all targets": Variant(lambda case: partial(all_targets, case)),
        "torch.compile": compiled(ULTRALYTICS),
    },
    "max-IoU": {**ROTATED_MAX_IOU, "torch.compile": compiled(TORCHVISION)},
    "rotated task-aligned": ROTATED_TASK_ALIGNED,
    "rotated max-IoU": ROTATED_MAX_IOU,
}

# --- Agreement ---

# Of the anchors that have a box: where metrics or overlaps are equal but for rounding, and
# Ultralytics' for its eps: sqrt(2e-7) at equal rotated boxes.
MOST_DIFFERENT = {"original": 1e-2, "torch.compile": 1e-2}
MOST_OF_OURS = 1e-4


def check(run: Run, case: Case, calls: Calls) -> None:
    """How many anchors have another box than boxloss' in float64: DisagreementError if many."""
    exact = (max_iou if case.pred is None else task_aligned)(case.double())[0]
    owned = int((exact >= 0).sum())
    for name, call in calls.items():
        different = int((rows_of(case, call()) != exact).sum())
        if different > MOST_DIFFERENT.get(name, MOST_OF_OURS) * owned:
            raise DisagreementError(
                f"{case.name}, {name}: {different} anchors have another box, of {owned} with one"
            )
        run.record(case.columns | {"variant": name}, "other boxes", "", different)


def rows_of(case: Case, found: Any) -> Tensor:
    """Each anchor's row of target: of boxloss' result, Ultralytics' five tensors, or those of
    images that a Matcher gives."""
    first = case.offsets[:-1, None]
    if isinstance(found, list):
        matched = torch.stack(found)
        return torch.where(matched < 0, matched, matched + first)
    if len(found) == 5:
        return torch.where(found[2].sum(-1) > 0, found[4] + first, -1)
    return found[0]


# --- Measuring ---


def measure(run: Run) -> None:
    sizes = SIZES
    if run.quick:
        small = {"images": 2, "height": 128, "width": 128}
        sizes = {n: replace(each, boxes=each.boxes // 10, **small) for n, each in sizes.items()}
    cases = {name: partial(make_case, name, size, run.device) for name, size in sizes.items()}

    def agreed(case: Case) -> Calls:
        calls = run.load(VARIANTS[case.name.partition(",")[0]], case)
        check(run, case, calls)
        return calls

    run.time_and_count(cases, agreed, ("stream", "gpu"))
