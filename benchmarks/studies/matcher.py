# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What do a matcher, its cost and an assigner's overlaps take?

cost is all layers' cost on the device; matching is that and the assignment, up to the pairs'
indices. padded is plain torch for all layers and images at
once, its ground-truth boxes padded beforehand to the most of any; original is transformers' own
matcher, called layer by layer, whose cost is its own code stopped at the copy to the host. A second
pass counts what a call asks of the GPU. Needs SciPy; transformers (with PIL) for its matchers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from boxloss.torch import hungarian_match, matching_cost, pairwise_iou
from torch import Tensor

from ..common.losses import transformers_loss
from ..runner.agreement import compare_entries
from ..runner.clocks import Call, Calls
from ..runner.run import Row, Run, UnavailableError, Variant, compile_now
from .matched_pairs import corners, drawn_boxes, giou_of, iou_and_union, predictions, relative

# --- Cases: predictions of all layers, and the ground-truth boxes of each image ---

LARGEST_LOGIT = 6  # beyond it 1 - sigmoid keeps few digits, and nothing could be checked
FOCAL_ALPHA = 0.25
CLOSE_TO_ZERO = 1e-8  # keeps the logarithms of a focal cost finite, in every original


@dataclass(frozen=True)
class Cost:
    """What an entry is made of."""

    loss: str = "giou"
    iou_weight: float = 2
    l1_weight: float = 5
    class_weight: float = 0  # with 0 there are no classes
    class_mode: str = "focal"
    box_format: str = "cxcywh"
    eps: float = 0  # added


SOFTMAX = Cost(class_weight=1, class_mode="softmax")  # DETR's weights
FOCAL = Cost(class_weight=2)  # those of Deformable DETR and its heirs
# No cost but the overlap itself.
OVERLAPS = Cost("ciou", iou_weight=1, l1_weight=0, box_format="xyxy", eps=1e-7)


@dataclass(frozen=True)
class Shape:
    """`boxes` in each image, or about as many as in COCO's."""

    layers: int
    images: int
    queries: int
    classes: int
    cost: Cost
    boxes: int | None = None
    groups: int = 1


SHAPES = {
    "detr": Shape(1, 8, 100, 92, SOFTMAX),  # 91 and "no object"
    "detr-layers": Shape(6, 8, 100, 92, SOFTMAX),
    "rtdetr": Shape(7, 16, 300, 80, FOCAL),
    "rtdetr-365": Shape(7, 16, 300, 365, FOCAL),
    "dense": Shape(1, 8, 300, 80, FOCAL, boxes=150),
    "lwdetr": Shape(1, 16, 3900, 91, FOCAL, groups=13),
    "assigner": Shape(1, 16, 8400, 0, OVERLAPS, boxes=100),
}
QUICK_SHAPES = {
    kind: replace(
        shape,
        layers=min(shape.layers, 2),
        images=3,
        queries=60,
        classes=min(shape.classes, 8),
        boxes=shape.boxes and 20,
        groups=min(shape.groups, 3),
    )
    for kind, shape in SHAPES.items()
}
CASES = tuple(SHAPES)


@dataclass(frozen=True)
class Case:
    """All variants' tensors, on the device beforehand. What is padded is nobody's box."""

    kind: str
    shape: Shape
    pred: Tensor  # (layers, images, queries, 4)
    logits: Tensor | None  # (layers, images, queries, classes)
    target: Tensor  # (T, 4)
    labels: Tensor | None  # (T)
    offsets: Tensor  # (images + 1)
    counts: tuple[int, ...]
    padded_target: Tensor  # (images, most, 4)
    padded_labels: Tensor | None  # (images, most)

    @property
    def cost(self) -> Cost:
        return self.shape.cost

    @property
    def columns(self) -> Row:
        shape = self.shape
        lead = f"{shape.layers} x {shape.images} x {shape.queries} queries"
        entries = shape.layers * shape.queries * sum(self.counts)
        about: Row = {"case": self.kind, "shape": lead, "classes": shape.classes}
        return about | {"entries": entries}

    def own(self, image: int) -> slice:
        """The ground-truth boxes of an image."""
        first = sum(self.counts[:image])
        return slice(first, first + self.counts[image])


