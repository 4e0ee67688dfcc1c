# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The matcher of torchvision's RetinaNet, and its losses.

The original goes through the images one by one, and the matcher has a matrix of all IoUs of each.
Here all images are matched at once without one, all their pairs are one list, and an image's
1 / (number of its pairs) is their weight.
"""

import torch
from torch import Tensor
from torchvision.models.detection import RetinaNet
from torchvision.models.detection.retinanet import (
    RetinaNetClassificationHead,
    RetinaNetRegressionHead,
)

from ..class_loss import class_loss
from ..losses import box_loss
from .targets import Targets, collate_boxes, collate_targets
from .torchvision_matcher import match

LOSSES = "giou", "diou", "ciou"  # not "smooth_l1", nor "l1" of deltas


class Model(RetinaNet):
    def compute_loss(
        self, targets: Targets, head_outputs: dict[str, Tensor], anchors: list[Tensor]
    ) -> dict[str, Tensor]:
        classes = head_outputs["cls_logits"].shape[-1]
        truth = collate_targets(targets, "labels", classes, drops_labels=True)
        row = match(self.proposal_matcher, torch.stack(anchors), truth.boxes, truth.offsets)
        in_image = torch.where(row < 0, row, row - truth.offsets[:-1, None])
        labels = truth.labels.split(truth.counts)
        targets = [{**each, "labels": own} for each, own in zip(targets, labels, strict=True)]
        losses = self.head.compute_loss(targets, head_outputs, anchors, list(in_image))
        return {name: truth.checked(loss) for name, loss in losses.items()}


class ClassificationHead(RetinaNetClassificationHead):
    def compute_loss(
        self,
        targets: Targets,
        head_outputs: dict[str, Tensor],
        matched_idxs: list[Tensor],
    ) -> Tensor:
        truth = collate_targets(targets, "labels", None, drops_labels=True)
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
        matched = torch.stack(matched_idxs)  # to each anchor's true box in its image; < 0: none
        image, anchor = (matched >= 0).nonzero(as_tuple=True)  # waits for their number
        # One anchor in hundreds has a true box: only those are decoded, as wide as true boxes are.
        deltas = head_outputs["bbox_regression"][image, anchor].to(true_boxes)
        pred = self.box_coder.decode_single(deltas, torch.stack(anchors)[image, anchor])
        row = offsets[image] + matched[image, anchor]
        weight = 1 / ((matched >= 0).sum(1) * len(targets)).to(pred.dtype)
        return box_loss(
            pred,
            true_boxes,
            self._loss_type,
            target_index=row,
            weight=weight[image],
            reduction="sum",
        )
