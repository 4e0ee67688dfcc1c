# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What do the losses of matched pairs cost, by index and as they are usually written?

detr and detr-dense are the GIoU, L1 and IoU of all decoder layers' matches, with the indices on the
device beforehand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import torch
from boxloss.torch import box_losses, collate_matches
from torch import Tensor
from torch.nn import functional

from ..common.cases import near, true_boxes
from ..runner.agreement import GIOU_ERROR, Truth, compare, compare_entries, near_truth
from ..runner.run import Row, Run, Variant, compile_now

# --- Cases: the pairs that a matcher leaves behind ---

# Corners are exact in float32 in either format. Those of a prediction lie on this grid, those of a
# ground-truth box half a step off: nothing ties, where formulations may differ in the gradient.
STEP = 2**-10
SHORTEST_PREDICTION = 1
SPAN = 256  # DETR's boxes are relative to the image

# Layers, images, queries, ground-truth boxes in each image.
SHAPES = {"detr": (6, 8, 100, 20), "detr-dense": (7, 16, 300, 150)}
QUICK_SHAPES = {"detr": (2, 3, 20, 5), "detr-dense": (3, 4, 50, 25)}
CASES = tuple(SHAPES)
GIOU_WEIGHT, L1_WEIGHT = 2, 5

Matches = list[list[tuple[Tensor, Tensor]]]  # [layer][image] of (src, tgt)


@dataclass(frozen=True)
class Case:
    """Predictions of which few are matched, all boxes cxcywh."""

    kind: str
    shape: str  # for people
    pred: Tensor  # (layers, images, queries, 4); a leaf that requires its gradient
    target: Tensor  # (T, 4)
    pred_index: Tensor  # (layers, P)
    target_index: Tensor
    normalizer: Tensor  # on the device, as after an all-reduce
    collate: Callable[[], object]

    @property
    def columns(self) -> Row:
        pairs = self.pred_index.numel()
        return {"case": self.kind, "shape": self.shape, "pairs": pairs, "dtypes": "f32/f32"}


def detr_case(
    kind: str, layers: int, images: int, queries: int, boxes: int, device: torch.device
) -> Case:
    """Each of an image's ground-truth boxes meets one of its queries, another in each layer."""
    generator = torch.Generator().manual_seed(0)

    def match() -> tuple[Tensor, Tensor]:
        """As a Hungarian matcher returns it: queries in order."""
        src = torch.randperm(queries, generator=generator)[:boxes].sort().values
        return src, torch.randperm(boxes, generator=generator)

    matches = [[match() for _ in range(images)] for _ in range(layers)]
    collate = partial(collate_matches, matches, (boxes,) * images, queries, device=device)
    index, target_index = (each.cpu() for each in collate())
    truths = drawn_boxes(images * boxes, generator)
    # What leaks out of a query without a match is found out by the agreement check.
    pred = torch.full((layers, images, queries, 4), torch.nan)
    guesses = relative(predictions(truths[target_index.flatten()], generator))
    pred.view(-1, 4)[index.flatten()] = guesses
    return Case(
        kind,
        f"{layers} layers x {images} images x {queries} queries",
        pred.to(device).requires_grad_(),
        relative(truths).to(device),
        index.to(device),
        target_index.to(device),
        torch.tensor(float(images * boxes), device=device),
        collate,
    )


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


# --- Variants: each takes the predictions; every index lies on the device beforehand ---


class Result(NamedTuple):
    total: Tensor
    iou: Tensor  # shaped as the indices


PairLoss = Callable[[Tensor], Result]


def load_boxloss(case: Case) -> PairLoss:
    options: dict[str, Any] = {
        "eps": 0,
        "pred_index": case.pred_index,
        "target_index": case.target_index,
        "pred_format": "cxcywh",
        "target_format": "cxcywh",
        "normalizer": case.normalizer,
    }

    def loss(pred: Tensor) -> Result:
        found = box_losses(pred, case.target, **options)
        return Result((GIOU_WEIGHT * found.loss + L1_WEIGHT * found.l1).sum(), found.iou)

    return loss


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


