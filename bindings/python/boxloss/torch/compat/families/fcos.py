# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""torchvision's FCOS: the losses of its head.

The original gathers boxes by a mask, for which it waits for the device, and for their number once
more. Here each anchor has its row of the ground truth, or -1, and nobody waits.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torchvision.models.detection._utils import BoxLinearCoder
from torchvision.models.detection.fcos import FCOS, FCOSHead

from ...class_loss import class_loss
from ...losses import giou_loss
from ..family import Family, Swapped, swap
from ..parts import Parts, check_class
from ..targets import Targets, ground_truth_of
from ..torchvision_models import cases, losses_of

PARTS = Parts(
    {
        "torchvision.models.detection.fcos": (
            *("FCOSHead.compute_loss", "sigmoid_focal_loss", "generalized_box_iou_loss"),
        ),
        "torchvision.models.detection._utils": ("BoxLinearCoder",),
    }
)


class Model(FCOS):
    def compute_loss(
        self,
        targets: Targets,
        head_outputs: dict[str, Tensor],
        anchors: list[Tensor],
        num_anchors_per_level: list[int],
    ) -> dict[str, Tensor]:
        if not isinstance(self.head, Head):
            raise ValueError(
                "model.head has come since use_boxloss, and is without it: call restore() of what "
                "it returned, and use_boxloss again"
            )
        return super().compute_loss(targets, head_outputs, anchors, num_anchors_per_level)


class Head(FCOSHead):
    def compute_loss(
        self,
        targets: Targets,
        head_outputs: dict[str, Tensor],
        anchors: list[Tensor],
        matched_idxs: list[Tensor],
    ) -> dict[str, Tensor]:
        PARTS.check()
        check_class(self.box_coder, BoxLinearCoder)
        if not self.box_coder.normalize_by_size:
            raise ValueError("box_coder.normalize_by_size is False; boxloss decodes with True")
        classes = head_outputs["cls_logits"].shape[-1]
        truth = ground_truth_of(targets, "labels", classes, drops_labels=True)
        matched = torch.stack(matched_idxs)  # to each anchor's box in its image; < 0: none
        is_box = matched >= 0
        row = torch.where(is_box, matched + truth.offsets[:-1, None], -1)
        number = is_box.sum().clamp(min=truth.one)
        # As wide as the ground truth is: autocast would decode in halves.
        corners = torch.stack(anchors).to(truth.boxes)
        opposite = torch.cat(corners.split(2, -1)[::-1], -1)
        # For BoxLinearCoder: a corner is the center + distance * side, with the side's sign.
        center, side = torch.lerp(corners, opposite, 0.5), corners - opposite
        pred = torch.addcmul(center, head_outputs["bbox_regression"].to(truth.boxes), side)
        return {
            "classification": class_loss(
                head_outputs["cls_logits"], row, truth.labels, mode="focal", normalizer=number
            ),
            "bbox_regression": giou_loss(
                pred.flatten(0, 1), truth.boxes, target_index=row.flatten(), normalizer=number
            ),
            # The only class of anchors with a box; all others are left out.
            "bbox_ctrness": class_loss(
                head_outputs["bbox_ctrness"],
                torch.where(is_box, 0, -2),
                truth.offsets[:1],  # a 0
                mode="bce",
                query_quality=_centerness(truth.boxes, row, center, side),
                normalizer=number,
            ),
        }


def _centerness(boxes: Tensor, row: Tensor, center: Tensor, side: Tensor) -> Tensor:
    """Of an anchor without a box, any number."""
    if not len(boxes):
        return center.new_zeros(row.shape)
    left_top, right_bottom = ((boxes[row] - center) / side).split(2, -1)
    ratio = torch.minimum(left_top, right_bottom) / torch.maximum(left_top, right_bottom)
    return ratio.prod(-1).sqrt()


def replace(model: Any) -> Iterator[Swapped]:
    yield swap(model, Model)
    yield swap(model.head, Head)


FAMILY = Family(replace, cases, PARTS, losses_of)
