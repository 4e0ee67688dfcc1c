# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What do the losses of matched pairs cost, by index and as they are usually written?

detr and detr-dense are the GIoU, L1 and IoU of all decoder layers' matches, with the indices on the
device beforehand; gather is random rows beside a gather of the same; retinanet is torchvision's
"giou" on decoded boxes of all anchors. On a GPU a second pass counts what a call asks of it. Needs
torchvision for its own loss.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import torch
from boxloss.torch import box_loss, box_losses, collate_matches
from torch import Tensor
from torch.nn import functional

from ..common.cases import DTYPES, near, true_boxes
from ..common.losses import torchvision_giou
from ..runner.agreement import (
    LOSS_ROUNDINGS,
    UNIT,
    DisagreementError,
    Truth,
    compare,
    near_truth,
)
from ..runner.clocks import Call
from ..runner.counts import counts
from ..runner.run import BOTH, FORWARD, Row, Run, UnavailableError, Variant, compile_now

# --- Cases: the pairs that a matcher leaves behind ---

# Corners are exact in float32 in either format, and those of a prediction lie on this grid, of a
# true box half a step beside it: nothing ties, where formulations may differ in the gradient.
STEP = 2**-10
SHORTEST_PREDICTION = 1
SPAN = 256  # DETR's boxes are relative to the image

Matches = list[list[tuple[Tensor, Tensor]]]  # [layer][image] of (src, tgt)


@dataclass(frozen=True)
class Case:
    """Predictions of which few are matched, and the sum of losses that is wanted of those."""

    kind: str
    pair: str  # dtypes, "pred/target"
    shape: str  # for people
    pred: Tensor  # (..., 4); a leaf that requires its gradient
    target: Tensor  # (T, 4)
    pred_index: Tensor  # (S, P) or (P)
    target_index: Tensor
    box_format: str
    eps: float  # added
    giou_weight: float = 1
    l1_weight: float = 0  # with 0 neither L1 nor IoU is wanted
    weight: Tensor | None = None  # of each pair
    normalizer: Tensor | None = None  # on the device, as after an all-reduce
    # What loops over layers or images take: indices of pred's dimensions, and rows of target.
    loops: tuple[tuple[Tensor, ...], ...] = ()
    matches: Matches | None = None
    counts: tuple[int, ...] = ()  # true boxes of each image
    moved: dict[str, int] | None = None  # the least bytes of each pass

    @property
    def pairs(self) -> int:
        return self.pred_index.numel()

    @property
    def columns(self) -> Row:
        return {"case": self.kind, "shape": self.shape, "pairs": self.pairs, "dtypes": self.pair}

    @property
    def name(self) -> str:
        return ", ".join(map(str, self.columns.values()))


def detr_case(
    kind: str,
    layers: int,
    images: int,
    queries: int,
    boxes: int,
    pair: str,
    device: torch.device,
    seed: int = 0,
) -> Case:
    """Each image's `boxes` true boxes each meet one of its queries, another in each layer."""
    generator = torch.Generator().manual_seed(seed)
    pred_dtype, target_dtype = (DTYPES[name] for name in pair.split("/"))
    matches = [[_match(queries, boxes, generator) for _ in range(images)] for _ in range(layers)]
    counts = (boxes,) * images
    index, target_index = collate_matches(matches, counts, queries)
    truths = drawn_boxes(images * boxes, generator)
    # What leaks out of a query without a match is found out by the agreement check.
    pred = torch.full((layers, images, queries, 4), torch.nan)
    pred.view(-1, 4)[index] = relative(predictions(truths[target_index.flatten()], generator)).view(
        *index.shape, 4
    )
    loops = [
        (
            torch.cat([torch.full_like(src, image) for image, (src, _) in enumerate(layer)]),
            torch.cat([src for src, _ in layer]),
            rows,
        )
        for layer, rows in zip(matches, target_index, strict=True)
    ]
    return Case(
        kind,
        pair,
        f"{layers} layers x {images} images x {queries} queries",
        pred.to(device, pred_dtype).requires_grad_(),
        relative(truths).to(device, target_dtype),
        index.to(device),
        target_index.to(device),
        "cxcywh",
        eps=0,
        giou_weight=2,
        l1_weight=5,
        normalizer=torch.tensor(float(images * boxes), device=device),
        loops=_to(device, loops),
        matches=matches,
        counts=counts,
    )