def pair_losses(
    pred: Tensor, target: Tensor, pred_index: Tensor, target_index: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """GIoU's losses and L1 of each layer, and the IoU of each pair, of cxcywh boxes."""
    shape = (*pred_index.shape, 4)
    guesses = pred.flatten(0, -2).index_select(0, pred_index.flatten()).view(shape)
    truths = target.index_select(0, target_index.flatten()).view(shape)
    one, other = corners(guesses), corners(truths)
    iou, union = iou_and_union(one, other, 0)
    losses = 1 - giou_of(one, other, iou, union, 0)
    return losses.sum(-1), (guesses - truths).abs().sum((-1, -2)), iou.detach()


def vectorized_loss(pred: Tensor, case: Case) -> Result:
    """All layers at once, each pair with itself: the best that is found in plain torch."""
    giou, l1, iou = pair_losses(pred, case.target, case.pred_index, case.target_index)
    return Result(((GIOU_WEIGHT * giou + L1_WEIGHT * l1) / case.normalizer).sum(), iou)


def load_compiled(case: Case) -> PairLoss:
    # A function of its own: what is compiled for one case is not looked through in another.
    compiled: PairLoss = torch.compile(lambda pred: vectorized_loss(pred, case), dynamic=False)
    compile_now(lambda: torch.autograd.grad(compiled(case.pred).total, case.pred))
    return compiled


def load_original(case: Case) -> PairLoss:
    """DETR's way: for each layer the diagonals of all boxes' GIoU, and IoU, with all others'.

    It is spared the collation of its ground-truth boxes, image by image.
    """
    _, images, queries, _ = case.pred.shape
    places = case.pred_index % (images * queries)
    loops = [*zip(places // queries, places % queries, case.target_index, strict=True)]

    def original(pred: Tensor) -> Result:
        total = pred.new_zeros(())
        ious = []
        for boxes, (image, query, rows) in zip(pred.unbind(), loops, strict=True):
            guesses, truths = boxes[image, query], case.target[rows]
            distance = functional.l1_loss(guesses, truths, reduction="none").sum()
            one, other = corners(guesses)[:, None], corners(truths)
            giou = giou_of(one, other, *iou_and_union(one, other, 0), 0)
            loss = (1 - torch.diag(giou)).sum() / case.normalizer
            with torch.no_grad():
                ious.append(torch.diag(iou_and_union(one, other, 0)[0]))
            total = total + GIOU_WEIGHT * loss + L1_WEIGHT * distance / case.normalizer
        return Result(total, torch.stack(ious))

    return original


# The first is what ratios are taken to.
VARIANTS: dict[str, Variant[Case, PairLoss]] = {
    "boxloss": Variant(load_boxloss),
    "torch.compile": Variant(load_compiled, slow_to_start=True),
    "vectorized": Variant(lambda case: partial(vectorized_loss, case=case)),
    "original": Variant(load_original),
}


# --- Agreement: total, gradient and IoU, beside the vectorized formula in fp64 ---


def truth(case: Case) -> tuple[Truth, Tensor]:
    """And the IoUs."""
    pred = case.pred.detach().double().requires_grad_()
    total, iou = vectorized_loss(pred, replace(case, target=case.target.double()))
    (gradient,) = torch.autograd.grad(total, pred)
    return near_truth(total, gradient, case.pred.dtype), iou


def check(name: str, loss: PairLoss, case: Case, expected: tuple[Truth, Tensor]) -> None:
    """DisagreementError, unless total, gradient and IoUs are right on this case."""
    result, (sums, right) = loss(case.pred), expected
    (gradient,) = torch.autograd.grad(result.total, case.pred)
    compare(name, result.total, gradient, sums, case.kind)
    allowed = GIOU_ERROR / 2  # an IoU is at most 1
    compare_entries(f"{name}: IoU", result.iou, right, allowed, case.kind)


# --- Measuring ---


def measure(run: Run) -> None:
    shapes = QUICK_SHAPES if run.quick else SHAPES
    cases = {kind: partial(detr_case, kind, *each, run.device) for kind, each in shapes.items()}
    for case in run.each(cases):
        losses = run.load(VARIANTS, case)
        expected = truth(case)
        for name, loss in losses.items():
            check(name, loss, case, expected)
        totals = {name: partial(total_of, loss, case.pred) for name, loss in losses.items()}
        run.time_passes(case.columns, totals, case.pred, ("stream", "gpu"))
        calls = {"collate_matches": case.collate}
        run.time(case.columns | {"pass": "collation"}, calls, ("host",))


def total_of(loss: PairLoss, pred: Tensor) -> Tensor:
    return loss(pred).total