def make_case(kind: str, shape: Shape, device: torch.device) -> Case:
    """On the device from the start: the largest have millions of boxes."""
    generator = torch.Generator(device).manual_seed(0)
    counts = box_counts(shape)
    total, most = sum(counts), max(counts)
    truths = drawn_boxes(total, generator)
    # Guesses are near some ground-truth box, mostly of another image, and mostly of another query.
    rows = shape.layers * shape.images * shape.queries
    guesses = truths[torch.randint(total, (rows,), generator=generator, device=device)]
    boxes = predictions(guesses, generator)
    if shape.cost.box_format == "cxcywh":
        boxes, truths = relative(boxes), relative(truths)
    lead = (shape.layers, shape.images, shape.queries)
    logits = labels = padded_labels = None
    if shape.classes:
        logits = torch.randn(*lead, shape.classes, generator=generator, device=device) * 2
        logits.clamp_(-LARGEST_LOGIT, LARGEST_LOGIT)
        # The last class of a softmax is "no object".
        known = shape.classes - (shape.cost.class_mode == "softmax")
        labels = torch.randint(known, (total,), generator=generator, device=device)
        padded_labels = _padded(labels, counts, most)
    return Case(
        kind,
        shape,
        boxes.view(*lead, 4),
        logits,
        truths,
        labels,
        torch.tensor([0, *counts]).cumsum(0).to(device),
        counts,
        _padded(truths, counts, most),
        padded_labels,
    )


