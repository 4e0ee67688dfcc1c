# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""DETR and RT-DETR: the predictions of all layers. Without denoising."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import torch
from torch import Tensor

from ..matcher.cases import FOCAL, LARGEST_LOGIT, SOFTMAX, Cost, Shape, box_counts, relative
from ..matcher.formulas import FOCAL_ALPHA
from .cases import CRITERION, MATCHER_AND_BOXES, Case, drawn_boxes, predictions

# The last layer of rtdetr is the encoder.
SHAPES = {
    "detr": Shape(6, 8, 100, 91, SOFTMAX),
    "rtdetr": Shape(7, 16, 300, 80, FOCAL),
    "rtdetr-dense": Shape(7, 16, 300, 80, FOCAL, boxes=125),
}
QUICK_SHAPES = {
    "detr": Shape(3, 3, 20, 7, SOFTMAX),
    "rtdetr": Shape(3, 4, 30, 8, FOCAL),
    "rtdetr-dense": Shape(3, 3, 40, 8, FOCAL, boxes=25),
}
SPREAD = 0.2  # from 100 to 150, of 125
# What they weigh in the loss; in both models.
L1_WEIGHT, GIOU_WEIGHT = 5, 2
VFL_WEIGHT, EOS_COEFFICIENT = 1, 0.1


@dataclass(frozen=True)
class DetrCase(Case):
    cost: Cost  # the matcher's

    def scores(self, values: dict[str, Tensor]) -> Tensor:
        """Of all layers, (layers, images, queries, classes), from leaves or their gradients."""
        return self._stacked(*(values[name] for name in self.measured[CRITERION][:2]))

    def boxes(self, values: dict[str, Tensor]) -> Tensor:
        return self._stacked(*(values[name] for name in self.measured[MATCHER_AND_BOXES]))

    def layers(self) -> list[dict[str, Tensor]]:
        """As the originals take them: the decoder's last one behind all others."""
        scores, of_last, boxes, its = (self.leaves[name] for name in self.measured[CRITERION])
        pairs = [(of_last, its)]
        if self.kind == "detr":
            scores, boxes = scores[:-1], boxes[:-1]
        else:
            pairs.append((scores[:, -1], boxes[:, -1]))
            scores, boxes = scores[:, :-1].transpose(0, 1), boxes[:, :-1].transpose(0, 1)
        pairs = [*zip(scores, boxes, strict=True), *pairs]
        return [{"logits": logits, "pred_boxes": its} for logits, its in pairs]

    def _stacked(self, layers: Tensor, last: Tensor) -> Tensor:
        layers = layers[:-1] if self.kind == "detr" else layers.transpose(0, 1)
        return torch.cat([layers, last[None]])


def detr_case(kind: str, shape: Shape, seed: int = 0) -> DetrCase:
    """In each layer every true box has a query that is near it and knows its class, as when a
    detector has learned something: no two ways to match are nearly as good. All other queries are
    near some box of their image."""
    generator = torch.Generator().manual_seed(seed)
    counts = box_counts_of(shape, generator)
    truths = [drawn_boxes(count, generator) for count in counts]
    labels = [torch.randint(shape.classes, (count,), generator=generator) for count in counts]
    lead = (shape.layers, shape.images, shape.queries)
    # DETR has "no object" as one class more.
    classes = shape.classes + (kind == "detr")
    scores = 2 * torch.randn(*lead, classes, generator=generator) - 2
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
    return DetrCase(
        kind,
        f"{shape.layers} layers x {shape.images} images x {shape.queries} queries",
        counts,
        shape.layers * sum(counts),
        {"labels": targets, "config": _config(shape)},
        leaves,
        {MATCHER_AND_BOXES: of_boxes, CRITERION: of_scores + of_boxes},
        shape.cost,
    )


def box_counts_of(shape: Shape, generator: torch.Generator) -> tuple[int, ...]:
    if shape.boxes is None:
        return box_counts(shape, seed=0)
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
