# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What a detector hands to its criterion in one training step.

Corners are exact in float32, also those that a head decodes, and a predicted corner never meets a
true one, as in the other studies. All is drawn on the host: the same numbers on every device.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from ...runner.run import Row
from .. import assigners
from ..assigners import STRIDES
from ..matched_pairs import STEP, drawn_boxes, predictions, relative
from ..matcher import FOCAL, FOCAL_ALPHA, LARGEST_LOGIT, SOFTMAX, Shape, box_counts

PARTS = {"retinanet": "box loss"}  # the others': the whole criterion


@dataclass(frozen=True)
class Anchors:
    images: int
    anchors: int
    foreground: float  # of the anchors
    classes: int = 0


@dataclass(frozen=True)
class Grids:
    """Of strides 8, 16 and 32."""

    images: int
    side: int  # of images, in pixels
    boxes: int  # of each image
    classes: int


# The last layer of rtdetr is the encoder.
SHAPES = {
    "detr": Shape(6, 8, 100, 91, SOFTMAX),
    "rtdetr": Shape(7, 16, 300, 80, FOCAL),
    "rtdetr-dense": Shape(7, 16, 300, 80, FOCAL, boxes=125),
    "fcos": Anchors(2, 17_829, 0.03, 91),
    "retinanet": Anchors(2, 159_882, 0.002),
    "yolo": Grids(16, 640, 8, 80),
    "yolo-dense": Grids(16, 640, 100, 80),
}
QUICK_SHAPES = {
    "detr": Shape(3, 3, 40, 8, SOFTMAX),
    "rtdetr": Shape(3, 3, 40, 8, FOCAL),
    "rtdetr-dense": Shape(3, 3, 40, 8, FOCAL, boxes=25),
    "fcos": Anchors(2, 2000, 0.03, 7),
    "retinanet": Anchors(2, 2000, 0.002),
    "yolo": Grids(3, 128, 2, 7),
    "yolo-dense": Grids(3, 128, 25, 7),
}
SPREAD = 0.2  # from 100 to 150 boxes, of 125
# What they weigh in the loss; in both models.
L1_WEIGHT, GIOU_WEIGHT = 5, 2
VFL_WEIGHT, EOS_COEFFICIENT = 1, 0.1
BOXES = 8  # in each image with anchors
BINS = 16  # in which YOLO predicts a side

Self = TypeVar("Self", bound="Case")


@dataclass(frozen=True)
class Case:
    kind: str
    shape: str  # for people
    counts: tuple[int, ...]  # ground-truth boxes of each image
    pairs: int  # 0: its assigner finds them
    inputs: dict[str, Any]  # of the criterion, by its own names
    leaves: dict[str, Tensor]  # its predictions, likewise; all require their gradients

    @property
    def columns(self) -> Row:
        about: Row = {"case": self.kind, "shape": self.shape, "boxes": sum(self.counts)}
        about |= {"pairs": self.pairs} if self.pairs else {}
        return about | {"part": PARTS.get(self.kind, "criterion")}

    @property
    def device(self) -> torch.device:
        return next(iter(self.leaves.values())).device

    def gradients(self, loss: Tensor) -> tuple[Tensor, ...]:
        return torch.autograd.grad(loss, list(self.leaves.values()))

    def mapped(self: Self, change: Callable[[Tensor], Tensor]) -> Self:
        def changed(value: Any) -> Any:
            return change(value) if isinstance(value, Tensor) else value

        inputs = tree_map(changed, self.inputs)
        leaves = {n: change(each.detach()).requires_grad_() for n, each in self.leaves.items()}
        return replace(self, inputs=inputs, leaves=leaves)

    def in_double(self: Self) -> Self:
        return self.mapped(lambda each: each.double() if each.is_floating_point() else each)


def make_case(kind: str, shape: Shape | Anchors | Grids, seed: int = 0) -> Case:
    generator = torch.Generator().manual_seed(seed)
    if isinstance(shape, Shape):
        return _detr_case(kind, shape, generator)
    if isinstance(shape, Grids):
        return _yolo(kind, shape, generator)
    return _dense_case(kind, shape, generator)


# --- DETR and RT-DETR: the predictions of all layers, without denoising ---