def gather_case(rows: int, pairs: int, device: torch.device, seed: int = 0) -> Case:
    """Random rows of long lists: of each, 16 of the 32 bytes that memory gives are wanted."""
    generator = torch.Generator(device).manual_seed(seed)
    truths = drawn_boxes(rows, generator)
    place = torch.randperm(rows, generator=generator, device=device)
    pred = torch.empty_like(truths)
    pred[place] = predictions(truths, generator)
    target_index = torch.randint(rows, (pairs,), generator=generator, device=device)
    index = place[target_index]
    read = 2 * pairs * (32 + index.element_size())
    return Case(
        "gather",
        "f32/f32",
        f"{rows:,} rows",
        pred.requires_grad_(),
        truths,
        index,
        target_index,
        "xyxy",
        eps=0,
        moved={FORWARD: read, BOTH: 2 * read + pred.nbytes},
    )


def retinanet_case(
    anchors: int, foreground: tuple[int, ...], device: torch.device, seed: int = 0
) -> Case:
    """Decoded boxes of all anchors, of which `foreground` in each image have a true box."""
    generator = torch.Generator().manual_seed(seed)
    images, boxes = len(foreground), 20
    truths = drawn_boxes(images * boxes, generator)
    pred = torch.full((images, anchors, 4), torch.nan)
    loops = []
    for image, count in enumerate(foreground):
        rows = torch.randperm(anchors, generator=generator)[:count].sort().values
        truth = torch.randint(boxes, (count,), generator=generator)
        pred[image, rows] = predictions(truths[image * boxes + truth], generator)
        loops.append((rows, truth + image * boxes))
    index, target_index = (
        torch.cat([step * image + each[i] for image, each in enumerate(loops)])
        for i, step in enumerate((anchors, 0))
    )
    weight = torch.cat([torch.full((n,), 1 / (n * images)) for n in foreground])
    return Case(
        "retinanet",
        "f32/f32",
        f"{images} images x {anchors:,} anchors",
        pred.to(device).requires_grad_(),
        truths.to(device),
        index.to(device),
        target_index.to(device),
        "xyxy",
        eps=1e-7,  # torchvision's
        weight=weight.to(device),
        loops=_to(device, loops),
    )


