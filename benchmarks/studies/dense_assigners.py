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
torch.compile is the original compiled for these very shapes. A second pass counts what a call asks
of the GPU. Needs ultralytics and torchvision, each for its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
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

# --- Cases ---

TASK_ALIGNED, MAX_IOU = "task-aligned", "max-IoU"
SIDES, CROWDED_SIDES = (16.0, 256.0), (16.0, 64.0)  # of ground-truth boxes, in pixels
CROWD = 500
CLASSES = 80
NEAR = 0.1  # by how much a prediction in a box misses it, of its sides
TRAINED = 0.6  # of the anchors in a box
UNSURE, SURE = -4.6, 4.0  # logits: of no class, and by how much more one knows its own

TOPK, ALPHA, BETA = 10, 0.5, 6.0
STRIDES = 8, 16, 32
HIGH, LOW = 0.7, 0.3
RPN_STRIDES = 4, 8, 16, 32, 64
RATIOS = 0.5, 1.0, 2.0


@dataclass(frozen=True)
class Size:
    kind: str
    images: int
    height: int
    width: int
    boxes: int


SIZES = {
    "task-aligned, 20 boxes": Size(TASK_ALIGNED, 16, 640, 640, 20),
    "task-aligned, 100 boxes": Size(TASK_ALIGNED, 16, 640, 640, 100),
    "task-aligned, 1000 boxes": Size(TASK_ALIGNED, 16, 640, 640, 1000),
    "max-IoU, 50 boxes": Size(MAX_IOU, 2, 800, 1056, 50),
}
QUICK_SIZES = {
    name: replace(size, images=2, height=160, width=128, boxes=size.boxes // 10)
    for name, size in SIZES.items()
}
CASES = tuple(SIZES)


@dataclass(frozen=True)
class Case:
    name: str
    size: Size
    target: Tensor  # (images * boxes, 4), corners
    offsets: Tensor  # (images + 1)
    cells: list[tuple[int, int]]  # rows and columns of each level
    # Of max-IoU, (anchors, 4); of the task-aligned one their points, (anchors, 2).
    anchors: Tensor
    # Of the task-aligned one.
    scores: Tensor | None = None  # (images, anchors, classes)
    pred: Tensor | None = None  # (images, anchors, 4)
    labels: Tensor | None = None  # (images * boxes)

    @property
    def columns(self) -> Row:
        size = self.size
        return {"case": self.name, "anchors": size.images * len(self.anchors), "boxes": size.boxes}

    def padded(self, values: Tensor) -> Tensor:
        """(images, boxes, ...) of what each ground-truth box has: all images have as many."""
        return values.unflatten(0, (self.size.images, self.size.boxes))


def make_case(name: str, size: Size, device: torch.device) -> Case:
    """Made on the CPU: the same numbers on every device."""
    generator = torch.Generator().manual_seed(0)
    target = true_boxes(size, generator)
    strides = STRIDES if size.kind == TASK_ALIGNED else RPN_STRIDES
    cells = [(math.ceil(size.height / each), math.ceil(size.width / each)) for each in strides]
    if size.kind == MAX_IOU:
        anchors = rpn_anchors(cells)
        predicted: dict[str, Tensor] = {}
    else:
        anchors = points(cells)
        predicted = predictions(anchors, target, generator)
    return Case(
        name,
        size,
        target.flatten(0, 1).to(device),
        (torch.arange(size.images + 1) * size.boxes).to(device),
        cells,
        anchors.to(device),
        **{name: each.to(device) for name, each in predicted.items()},
    )


def true_boxes(size: Size, generator: torch.Generator) -> Tensor:
    """(images, boxes, 4); sides are as often from 16 to 32 pixels as from 128 to 256."""
    shape = size.images, size.boxes, 2
    shortest, longest = CROWDED_SIDES if size.boxes > CROWD else SIDES
    picture = torch.tensor([size.width, size.height])
    sides = shortest * (longest / shortest) ** torch.rand(shape, generator=generator)
    sides = torch.minimum(sides, picture / 2)
    first = (picture - sides) * torch.rand(shape, generator=generator)
    return torch.cat((first, first + sides), -1)


def points(cells: list[tuple[int, int]]) -> Tensor:
    """Middles of cells, row by row, in pixels."""
    return torch.cat(
        [(cell + 0.5) * stride for cell, stride in zip(places(cells), STRIDES, strict=True)]
    )


def rpn_anchors(cells: list[tuple[int, int]]) -> Tensor:
    """As torchvision's AnchorGenerator: corners of a shape in whole pixels, moved by cells."""
    root = torch.tensor(RATIOS).sqrt()
    levels = []
    for cell, stride in zip(places(cells), RPN_STRIDES, strict=True):
        half = (torch.stack((1 / root, root), -1) * 8 * stride) / 2
        shapes = torch.cat((-half, half), -1).round()
        levels.append(((cell * stride).repeat(1, 2)[:, None] + shapes).flatten(0, 1))
    return torch.cat(levels)


def places(cells: list[tuple[int, int]]) -> list[Tensor]:
    """Column and row of each cell of each level."""
    return [torch.cartesian_prod(*map(torch.arange, level)).flip(1) for level in cells]


def predictions(
    points: Tensor, target: Tensor, generator: torch.Generator, classes: int = CLASSES
) -> dict[str, Tensor]:
    """Of most anchors in a box this box, missed by a little, and its class; of others anything."""

    def are_inside(boxes: Tensor) -> Tensor:
        to_sides = torch.cat((points - boxes[:, None, :2], boxes[:, None, 2:] - points), -1)
        return to_sides.amin(-1) > 0

    own, knows = learned(points, target, are_inside, generator)
    truth = own_boxes(target, own)
    shape = own.shape
    sides = (truth[..., 2:] - truth[..., :2]).repeat(1, 1, 2)
    near = truth + NEAR * sides * torch.randn(*shape, 4, generator=generator)
    reach = 8 + 56 * torch.rand(*shape, 4, generator=generator)
    around = torch.cat((points - reach[..., :2], points + reach[..., 2:]), -1)
    pred = torch.where(knows[..., None], near, around)
    return {"pred": pred, **class_scores(target, own, knows, classes, generator)}


def learned(
    points: Tensor,
    target: Tensor,
    are_inside: Callable[[Tensor], Tensor],
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """A box that each anchor's point lies in, by its number, and whether a network has learned it:
    (images, anchors). are_inside tells it of an image's boxes: (boxes, anchors)."""
    owns, is_inside = [], []
    for each in target:  # one by one: a thousand boxes of all images are gigabytes
        chance = torch.rand(len(each), len(points), generator=generator)
        found = chance.where(are_inside(each), -1.0).max(0)
        owns.append(found.indices)
        is_inside.append(found.values >= 0)
    own = torch.stack(owns)
    return own, torch.stack(is_inside) & (torch.rand(own.shape, generator=generator) < TRAINED)


def own_boxes(of_images: Tensor, own: Tensor) -> Tensor:
    """What the own box of each anchor has."""
    return of_images[torch.arange(len(own))[:, None], own]


def class_scores(
    target: Tensor, own: Tensor, knows: Tensor, classes: int, generator: torch.Generator
) -> dict[str, Tensor]:
    """The class of each box, and scores."""
    labels = torch.randint(classes, target.shape[:2], generator=generator)
    logits = UNSURE + torch.randn(*own.shape, classes, generator=generator)
    own_class = own_boxes(labels, own)[..., None]
    logits.scatter_add_(-1, own_class, SURE * knows[..., None].float())
    return {"scores": logits.sigmoid(), "labels": labels.flatten()}


# --- boxloss ---


def task_aligned(case: Case) -> tuple[Tensor, ...]:
    return task_aligned_match(
        case.scores,
        case.pred,
        case.anchors,
        case.target,
        case.offsets,
        case.labels,
        topk=TOPK,
        alpha=ALPHA,
        beta=BETA,
        min_side=float(STRIDES[1]),
    )


def all_targets(case: Case) -> tuple[Tensor, ...]:
    """Beside them labels, boxes, and scores of each class."""
    row, score, overlap = task_aligned(case)
    there = row.clamp(min=0)
    labels = case.labels[there]
    scores = torch.zeros_like(case.scores).scatter_(2, labels[..., None], score[..., None])
    return row, score, overlap, labels, case.target[there], scores


def max_iou(case: Case) -> tuple[Tensor, ...]:
    return max_iou_match(
        case.anchors,
        case.target,
        case.offsets,
        high=HIGH,
        low=LOW,
        low_quality="argmax",
    )


# --- Originals ---


def load_ultralytics(case: Case, name: str = "TaskAlignedAssigner") -> Callable[[], Any]:
    isolate_ultralytics()
    assigner = getattr(installed("ultralytics.utils.tal"), name)(
        TOPK, case.scores.shape[2], ALPHA, BETA, stride=[float(each) for each in STRIDES]
    )
    target, labels = case.padded(case.target), case.padded(case.labels)
    has_box = target.sum(2, keepdim=True) > 0
    given = case.scores, case.pred, case.anchors, labels[..., None].float(), target, has_box.float()
    return partial(assigner, *given)


def load_torchvision(case: Case) -> Callable[[], Any]:
    box_iou = installed("torchvision.ops").box_iou
    utils = installed("torchvision.models.detection._utils")
    matcher = utils.Matcher(HIGH, LOW, allow_low_quality_matches=True)
    images = case.padded(case.target).unbind()

    def match() -> list[Tensor]:
        return [matcher(box_iou(boxes, case.anchors)) for boxes in images]

    return match


def load_compiled(load: Callable[[Case], Callable[[], Any]], case: Case) -> Callable[[], Any]:
    original = load(case)
    compiled = torch.compile(lambda: original(), dynamic=False)
    compile_now(compiled)
    return compiled


# --- Agreement ---

MOST_DIFFERENT = 1e-4  # of the anchors: where metrics or overlaps are equal but for rounding
# A CIoU is a sum of three terms of at most 1, with some 20 roundings in each. A score has its
# anchor's to the power of BETA, another anchor's in the divisor, and a third one.
OVERLAP_ERROR = 64 * 2.0**-24


def check_task_aligned(case: Case, found: tuple[Tensor, ...], theirs: Any) -> int:
    """How many anchors have another box, which DisagreementError is for if they are many."""
    _, _, target_scores, _, row_in_image = theirs
    score = target_scores.sum(-1)
    first = torch.arange(case.size.images, device=score.device)[:, None] * case.size.boxes
    wanted = torch.where(score > 0, row_in_image + first, -1)
    row, own_score, overlap = found[:3]
    is_other = row != wanted
    different = int(is_other.sum())
    if different > MOST_DIFFERENT * row.numel():
        raise DisagreementError(f"{case.name}: {different} anchors have another box")
    # A box that got another anchor may have another best one, which all of its scores go by.
    touched = torch.cat((row[is_other], wanted[is_other]))
    is_whole = ~torch.isin(wanted, touched) & (wanted >= 0)
    of_both = 2 * (2 * BETA + 1) * OVERLAP_ERROR / overlap.clamp(min=1e-3)
    apart = (own_score - score).abs() - of_both * score
    if not bool((apart[is_whole] <= 0).all()):
        raise DisagreementError(f"{case.name}: a score is {apart.max().item():.2g} beyond rounding")
    if len(found) > 3 and not torch.equal(found[-1].sum(-1), own_score):
        raise DisagreementError(f"{case.name}: scores of classes are not the anchors' scores")
    return different


def check_max_iou(case: Case, found: tuple[Tensor, ...], theirs: Any) -> int:
    """0: all must be equal."""
    offsets = case.offsets[:-1, None]
    matched = torch.stack(theirs)
    wanted = torch.where(matched < 0, matched, matched + offsets)
    if not torch.equal(found[0], wanted):
        raise DisagreementError(f"{case.name}: other boxes than torchvision's")
    return 0


# --- Measuring ---


# By kind; the first is what ratios are taken to.
VARIANTS: dict[str, dict[str, Variant[Case, Call]]] = {
    TASK_ALIGNED: {
        "boxloss": Variant(lambda case: partial(task_aligned, case)),
        "boxloss, all targets": Variant(lambda case: partial(all_targets, case)),
        "torch.compile": Variant(partial(load_compiled, load_ultralytics), True),
        "original": Variant(load_ultralytics),
    },
    MAX_IOU: {
        "boxloss": Variant(lambda case: partial(max_iou, case)),
        "torch.compile": Variant(partial(load_compiled, load_torchvision), True),
        "original": Variant(load_torchvision),
    },
}
CHECKS = {TASK_ALIGNED: check_task_aligned, MAX_IOU: check_max_iou}


def measure(run: Run) -> None:
    for case in run.each(cases(run)):
        calls = run.load(VARIANTS[case.size.kind], case)
        check(run, case, calls)
        run.time(case.columns, calls, ("stream", "gpu"))
    for case in run.each(cases(run) if run.on_gpu else {}):
        run.count(case.columns, run.load(VARIANTS[case.size.kind], case))


def check(run: Run, case: Case, calls: Calls) -> None:
    """Of boxloss' variants; without the original nothing is known."""
    if "original" not in calls:
        return
    theirs = calls["original"]()
    for name, call in calls.items():
        if name.startswith("boxloss"):
            different = CHECKS[case.size.kind](case, call(), theirs)
            run.record(case.columns | {"variant": name}, "other boxes", "", different)


def cases(run: Run) -> dict[str, Callable[[], Case]]:
    sizes = QUICK_SIZES if run.quick else SIZES
    return {name: partial(make_case, name, size, run.device) for name, size in sizes.items()}