def _detr_case(kind: str, shape: Shape, generator: torch.Generator) -> Case:
    """In each layer every ground-truth box has a query that is near it and knows its class, as when
    a detector has learned something: no two ways to match are nearly as good. All other queries are
    near some box of their image."""
    counts = counts_of(shape, generator)
    truths = [drawn_boxes(count, generator) for count in counts]
    labels = [torch.randint(shape.classes, (count,), generator=generator) for count in counts]
    lead = (shape.layers, shape.images, shape.queries)
    # DETR has "no object" as one class more.
    scores = 2 * torch.randn(*lead, shape.classes + (kind == "detr"), generator=generator) - 2
    boxes = torch.empty(*lead, 4)
    for layer in range(shape.layers):
        for image, (own, wanted) in enumerate(zip(truths, labels, strict=True)):
            near_to = torch.randint(len(own), (shape.queries,), generator=generator)
            knowing = torch.randperm(shape.queries, generator=generator)[: len(own)]
            near_to[knowing] = torch.arange(len(own))
            boxes[layer, image] = predictions(own[near_to], generator)
            scores[layer, image, knowing, wanted] += 4
    scores.clamp_(-LARGEST_LOGIT, LARGEST_LOGIT)
    targets = [
        {"boxes": relative(own), "class_labels": wanted}
        for own, wanted in zip(truths, labels, strict=True)
    ]
    # As the models have them: DETR's last layer stands twice, and RT-DETR's encoder apart.
    if kind == "detr":
        of_scores, of_boxes = ("outputs_class", "logits"), ("outputs_coord", "pred_boxes")
    else:
        of_scores = ("outputs_class", "enc_topk_logits")
        of_boxes = ("outputs_coord", "enc_topk_bboxes")
    leaves = {}
    for names, values in ((of_scores, scores), (of_boxes, relative(boxes))):
        layers = values if kind == "detr" else values[:-1].transpose(0, 1).contiguous()
        for name, leaf in zip(names, (layers, values[-1].clone()), strict=True):
            leaves[name] = leaf.requires_grad_()
    return Case(
        kind,
        f"{shape.layers} layers x {shape.images} images x {shape.queries} queries",
        counts,
        shape.layers * sum(counts),
        {"labels": targets, "config": _config(shape)},
        leaves,
    )


def counts_of(shape: Shape, generator: torch.Generator) -> tuple[int, ...]:
    if shape.boxes is None:
        return box_counts(shape)
    least, most = (round(shape.boxes * (1 + sign * SPREAD)) for sign in (-1, 1))
    return tuple(torch.randint(least, most + 1, (shape.images,), generator=generator).tolist())


def _config(shape: Shape) -> SimpleNamespace:
    """What either criterion reads of a model's."""
    cost = shape.cost
    return SimpleNamespace(
        num_labels=shape.classes,
        auxiliary_loss=True,
        # DETR
        decoder_layers=shape.layers,
        class_cost=cost.class_weight,
        bbox_cost=cost.l1_weight,
        giou_cost=cost.iou_weight,
        bbox_loss_coefficient=L1_WEIGHT,
        giou_loss_coefficient=GIOU_WEIGHT,
        eos_coefficient=EOS_COEFFICIENT,
        # RT-DETR
        matcher_class_cost=cost.class_weight,
        matcher_bbox_cost=cost.l1_weight,
        matcher_giou_cost=cost.iou_weight,
        matcher_alpha=FOCAL_ALPHA,
        matcher_gamma=2.0,
        use_focal_loss=True,
        weight_loss_vfl=VFL_WEIGHT,
        weight_loss_bbox=L1_WEIGHT,
        weight_loss_giou=GIOU_WEIGHT,
        focal_loss_alpha=0.75,
        focal_loss_gamma=2.0,
    )


# --- FCOS and RetinaNet: predictions of all anchors, of which few have a ground-truth box ---


def _dense_case(kind: str, shape: Anchors, generator: torch.Generator) -> Case:
    """A background anchor is near some box too."""
    size = (shape.images, shape.anchors)
    truths = drawn_boxes(shape.images * BOXES, generator)
    box = torch.randint(BOXES, size, generator=generator)
    target = truths[box + BOXES * torch.arange(shape.images)[:, None]]
    pred = predictions(target.flatten(0, 1), generator).view_as(target)
    matched = torch.full(size, -1)  # the box in its image
    for image in range(shape.images):
        count = round(shape.anchors * shape.foreground) + image  # no two images have as many
        chosen = torch.randperm(shape.anchors, generator=generator)[:count]
        matched[image, chosen] = box[image, chosen]
    head = _fcos_head if kind == "fcos" else _retinanet_head
    middles, sides, leaves = head(shape, target, pred, generator)
    boxes = truths.view(shape.images, BOXES, 4)
    labels = torch.randint(max(shape.classes, 1), (shape.images, BOXES), generator=generator)
    inputs = {
        "targets": [{"boxes": a, "labels": b} for a, b in zip(boxes, labels, strict=True)],
        "anchors": list(torch.cat([middles - sides / 2, middles + sides / 2], -1)),
        "matched_idxs": list(matched),
    }
    return Case(
        kind,
        f"{shape.images} images x {shape.anchors:,} anchors",
        (BOXES,) * shape.images,
        int((matched >= 0).sum()),
        inputs,
        {name: each.clone().requires_grad_() for name, each in leaves.items()},
    )