def _match(queries: int, boxes: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """As a Hungarian matcher returns it: queries in order."""
    src = torch.randperm(queries, generator=generator)[:boxes].sort().values
    return src, torch.randperm(boxes, generator=generator)


def drawn_boxes(count: int, generator: torch.Generator) -> Tensor:
    return true_boxes(count, generator) + STEP / 2


def predictions(truths: Tensor, generator: torch.Generator) -> Tensor:
    boxes = (near(truths, generator) / STEP).round() * STEP
    # An empty box touches whatever it lies in, which is a tie too.
    boxes[:, 2:] = torch.maximum(boxes[:, 2:], boxes[:, :2] + SHORTEST_PREDICTION)
    return boxes


def relative(boxes: Tensor) -> Tensor:
    one, other = (boxes / SPAN).chunk(2, dim=-1)
    return torch.cat([(one + other) / 2, other - one], dim=-1)


def _to(
    device: torch.device, loops: Iterable[tuple[Tensor, ...]]
) -> tuple[tuple[Tensor, ...], ...]:
    return tuple(tuple(each.to(device) for each in loop) for loop in loops)


# --- Variants: each takes the predictions; every index lies on the device beforehand ---


class Result(NamedTuple):
    total: Tensor
    iou: Tensor | None  # shaped as the indices


PairLoss = Callable[[Tensor], Result]


# boxloss


def load_boxloss(case: Case) -> PairLoss:
    options: dict[str, Any] = {
        "weight": case.weight,
        "normalizer": case.normalizer,
        "pred_format": case.box_format,
        "target_format": case.box_format,
        "reduction": "sum" if case.normalizer is None else "mean",
        "eps": case.eps,
        "pred_index": case.pred_index,
        "target_index": case.target_index,
    }

    def with_l1(pred: Tensor) -> Result:
        found = box_losses(pred, case.target, **options)
        total = (case.giou_weight * found.loss + case.l1_weight * found.l1).sum()
        return Result(total, found.iou)

    def alone(pred: Tensor) -> Result:
        return Result(box_loss(pred, case.target, **options), None)

    return with_l1 if case.l1_weight else alone


# Plain torch


def corners(boxes: Tensor) -> Tensor:
    centre, size = boxes.chunk(2, dim=-1)
    return torch.cat([centre - size / 2, centre + size / 2], dim=-1)


def iou_and_union(one: Tensor, other: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Of corner boxes whose shapes broadcast."""
    sides = torch.minimum(one[..., 2:], other[..., 2:]) - torch.maximum(
        one[..., :2], other[..., :2]
    )
    overlap = _area(sides.clamp(min=0))
    areas = (_area(boxes[..., 2:] - boxes[..., :2]) for boxes in (one, other))
    union = sum(areas) - overlap
    return overlap / (union + eps), union


def giou_of(one: Tensor, other: Tensor, iou: Tensor, union: Tensor, eps: float) -> Tensor:
    outer = torch.maximum(one[..., 2:], other[..., 2:]) - torch.minimum(
        one[..., :2], other[..., :2]
    )
    enclosing = _area(outer)
    return iou - (enclosing - union) / (enclosing + eps)


def _area(sides: Tensor) -> Tensor:
    return sides[..., 0] * sides[..., 1]


def vectorized_loss(pred: Tensor, case: Case) -> Result:
    """All layers at once, each pair with itself: the best that is found in plain torch."""
    shape = (*case.pred_index.shape, 4)
    guesses = pred.flatten(0, -2).index_select(0, case.pred_index.flatten()).view(shape)
    guesses = guesses.to(torch.promote_types(pred.dtype, torch.float32))
    truths = case.target.index_select(0, case.target_index.flatten()).view(shape)
    one, other = guesses, truths
    if case.box_format == "cxcywh":
        one, other = corners(guesses), corners(truths)
    iou, union = iou_and_union(one, other, case.eps)
    losses = 1 - giou_of(one, other, iou, union, case.eps)
    if case.weight is not None:
        losses = losses * case.weight
    total = losses.sum(-1)
    if case.l1_weight:
        distance = (guesses - truths).abs().sum((-1, -2))
        total = case.giou_weight * total + case.l1_weight * distance
    if case.normalizer is not None:
        total = total / case.normalizer
    return Result(total.sum(), iou.detach() if case.l1_weight else None)


def load_compiled(case: Case, mode: str | None = None) -> PairLoss:
    if mode and case.pred.device.type != "cuda":
        raise UnavailableError("its CUDA graphs need a GPU")
    # A function of its own: what is compiled for one case is not looked through in another.
    compiled = torch.compile(lambda pred: vectorized_loss(pred, case), dynamic=False, mode=mode)

    def step(pred: Tensor) -> Result:
        torch.compiler.cudagraph_mark_step_begin()
        return compiled(pred)

    loss: PairLoss = step if mode else compiled
    compile_now(lambda: torch.autograd.grad(loss(case.pred).total, case.pred))
    return loss


# The original formulations


def original_loss(pred: Tensor, case: Case) -> Result:
    """DETR's way: for each layer the diagonals of all boxes' GIoU, and IoU, with all others'.

    It is spared the collation of its true boxes, image by image.
    """
    assert case.normalizer is not None
    total = pred.new_zeros((), dtype=torch.float32)
    ious = []
    for boxes, (images, queries, rows) in zip(pred.unbind(), case.loops, strict=True):
        guesses, truths = boxes[images, queries].float(), case.target[rows]
        distance = functional.l1_loss(guesses, truths, reduction="none").sum() / case.normalizer
        one, other = corners(guesses)[:, None], corners(truths)
        giou = giou_of(one, other, *iou_and_union(one, other, case.eps), case.eps)
        loss = (1 - torch.diag(giou)).sum() / case.normalizer
        with torch.no_grad():
            ious.append(torch.diag(iou_and_union(one, other, case.eps)[0]))
        total = total + case.giou_weight * loss + case.l1_weight * distance
    return Result(total, torch.stack(ious))


def _summed_giou_loss(pred: Tensor, target: Tensor, reduction: str, eps: float) -> Tensor:
    assert reduction == "sum"
    return (1 - giou_of(pred, target, *iou_and_union(pred, target, eps), eps)).sum()


def load_loop(case: Case, load_loss: Callable[[], Callable[..., Tensor]]) -> PairLoss:
    """torchvision's RetinaNet: image by image, each divided by its number of pairs."""
    summed = load_loss()

    def loop(pred: Tensor) -> Result:
        losses = [
            summed(boxes[rows], case.target[truths], reduction="sum", eps=case.eps)
            / max(1, len(rows))
            for boxes, (rows, truths) in zip(pred, case.loops, strict=True)
        ]
        return Result(sum(losses, start=pred.new_zeros(())) / max(1, len(losses)), None)

    return loop


def variants(kind: str) -> dict[str, Variant[Case, PairLoss]]:
    """Those of a kind of case; the first is what ratios are taken to."""
    either: dict[str, Variant[Case, PairLoss]] = {
        "boxloss": Variant(load_boxloss),
        "torch.compile": Variant(load_compiled, slow_to_start=True),
        "vectorized": Variant(lambda case: partial(vectorized_loss, case=case)),
    }
    if kind == "gather":
        return either
    if kind == "retinanet":
        return {
            **either,
            "loop": Variant(partial(load_loop, load_loss=lambda: _summed_giou_loss)),
            "torchvision": Variant(partial(load_loop, load_loss=torchvision_giou)),
        }
    # Its graph copies the predictions first, which makes no sense where they are many.
    graphs = partial(load_compiled, mode="reduce-overhead")
    return {
        **either,
        "reduce-overhead": Variant(graphs, slow_to_start=True, is_graph=True),
        "original": Variant(lambda case: partial(original_loss, case=case)),
    }


# What the hardware allows

GATHER = "gather"


def limits(case: Case, measured: str) -> dict[str, Call]:
    """Reading the same rows and no more; and its own backward, with the rows as the gradient."""
    if case.kind != "gather":
        return {}
    pred, index = case.pred.detach(), case.pred_index
    guesses, truths = torch.empty((2, len(index), 4), dtype=pred.dtype, device=pred.device)

    def gather() -> None:
        torch.index_select(pred, 0, index, out=guesses)
        torch.index_select(case.target, 0, case.target_index, out=truths)

    def gather_and_add() -> Tensor:
        gather()
        return torch.zeros_like(pred).index_add_(0, index, guesses)

    return {GATHER: gather if measured == FORWARD else gather_and_add}


# --- Agreement: total, gradient and IoU, beside the vectorized formula in fp64 ---


@dataclass(frozen=True)
class PairTruth:
    sums: Truth
    iou: Tensor | None


def truth(case: Case) -> PairTruth:
    def in_double(values: Tensor | None) -> Tensor | None:
        return None if values is None else values.detach().double()

    pred = case.pred.detach().double().requires_grad_()
    parts = {name: in_double(getattr(case, name)) for name in ("target", "weight", "normalizer")}
    total, iou = vectorized_loss(pred, replace(case, **parts))
    (gradient,) = torch.autograd.grad(total, pred)
    return PairTruth(near_truth(total, gradient, case.pred.dtype), iou)


def check(name: str, loss: PairLoss, case: Case, expected: PairTruth) -> None:
    """DisagreementError, unless total, gradient and IoUs are right on this case."""
    result = loss(case.pred)
    # A copy: a CUDA graph's results do not outlast its next replay.
    iou = None if result.iou is None else result.iou.detach().clone()
    (gradient,) = torch.autograd.grad(result.total, case.pred)
    compare(name, result.total, gradient, expected.sums, case.name)
    if expected.iou is None:
        return
    if iou is None or iou.shape != expected.iou.shape:
        raise DisagreementError(f"{name}: IoU is missing or of another shape; {case.name}")
    allowed = LOSS_ROUNDINGS * UNIT
    excess = (iou.double() - expected.iou).abs().max().item()
    if not excess <= allowed:
        raise DisagreementError(
            f"{name}: IoU is off by {excess:.2g}; allowed difference {allowed:.2g}; {case.name}"
        )


# --- Measuring ---

# Layers, images, queries, true boxes in each image.
DETR_SHAPES = {"detr": (6, 8, 100, 20), "detr-dense": (7, 16, 300, 150)}
QUICK_DETR_SHAPES = {"detr": (2, 3, 20, 5), "detr-dense": (3, 4, 50, 25)}
KINDS = (*DETR_SHAPES, "gather", "retinanet")
ROWS, PAIRS = 8_000_000, 1_000_000
ANCHORS, FOREGROUND = 159_882, (400, 240)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cases", nargs="+", choices=KINDS, default=KINDS, help="default: all")


def measure(run: Run) -> None:
    chosen = cases(run)
    for case in run.each(chosen):
        losses = run.load(variants(case.kind), case)
        expected = truth(case)
        for name, loss in losses.items():
            check(name, loss, case, expected)
        del expected  # large
        run.time_passes(
            case.columns,
            totals(case, losses),
            case.pred,
            ("stream", "host", "gpu"),
            partial(limits, case),
            case.moved,
            variants(case.kind),
        )
        if case.matches is not None:
            queries = case.pred.shape[-2]
            call = partial(collate_matches, case.matches, case.counts, queries, device=run.device)
            run.time(case.columns | {"pass": "collation"}, {"collate_matches": call}, ("host",))
    if run.device.type == "cuda":
        for case in run.each(chosen):
            losses = totals(case, run.load(variants(case.kind), case))
            beside = partial(limits, case)
            run.count_passes(case.columns, losses, case.pred, lambda _, call: counts(call), beside)


def totals(case: Case, losses: dict[str, PairLoss]) -> dict[str, Callable[[], Tensor]]:
    return {name: lambda loss=loss: loss(case.pred).total for name, loss in losses.items()}


def cases(run: Run) -> dict[str, Callable[[], Case]]:
    found: dict[str, Callable[[], Case]] = {}
    for kind, shape in (QUICK_DETR_SHAPES if run.quick else DETR_SHAPES).items():
        for pair in ("f32/f32", "bf16/f32"):
            found[f"{kind}, {pair}"] = partial(detr_case, kind, *shape, pair, run.device)
    sizes = (10_000, 2000) if run.quick else (ROWS, PAIRS)
    found["gather"] = partial(gather_case, *sizes, run.device)
    images = (2000, (40, 24)) if run.quick else (ANCHORS, FOREGROUND)
    found["retinanet"] = partial(retinanet_case, *images, run.device)
    return {n: make for n, make in found.items() if n.partition(",")[0] in run.options.cases}
