# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""torchvision's RetinaNet: its matcher and its losses.

The original goes through the images one by one, and the matcher has a matrix of all IoUs of each.
Here all images are matched at once without one, all their pairs are one list (on a GPU all anchors,
since it would wait for the number of pairs), and an image's 1 / (number of its pairs) is their
weight.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torchvision.models.detection import RetinaNet
from torchvision.models.detection._utils import BoxCoder
from torchvision.models.detection.retinanet import (
    RetinaNetClassificationHead,
    RetinaNetRegressionHead,
)

from ...class_loss import class_loss
from ...losses import box_loss
from ..cache import cached
from ..family import Family, Swapped, swap
from ..parts import Parts, check_class
from ..targets import Targets, collate_boxes, ground_truth_of
from ..torchvision_models import MATCHERS, cases, losses_of, match_images

LOSSES = "giou", "diou", "ciou"  # not "smooth_l1", nor "l1" of deltas

PARTS = Parts(
    {
        "torchvision.models.detection.retinanet": (
            *("RetinaNet.compute_loss", "RetinaNetClassificationHead.compute_loss"),
            *("RetinaNetRegressionHead.compute_loss", "sigmoid_focal_loss", "_box_loss"),
        ),
        **MATCHERS,
    }
)


class Model(RetinaNet):
    def compute_loss(
        self, targets: Targets, head_outputs: dict[str, Tensor], anchors: list[Tensor]
    ) -> dict[str, Tensor]:
        PARTS.check()
        classes = head_outputs["cls_logits"].shape[-1]
        truth, targets, matched = match_images(self.proposal_matcher, anchors, targets, classes)
        losses = self.head.compute_loss(targets, head_outputs, anchors, matched)
        return {name: truth.checked(loss) for name, loss in losses.items()}


class ClassificationHead(RetinaNetClassificationHead):
    def compute_loss(
        self,
        targets: Targets,
        head_outputs: dict[str, Tensor],
        matched_idxs: list[Tensor],
    ) -> Tensor:
        truth = ground_truth_of(targets, "labels", None, drops_labels=True)
        matched = torch.stack(matched_idxs)  # -1: none; -2: left out
        row = torch.where(matched < 0, matched, matched + truth.offsets[:-1, None])
        # Each image by the number of its own anchors with a box: as a layer.
        logits = head_outputs["cls_logits"][:, None]
        return class_loss(logits, row[:, None], truth.labels, mode="focal").mean()


class RegressionHead(RetinaNetRegressionHead):
    """For LOSSES."""

    def compute_loss(
        self,
        targets: Targets,
        head_outputs: dict[str, Tensor],
        anchors: list[Tensor],
        matched_idxs: list[Tensor],
    ) -> Tensor:
        true_boxes, offsets = collate_boxes(targets)
        matched = torch.stack(matched_idxs)  # rows of its image's boxes; < 0: none
        is_pair = matched >= 0
        weight = 1 / len(targets) / is_pair.sum(1, keepdim=True, dtype=true_boxes.dtype)
        # One anchor in hundreds is in a pair. To decode only those is to wait for their number.
        chosen: Any = is_pair.nonzero(as_tuple=True) if is_pair.is_cpu else ...
        row = matched[chosen] + offsets[:-1, None].expand_as(matched)[chosen]
        row = torch.where(is_pair[chosen], row, -1)
        points = torch.stack(anchors)[chosen].to(true_boxes)
        deltas = head_outputs["bbox_regression"][chosen].to(points)  # autocast's are halves
        return box_loss(
            _decoded(self.box_coder, deltas.flatten(0, -2), points.flatten(0, -2)),
            true_boxes,
            self._loss_type,
            pred_format="cxcywh",
            target_index=row.flatten(),
            weight=weight.expand_as(matched)[chosen].flatten(),
            reduction="sum",
        )


def _decoded(coder: BoxCoder, deltas: Tensor, points: Tensor) -> Tensor:
    """In cxcywh what decode_single gives as corners, in a third of its launches."""
    check_class(coder, BoxCoder)
    if {*coder.weights} != {1}:
        key = "coder", *coder.weights, deltas.dtype
        deltas = deltas / cached(key, deltas, lambda: deltas.new_tensor(coder.weights))
    first, last = points.split(2, 1)
    side = last - first
    moves, growths = deltas.split(2, 1)
    center = torch.addcmul(torch.add(first, side, alpha=0.5), moves, side)
    return torch.cat((center, growths.clamp(max=coder.bbox_xform_clip).exp() * side), 1)


def replace(model: Any) -> Iterator[Swapped]:
    yield swap(model, Model)
    yield swap(model.head.classification_head, ClassificationHead)
    head = model.head.regression_head
    if head._loss_type in LOSSES:
        yield swap(head, RegressionHead)


FAMILY = Family(replace, cases, PARTS, losses_of)