Head = tuple[Tensor, Tensor, dict[str, Tensor]]  # anchors' middles and sides, and what it gives


def _fcos_head(shape: Anchors, target: Tensor, pred: Tensor, generator: torch.Generator) -> Head:
    # A point lies in its ground-truth box, or else it had no centerness. It is of integers, and an
    # anchor's side is a power of two: decoding is exact.
    first, last = target.floor().long().chunk(2, -1)
    steps = torch.randint(2**20, first.shape, generator=generator)
    points = (first + 1 + steps % (last - first)).float()
    sides = 2.0 ** torch.randint(3, 8, (*target.shape[:2], 1), generator=generator)
    to_corners = torch.cat([points - pred[..., :2], pred[..., 2:] - points], -1)

    def logits(count: int) -> Tensor:
        drawn = 2 * torch.randn(*target.shape[:2], count, generator=generator)
        return drawn.clamp_(-LARGEST_LOGIT, LARGEST_LOGIT)

    leaves = {"cls_logits": logits(shape.classes), "bbox_regression": to_corners / sides}
    return points, sides, leaves | {"bbox_ctrness": logits(1)}


def _retinanet_head(_: Anchors, target: Tensor, pred: Tensor, generator: torch.Generator) -> Head:
    # Predictions have their anchors' sides, which are powers of two: decoding is exact.
    shape = (*target.shape[:2], 2)
    sides = 2.0 ** torch.randint(2, 7, shape, generator=generator)
    centres = ((pred[..., :2] + pred[..., 2:]) / 2 / STEP).floor() * STEP
    moves = torch.randint(-8, 9, shape, generator=generator) / 16
    leaves = {"bbox_regression": torch.cat([moves, torch.zeros_like(moves)], -1)}
    return centres - moves * sides, sides, leaves


# --- YOLO: predictions of all cells; which have a ground-truth box, its assigner finds ---

NEVER = -25.0  # a logit beside 0: its probability is lost in the roundings of the others


def _yolo(kind: str, shape: Grids, generator: torch.Generator) -> Case:
    """Half-trained, as in the study of assigners, but that sides are half cells, each of two
    equally likely bins: decoding is exact."""
    size = assigners.Size(shape.images, shape.side, shape.side, shape.boxes)
    cells = size.cells()
    target = assigners.true_boxes(size, generator)
    middles = assigners.points(cells)
    drawn = assigners.predictions(middles, target, generator, shape.classes)
    strides = torch.tensor(STRIDES).repeat_interleave(torch.tensor([h * w for h, w in cells]))
    first, last = assigners.corners(drawn["pred"]).chunk(2, -1)
    sides = torch.cat((middles - first, last - middles), -1) / strides[:, None]
    lower = sides.floor().clamp(0, BINS - 2).long()[..., None]
    bins = torch.full((*sides.shape, BINS), NEVER).scatter_(-1, lower, 0.0)
    bins.scatter_(-1, lower + 1, 0.0)
    inputs = {
        "cells": cells,
        "batch": {
            "batch_idx": torch.arange(shape.images).repeat_interleave(shape.boxes),
            "cls": drawn["labels"],
            "bboxes": target[..., :4].flatten(0, 1) / shape.side,
        },
    }
    logits = drawn["scores"].logit().clamp_(-LARGEST_LOGIT, LARGEST_LOGIT)
    leaves = {"boxes": bins.flatten(2), "scores": logits}
    return Case(
        kind,
        f"{shape.images} images x {len(middles):,} anchors",
        (shape.boxes,) * shape.images,
        0,
        inputs,
        {name: each.mT.contiguous().requires_grad_() for name, each in leaves.items()},
    )
