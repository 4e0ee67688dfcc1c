# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""FCOS, RetinaNet and YOLO: predictions of all anchors, of which few have a true box."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from ..matcher.cases import LARGEST_LOGIT, STEP
from .cases import BOX_LOSS, CRITERION, Case, drawn_boxes, predictions


@dataclass(frozen=True)
class Shape:
    images: int
    anchors: int
    foreground: float  # of the anchors
    classes: int = 0


SHAPES = {
    "fcos": Shape(2, 17_829, 0.03, 91),
    "retinanet": Shape(2, 159_882, 0.002),
    "yolo": Shape(16, 8400, 0.01, 80),
}
QUICK_SHAPES = {
    "fcos": Shape(2, 500, 0.03, 7),
    "retinanet": Shape(2, 2000, 0.01),
    "yolo": Shape(3, 400, 0.05, 7),
}
BOX_LEAVES = {
    "fcos": "bbox_regression",
    "retinanet": "bbox_regression",
    "yolo": "pred_bboxes",
}
BOXES = 8  # in each image
BINS = 16  # in which YOLO predicts a side


class Pairs(NamedTuple):
    """Foreground anchors of all images, for the agreement check."""

    where: tuple[Tensor, ...]  # image and anchor
    pred: Tensor  # (P, 4), as the head decodes it
    target: Tensor  # (P, 4)
    weight: Tensor  # (P): what the sum of losses is made with
    # (P, 4): by how much a corner moves with a prediction's numbers; where two do, twice.
    leverage: Tensor


@dataclass(frozen=True)
class DenseCase(Case):
    found: Pairs

    def mapped(self, change: Callable[[Tensor], Tensor]) -> DenseCase:
        return replace(super().mapped(change), found=tree_map(change, self.found))


@dataclass(frozen=True)
class _Drawn:
    """Of each anchor; a background one is near some box too."""

    truths: Tensor  # (images, BOXES, 4)
    matched: Tensor  # (images, anchors): the box in its image, or -1
    target: Tensor  # (images, anchors, 4)
    pred: Tensor  # (images, anchors, 4)


def dense_case(kind: str, shape: Shape, seed: int = 0) -> DenseCase:
    generator = torch.Generator().manual_seed(seed)
    make = {"fcos": _fcos, "retinanet": _retinanet, "yolo": _yolo}[kind]
    return make(shape, _drawn(shape, generator), generator)


def _drawn(shape: Shape, generator: torch.Generator) -> _Drawn:
    size = (shape.images, shape.anchors)
    truths = drawn_boxes(shape.images * BOXES, generator)
    box = torch.randint(BOXES, size, generator=generator)
    target = truths[box + BOXES * torch.arange(shape.images)[:, None]]
    pred = predictions(target.flatten(0, 1), generator).view_as(target)
    matched = torch.full(size, -1)
    for image in range(shape.images):
        count = round(shape.anchors * shape.foreground) + image  # no two images have as many
        chosen = torch.randperm(shape.anchors, generator=generator)[:count]
        matched[image, chosen] = box[image, chosen]
    return _Drawn(truths.view(shape.images, BOXES, 4), matched, target, pred)


def _case(
    kind: str,
    measured: str,
    shape: Shape,
    drawn: _Drawn,
    inputs: dict[str, Any],
    leaves: dict[str, Tensor],
    weight: Tensor,
    leverage: Tensor,
) -> DenseCase:
    where = (drawn.matched >= 0).nonzero(as_tuple=True)
    parts = (drawn.pred, drawn.target, weight, leverage.expand_as(drawn.pred))
    return DenseCase(
        kind,
        f"{shape.images} images x {shape.anchors:,} anchors",
        (BOXES,) * shape.images,
        len(where[0]),
        inputs,
        {name: each.clone().requires_grad_() for name, each in leaves.items()},
        {measured: tuple(leaves)},
        Pairs(where, *(each[where] for each in parts)),
    )


