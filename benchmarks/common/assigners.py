# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What the studies of dense and of oriented assigners share: half-trained predictions, the
originals, and whether each anchor has its box."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any, TypeVar

import torch
from boxloss.torch import task_aligned_match
from torch import Tensor

from ..runner.agreement import DisagreementError
from ..runner.clocks import Call, Calls
from ..runner.run import Row, Run, Variant
from .losses import installed, isolate_ultralytics

TASK_ALIGNED, MAX_IOU = "task-aligned", "max-IoU"
CLASSES = 80
NEAR = 0.1  # by how much a prediction in a box misses it, of its sides and in radians
TRAINED = 0.6  # of the anchors in a box
UNSURE, SURE = -4.6, 4.0  # logits: of no class, and by how much more one knows its own
TOPK, ALPHA, BETA = 10, 0.5, 6.0
STRIDES = 8, 16, 32
BINS = 16  # in which YOLO predicts a side
GAINS = {"box": 7.5, "cls": 0.5, "dfl": 1.5, "angle": 1.0}  # Ultralytics', for training

Level = tuple[int, int]  # rows and columns


@dataclass(frozen=True)
class Size:
    kind: str
    images: int
    height: int
    width: int
    boxes: int

    def cells(self, strides: tuple[int, ...] = STRIDES) -> list[Level]:
        return [(math.ceil(self.height / each), math.ceil(self.width / each)) for each in strides]


@dataclass(frozen=True)
class Case:
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


def make_case(
    name: str,
    size: Size,
    device: torch.device,
    true_boxes: Callable[[Size, torch.Generator], Tensor],
    max_iou_anchors: Callable[[Size], Tensor],
    predictions: Callable[[Tensor, Tensor, torch.Generator], dict[str, Tensor]],
) -> Case:
    """Made on the CPU: the same numbers on every device."""
    generator = torch.Generator().manual_seed(0)
    target = true_boxes(size, generator)
    given: dict[str, Tensor] = {}
    if size.kind == MAX_IOU:
        anchors = max_iou_anchors(size)
    else:
        anchors = points(size.cells())
        given = predictions(anchors, target, generator)
    given |= {"target": target.flatten(0, 1), "anchors": anchors}
    given["offsets"] = torch.arange(size.images + 1) * size.boxes
    return Case(name, size, **{name: each.to(device) for name, each in given.items()})


def points(cells: list[Level]) -> Tensor:
    """Middles of cells, row by row, in pixels."""
    levels = zip(places(cells), STRIDES, strict=True)
    return torch.cat([(cell + 0.5) * stride for cell, stride in levels])


def places(cells: list[Level]) -> list[Tensor]:
    """Column and row of each cell of each level."""
    return [torch.cartesian_prod(*map(torch.arange, level)).flip(1) for level in cells]


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


# --- Who assigns ---


def task_aligned(case: Case) -> tuple[Tensor, ...]:
    given = case.scores, case.pred, case.anchors, case.target, case.offsets, case.labels
    options = {"topk": TOPK, "alpha": ALPHA, "beta": BETA, "min_side": float(STRIDES[1])}
    return task_aligned_match(*given, **options)


def load_ultralytics(case: Case, name: str = "TaskAlignedAssigner") -> Call:
    isolate_ultralytics()
    assigner = getattr(installed("ultralytics.utils.tal"), name)(
        TOPK, case.scores.shape[2], ALPHA, BETA, stride=[float(each) for each in STRIDES]
    )
    target, labels = case.padded(case.target), case.padded(case.labels)
    has_box = target.sum(2, keepdim=True) > 0
    given = case.scores, case.pred, case.anchors, labels[..., None].float(), target, has_box.float()
    return partial(assigner, *given)


def load_matcher(
    target: Tensor, anchors: Tensor, box_iou: Callable[..., Tensor], *matcher: Any
) -> Call:
    """torchvision's Matcher of each image's (images, boxes, ...), which is given that."""
    match = installed("torchvision.models.detection._utils").Matcher(*matcher)
    images = target.unbind()
    return lambda: [match(box_iou(boxes, anchors)) for boxes in images]


def load_yolo_loss(
    criterion: Callable[[Any], Any],
    leaves: dict[str, Tensor],
    cells: list[Level],
    batch: dict[str, Tensor],
) -> Callable[[], Tensor]:
    """Of a head's output, by Ultralytics' criterion or one in its place."""
    logits = leaves["scores"]
    stride = torch.tensor([float(each) for each in STRIDES], device=logits.device)
    head = SimpleNamespace(stride=stride, nc=logits.shape[1], reg_max=BINS)
    args, parameters = SimpleNamespace(**GAINS), lambda: iter([logits])
    made = criterion(SimpleNamespace(parameters=parameters, args=args, model=[head]))
    preds = {**leaves, "feats": [logits.new_zeros(1, 1, *each) for each in cells]}
    return lambda: made.loss(preds, batch)[0].sum()


# --- Agreement ---

# Of the anchors that have a box: where metrics or overlaps are equal but for rounding, and
# Ultralytics' for its eps: sqrt(2e-7) at equal rotated boxes.
MOST_DIFFERENT = {"boxloss": 1e-4, "original": 1e-2, "torch.compile": 1e-2}


def check(run: Run, case: Case, calls: Calls, exact: Tensor) -> None:
    """How many anchors have another box than boxloss' in float64: DisagreementError if many."""
    owned = int((exact >= 0).sum())
    for name, call in calls.items():
        different = int((rows_of(case, call()) != exact).sum())
        if different > MOST_DIFFERENT.get(name, MOST_DIFFERENT["boxloss"]) * owned:
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

OfCase = TypeVar("OfCase", bound=Case)


def measure(
    run: Run,
    sizes: Mapping[str, Size],
    make: Callable[[str, Size, torch.device], OfCase],
    variants: Mapping[str, Mapping[str, Variant[OfCase, Call]]],
    agree: Callable[[Run, OfCase, Calls], None],
) -> None:
    """Variants are those of a size's kind; the first is what ratios are taken to."""
    if run.quick:
        small = {"images": 2, "height": 128, "width": 128}
        sizes = {n: replace(each, boxes=each.boxes // 10, **small) for n, each in sizes.items()}
    cases = {name: partial(make, name, size, run.device) for name, size in sizes.items()}

    def agreed(case: OfCase) -> Calls:
        calls = run.load(variants[case.size.kind], case)
        agree(run, case, calls)
        return calls

    run.time_and_count(cases, agreed, ("stream", "gpu"))
