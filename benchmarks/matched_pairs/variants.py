# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Who computes the loss of matched pairs.

Every index lies on the device beforehand. A loss takes the predictions and returns the weighted sum
and, where it is wanted, the IoU of each pair, which gets no gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from boxloss.torch import box_loss, box_losses
from torch import Tensor
from torch.nn import functional

from ..common.losses import UnavailableError, torchvision_giou
from ..common.timing import Call
from .cases import Case


class Result(NamedTuple):
    total: Tensor
    iou: Tensor | None  # shaped as the indices


PairLoss = Callable[[Tensor], Result]


@dataclass(frozen=True)
class Variant:
    load: Callable[[Case], PairLoss]  # raises UnavailableError
    slow_to_start: bool = False  # left out by --quick
    is_graph: bool = False  # which no other CUDA graph can hold


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


def aligned_loss(pred: Tensor, case: Case) -> Result:
    """All layers at once, each pair with itself: the best that is found in plain torch."""
    shape = (*case.pred_index.shape, 4)
    guesses = pred.flatten(0, -2).index_select(0, case.pred_index.flatten()).float().view(shape)
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


def load_aligned(case: Case) -> PairLoss:
    return partial(aligned_loss, case=case)


def load_compiled(case: Case, mode: str | None = None) -> PairLoss:
    if mode and case.pred.device.type != "cuda":
        raise UnavailableError("its CUDA graphs need a GPU")
    # A function of its own: what is compiled for one case is not looked through in another.
    compiled = torch.compile(lambda pred: aligned_loss(pred, case), dynamic=False, mode=mode)

    def step(pred: Tensor) -> Result:
        torch.compiler.cudagraph_mark_step_begin()
        return compiled(pred)

    loss: PairLoss = step if mode else compiled
    try:
        torch.autograd.grad(loss(case.pred).total, case.pred)
    except RuntimeError as error:
        raise UnavailableError(f"cannot be compiled: {str(error).splitlines()[0]}") from error
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


def load_original(case: Case) -> PairLoss:
    return partial(original_loss, case=case)


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


def variants(kind: str) -> dict[str, Variant]:
    """Those of a kind of case; the first is what ratios are taken to."""
    either = {
        "boxloss": Variant(load_boxloss),
        "torch.compile": Variant(load_compiled, slow_to_start=True),
        "aligned": Variant(load_aligned),
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
        "original": Variant(load_original),
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

    return {GATHER: gather if measured == "forward" else gather_and_add}