def _fcos(shape: Shape, drawn: _Drawn, generator: torch.Generator) -> DenseCase:
    size = drawn.matched.shape
    # A point lies in its true box, or else it had no centerness. It is of integers, and an anchor's
    # side a power of two: decoding is exact.
    first, last = drawn.target.floor().long().chunk(2, -1)
    steps = torch.randint(2**20, first.shape, generator=generator)
    points = (first + 1 + steps % (last - first)).float()
    sides = 2.0 ** torch.randint(3, 8, (*size, 1), generator=generator)
    to_corners = torch.cat([points - drawn.pred[..., :2], drawn.pred[..., 2:] - points], -1)
    labels = torch.randint(shape.classes, (shape.images, BOXES), generator=generator)
    inputs = {
        "targets": [
            {"boxes": boxes, "labels": each}
            for boxes, each in zip(drawn.truths, labels, strict=True)
        ],
        "anchors": list(torch.cat([points - sides / 2, points + sides / 2], -1)),
        "matched_idxs": list(drawn.matched),
    }
    leaves = {
        "cls_logits": _logits((*size, shape.classes), generator),
        "bbox_regression": to_corners / sides,
        "bbox_ctrness": _logits((*size, 1), generator),
    }
    weight = torch.full(size, 1 / (drawn.matched >= 0).sum().item())
    return _case("fcos", CRITERION, shape, drawn, inputs, leaves, weight, sides)


def _retinanet(shape: Shape, drawn: _Drawn, generator: torch.Generator) -> DenseCase:
    size = drawn.matched.shape
    # Predictions have their anchors' sides, which are powers of two: decoding is exact.
    sides = 2.0 ** torch.randint(2, 7, (*size, 2), generator=generator)
    centres = ((drawn.pred[..., :2] + drawn.pred[..., 2:]) / 2 / STEP).floor() * STEP
    moves = torch.randint(-8, 9, (*size, 2), generator=generator) / 16
    points = centres - moves * sides
    inputs = {
        "targets": [{"boxes": boxes} for boxes in drawn.truths],
        "anchors": list(torch.cat([points - sides / 2, points + sides / 2], -1)),
        "matched_idxs": list(drawn.matched),
    }
    leaves = {"bbox_regression": torch.cat([moves, torch.zeros_like(moves)], -1)}
    drawn = replace(drawn, pred=torch.cat([centres - sides / 2, centres + sides / 2], -1))
    numbers = (drawn.matched >= 0).sum(1, keepdim=True)
    weight = (1 / (numbers * shape.images)).expand(size)
    leverage = 2 * sides.repeat(1, 1, 2)
    return _case("retinanet", BOX_LOSS, shape, drawn, inputs, leaves, weight, leverage)


def _yolo(shape: Shape, drawn: _Drawn, generator: torch.Generator) -> DenseCase:
    """Boxes are in cells. One class of a foreground anchor has a score."""
    size = drawn.matched.shape
    foreground = drawn.matched >= 0
    label = torch.randint(shape.classes, (*size, 1), generator=generator)
    score = torch.where(foreground, 0.1 + 0.9 * torch.rand(size, generator=generator), 0)
    scores = torch.zeros(*size, shape.classes).scatter_(2, label, score[..., None])
    total = score.sum().clamp(min=1)
    points = torch.randint(256, (shape.anchors, 2), generator=generator) + 0.5
    inputs = {
        "anchor_points": points,
        "target_bboxes": drawn.target,
        "target_scores": scores,
        "target_scores_sum": total,
        "fg_mask": foreground,
        "imgsz": torch.tensor([640.0, 640.0]),
        "stride": torch.full((shape.anchors, 1), 8.0),
    }
    leaves = {
        "pred_dist": _logits((*size, 4 * BINS), generator),
        "pred_bboxes": drawn.pred,
    }
    leverage = torch.ones(())
    return _case("yolo", BOX_LOSS, shape, drawn, inputs, leaves, score / total, leverage)


def _logits(size: tuple[int, ...], generator: torch.Generator) -> Tensor:
    drawn = 2 * torch.randn(*size, generator=generator)
    return drawn.clamp(-LARGEST_LOGIT, LARGEST_LOGIT)
