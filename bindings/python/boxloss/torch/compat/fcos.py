# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The losses of torchvision's FCOS.

The original gathers boxes by a mask, for which it waits for the device, and for their number once
more. Here each anchor has the row of its true box, or -1, and nobody waits.
"""

import torch
from torch import Tensor
from torch.nn import functional
from torchvision.models.detection.fcos import FCOSHead
from torchvision.ops import sigmoid_focal_loss

from ..losses import giou_loss
from .targets import GroundTruth, Targets, collate_targets


class Head(FCOSHead):
    def compute_loss(
        self,
        targets: Targets,
        head_outputs: dict[str, Tensor],
        anchors: list[Tensor],
        matched_idxs: list[Tensor],
    ) -> dict[str, Tensor]:
        classes = head_outputs["cls_logits"].shape[-1]
        truth = collate_targets(targets, "labels", classes, drops_labels=True)
        matched = torch.stack(matched_idxs)  # to each anchor's true box in its image; < 0: none
        row = torch.where(matched < 0, -1, matched + truth.offsets[:-1, None])
        points = torch.stack(anchors)
        # As wide as the ground truth is: autocast would decode in halves.
        distances = head_outputs["bbox_regression"].to(truth.boxes)
        pred = self.box_coder.decode(distances, points)
        number = truth.checked((row >= 0).sum().clamp(min=1))
        box = giou_loss(
            pred.flatten(0, 1), truth.boxes, target_index=row.flatten(), normalizer=number
        )
        of_classes, centerness = self.other_losses(truth, head_outputs, points, row, number)
        return {"classification": of_classes, "bbox_regression": box, "bbox_ctrness": centerness}

    def other_losses(
        self,
        truth: GroundTruth,
        head_outputs: dict[str, Tensor],
        points: Tensor,
        row: Tensor,
        number: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Class and centerness in plain torch, with masks in the place of gathers."""
        foreground = row >= 0
        # What -1 reads: one row more, behind the last.
        labels = functional.pad(truth.labels, (0, 1))[row]
        boxes = functional.pad(truth.boxes, (0, 0, 0, 1))[row]

        logits = head_outputs["cls_logits"]
        wanted = torch.zeros_like(logits)
        wanted.scatter_(2, labels[..., None], foreground[..., None].to(logits.dtype))
        classes = sigmoid_focal_loss(logits, wanted, reduction="sum")

        left, top, right, bottom = self.box_coder.encode(points, boxes).unbind(-1)
        narrow = torch.minimum(left, right) / torch.maximum(left, right)
        flat = torch.minimum(top, bottom) / torch.maximum(top, bottom)
        centred = torch.where(foreground, narrow * flat, 0).sqrt()
        centerness = functional.binary_cross_entropy_with_logits(
            head_outputs["bbox_ctrness"].squeeze(2), centred, foreground, reduction="sum"
        )
        return classes / number, centerness / number
