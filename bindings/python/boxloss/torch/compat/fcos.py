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

from ..collate import collate_ragged
from ..losses import giou_loss

Targets = list[dict[str, Tensor]]


class Head(FCOSHead):
    def compute_loss(
        self,
        targets: Targets,
        head_outputs: dict[str, Tensor],
        anchors: list[Tensor],
        matched_idxs: list[Tensor],
    ) -> dict[str, Tensor]:
        true_boxes, offsets = collate_ragged([each["boxes"] for each in targets])
        matched = torch.stack(matched_idxs)  # to each anchor's true box in its image; < 0: none
        row = torch.where(matched < 0, -1, matched + offsets[:-1, None])
        points = torch.stack(anchors)
        # As wide as true boxes are: autocast would decode in halves.
        distances = head_outputs["bbox_regression"].to(true_boxes)
        pred = self.box_coder.decode(distances, points)
        # Over the number of pairs, or 1: that is "mean".
        box = giou_loss(pred.flatten(0, 1), true_boxes, target_index=row.flatten())

        return {"bbox_regression": box} | self.other_losses(
            targets, head_outputs, points, true_boxes, row
        )

    def other_losses(
        self,
        targets: Targets,
        head_outputs: dict[str, Tensor],
        points: Tensor,
        true_boxes: Tensor,
        row: Tensor,
    ) -> dict[str, Tensor]:
        """Class and centerness in plain torch, with masks in the place of gathers."""
        foreground = row >= 0
        number = foreground.sum().clamp(min=1)
        # What -1 reads: one row more, behind the last.
        labels = functional.pad(torch.cat([each["labels"] for each in targets]), (0, 1))[row]
        boxes = functional.pad(true_boxes, (0, 0, 0, 1))[row]

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
        return {"classification": classes / number, "bbox_ctrness": centerness / number}