def box_counts(shape: Shape) -> tuple[int, ...]:
    """About 7 in an image, half of the images with 4 or fewer, a few with dozens: log-normal, and
    spread evenly, for a handful of images is no sample."""
    if shape.boxes is not None:
        return (shape.boxes,) * shape.images
    middles = (torch.arange(shape.images) + 0.5) / shape.images
    drawn = (torch.special.ndtri(middles) + 1.5).exp().round().long()
    counts = drawn.clamp(max=min(63, shape.queries // shape.groups))
    order = torch.randperm(shape.images, generator=torch.Generator().manual_seed(0))
    return tuple(counts[order].tolist())


def _padded(values: Tensor, counts: tuple[int, ...], most: int) -> Tensor:
    """Padding repeats a box that exists: no variant is slowed by NaN."""
    padded = values[:1].expand(len(counts) * most, *values.shape[1:]).clone()
    padded = padded.view(len(counts), most, *values.shape[1:])
    for row, each in zip(padded, values.split(counts), strict=True):
        row[: len(each)] = each
    return padded


# --- The cost in plain torch: in fp64 the truth, and compiled the best torch.compile is given ---


def padded_cost(
    pred: Tensor,
    logits: Tensor | None,
    target: Tensor,
    labels: Tensor | None,
    cost: Cost,
    fused: bool = False,
) -> Tensor:
    """(layers, images, queries, most), of predictions (layers, images, queries, 4) and ground-truth
    boxes (images, most, 4). A compiler that fuses needs no operator of many steps at once."""
    guesses, truths = pred[..., :, None, :], target[:, None]
    if cost.loss == "ciou":
        return ciou(guesses, truths, cost.eps)
    one, other = corners(pred)[..., :, None, :], corners(target)[:, None]
    iou = giou_of(one, other, *iou_and_union(one, other, cost.eps), cost.eps)
    if fused:
        distance = (guesses - truths).abs().sum(-1)
    else:
        distance = torch.cdist(pred, target.expand(len(pred), -1, -1, -1), p=1)
    total = cost.l1_weight * distance - cost.iou_weight * iou
    if logits is not None:
        assert labels is not None
        total = total + cost.class_weight * class_cost(logits, labels, cost.class_mode)
    largest = torch.finfo(total.dtype).max
    return torch.nan_to_num(total, nan=largest, posinf=largest, neginf=largest)


def class_cost(logits: Tensor, labels: Tensor, mode: str) -> Tensor:
    index = labels[:, None].expand(*logits.shape[:-1], -1)
    if mode == "softmax":
        return -(logits.gather(-1, index) - logits.logsumexp(-1, keepdim=True)).exp()
    if labels.shape[-1] < logits.shape[-1]:  # whichever is less to compute
        return focal(logits.gather(-1, index))
    return focal(logits).gather(-1, index)


def focal(logits: Tensor) -> Tensor:
    p = logits.sigmoid()
    positive = FOCAL_ALPHA * (1 - p).square() * (p + CLOSE_TO_ZERO).log()
    return (1 - FOCAL_ALPHA) * p.square() * (1 - p + CLOSE_TO_ZERO).log() - positive


def ciou(one: Tensor, other: Tensor, eps: float) -> Tensor:
    """Of corner boxes whose shapes broadcast."""
    iou, _ = iou_and_union(one, other, eps)
    outer = torch.maximum(one[..., 2:], other[..., 2:]) - torch.minimum(
        one[..., :2], other[..., :2]
    )
    # Twice the way from centre to centre.
    ways = (one[..., :2] + one[..., 2:]) - (other[..., :2] + other[..., 2:])
    away = ways.square().sum(-1) / 4 / (outer.square().sum(-1) + eps)
    v = 4 / math.pi**2 * (_angle(other) - _angle(one)).square()
    alpha = (v / ((1 - iou).clamp(min=0) + v + eps)).detach()
    return iou - away - alpha * v


def _angle(boxes: Tensor) -> Tensor:
    width, height = (boxes[..., 2:] - boxes[..., :2]).unbind(-1)
    return torch.atan(width / height)


# --- Variants: who computes the cost of all layers, on the device ---


def load_boxloss(case: Case) -> Call:
    cost = case.cost
    formats: dict[str, Any] = {
        "pred_format": cost.box_format,
        "target_format": cost.box_format,
        "eps": cost.eps,
    }
    boxes = case.pred, case.target, case.offsets
    if cost == OVERLAPS:
        return partial(pairwise_iou, *boxes, cost.loss, **formats)
    return partial(
        matching_cost,
        *boxes,
        logits=case.logits,
        labels=case.labels,
        loss=cost.loss,
        iou_weight=cost.iou_weight,
        l1_weight=cost.l1_weight,
        class_weight=cost.class_weight,
        class_mode=cost.class_mode,
        focal_alpha=FOCAL_ALPHA,
        nonfinite=torch.finfo(torch.float32).max,  # as transformers has it
        **formats,
    )


def load_padded(
    case: Case, fused: bool = False, function: Callable[..., Tensor] = padded_cost
) -> Call:
    values = case.pred, case.logits, case.padded_target, case.padded_labels
    return partial(function, *values, case.cost, fused)


def load_compiled(case: Case) -> Call:
    # A function of its own: what is compiled for one case is not looked through in another.
    compiled = torch.compile(lambda *values: padded_cost(*values), dynamic=False)
    call = load_padded(case, True, compiled)
    compile_now(call)
    return call


def block(case: Case, found: Any, image: int) -> Tensor:
    """Of an image, (layers, queries, its ground-truth boxes): of boxloss' cost, a padded one, or
    the original's of each layer."""
    if isinstance(found, list):
        shape = case.shape
        found = torch.stack(found).view(shape.layers, shape.images, shape.queries, -1)[:, image]
    if found.dim() == 4:
        return found[:, image, :, : case.counts[image]]
    return found[..., case.own(image)]


# --- transformers' own matchers, whose code runs as it is ---


class _CopyReachedError(Exception):
    """With the cost, which is about to be copied to the host."""


def original_layers(case: Case) -> list[Call]:
    matcher = load_matcher(case)
    groups = (case.shape.groups,) if case.shape.groups > 1 else ()
    split = zip(case.labels.split(case.counts), case.target.split(case.counts), strict=True)
    targets = [{"class_labels": labels, "boxes": boxes} for labels, boxes in split]
    return [
        partial(matcher, {"logits": logits, "pred_boxes": boxes}, targets, *groups)
        for logits, boxes in zip(case.logits, case.pred, strict=True)
    ]


def load_boxloss_matches(case: Case) -> Call:
    cost: Callable[[], Any] = load_boxloss(case)
    return lambda: hungarian_match(cost(), case.offsets, groups=case.shape.groups)


def load_original_matches(case: Case) -> Call:
    layers = original_layers(case)
    return lambda: [layer() for layer in layers]


def load_original_costs(case: Case) -> Call:
    """Of each layer, (images, queries, T) in any shape."""
    layers = original_layers(case)

    def costs() -> list[Tensor]:
        found = []
        with _stopped_at_copies():
            for layer in layers:
                try:
                    layer()
                except _CopyReachedError as reached:
                    found.append(reached.args[0])
        return found

    if len(costs()) != len(layers):
        raise UnavailableError("this transformers copies no cost to the host")
    return costs


def load_matcher(case: Case) -> Callable[..., Any]:
    weights = case.cost.class_weight, case.cost.l1_weight, case.cost.iou_weight
    if case.cost.class_mode == "softmax":
        module = transformers_loss("loss_for_object_detection")
        return module.HungarianMatcher(*weights)
    if case.shape.groups > 1:
        module = transformers_loss("loss_lw_detr")
        return module.LwDetrHungarianMatcher(*weights)
    names = ("matcher_class_cost", "matcher_bbox_cost", "matcher_giou_cost")
    config = dict(zip(names, weights, strict=True))
    module = transformers_loss("loss_rt_detr")
    return module.RTDetrHungarianMatcher(
        SimpleNamespace(**config, use_focal_loss=True, matcher_alpha=FOCAL_ALPHA, matcher_gamma=2.0)
    )


@contextmanager
def _stopped_at_copies() -> Iterator[None]:
    """unittest.mock would take a good part of what is timed."""

    def stop(cost: Tensor) -> Tensor:
        raise _CopyReachedError(cost)

    Tensor.cpu = stop
    try:
        yield
    finally:
        del Tensor.cpu  # which is inherited


# The first is what ratios are taken to.
VARIANTS: dict[str, Variant[Case, Call]] = {
    "boxloss": Variant(load_boxloss),
    "torch.compile": Variant(load_compiled, slow_to_start=True),
    "padded": Variant(load_padded),
}
OF_MATCHER = VARIANTS | {"original": Variant(load_original_costs)}


# --- Agreement: each entry beside the padded formula in fp64 ---

COST_SHARE = 1e-6  # of an entry and what is added up in it


def truth(case: Case, image: int) -> tuple[Tensor, Tensor]:
    """Of one image in all layers, (layers, queries, ground-truth boxes): the cost in fp64, and what
    a correct peer may be off."""
    own, cost = case.own(image), case.cost
    pred, target = case.pred[:, image, None].double(), case.target[None, own].double()
    logits = None if case.logits is None else case.logits[:, image, None].double()
    labels = None if case.labels is None else case.labels[None, own]
    exact = padded_cost(pred, logits, target, labels, cost)[:, 0]
    size = exact.abs() + cost.iou_weight + cost.class_weight
    if logits is not None and cost.class_mode == "focal":
        # The logarithm of 1 - p is as wrong as 1 - p: by p / (1 - p), and that is e to the logit.
        size += 4 * cost.class_weight * logits[:, 0, :, labels[0]].exp()
    return exact, COST_SHARE * size


def check(case: Case, costs: Calls) -> None:
    """DisagreementError, unless all entries are right."""
    expected = [truth(case, image) for image in range(case.shape.images)]
    for name, call in costs.items():
        found = call()
        for image, (right, allowed) in enumerate(expected):
            about = f"{case.kind}, image {image}"
            compare_entries(f"{name}: cost", block(case, found, image), right, allowed, about)


# --- Measuring ---


def measure(run: Run) -> None:
    for case in run.each(cases(run)):
        costs = load_right(run, case)
        run.time(case.columns | {"pass": "cost"}, costs, ("stream", "gpu"))
        if "original" in costs:  # which all waits for the device
            calls = {"boxloss": load_boxloss_matches(case), "original": load_original_matches(case)}
            run.time(case.columns | {"pass": "matching"}, calls, ("stream",))
    for case in run.each(cases(run) if run.on_gpu else {}):
        run.count(case.columns | {"pass": "cost"}, load_right(run, case))


def load_right(run: Run, case: Case) -> Calls:
    costs: Calls = {**run.load(VARIANTS if case.cost == OVERLAPS else OF_MATCHER, case)}
    check(case, costs)
    return costs


def cases(run: Run) -> dict[str, Callable[[], Case]]:
    shapes = QUICK_SHAPES if run.quick else SHAPES
    return {kind: partial(make_case, kind, shape, run.device) for kind, shape in shapes.items()}
