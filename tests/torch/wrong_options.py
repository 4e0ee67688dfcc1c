# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Calls that type checkers refuse: `make lint` fails where mypy no longer finds the error."""

from boxloss import box_loss  # type: ignore[attr-defined]
from boxloss.torch import (
    BoxLoss,
    GIoULoss,
    RotatedBoxLoss,
    box_losses,
    class_loss,
    distribution_loss,
    giou_loss,
    rotated_box_loss,
)
from torch import Tensor


def calls(boxes: Tensor) -> None:
    box_losses(boxes, boxes, "giou", boxes)  # type: ignore[call-arg]
    box_losses(boxes, boxes, wieght=boxes)  # type: ignore[call-arg]
    box_losses(boxes, boxes, eps="0")  # type: ignore[arg-type]
    giou_loss(boxes, boxes, boxes)  # type: ignore[call-arg]
    giou_loss(boxes, boxes, wieght=boxes)  # type: ignore[call-arg]
    giou_loss(pred=boxes, target=boxes, reduction="typo")  # type: ignore[arg-type]
    BoxLoss("typo")  # type: ignore[arg-type]
    BoxLoss(wieght=boxes)  # type: ignore[call-arg]
    GIoULoss(reduction="typo")  # type: ignore[arg-type]
    GIoULoss(loss="ciou")  # type: ignore[call-arg]
    GIoULoss()(boxes)  # type: ignore[call-arg]
    GIoULoss()(boxes, boxes, wieght=boxes)  # type: ignore[call-arg]
    GIoULoss()(boxes, boxes, reduction="typo")  # type: ignore[arg-type]
    giou_loss(boxes, boxes, eps=GIoULoss()(boxes, boxes))  # type: ignore[arg-type]
    giou_loss(boxes, boxes, eps=box_losses(boxes, boxes).loss)  # type: ignore[arg-type]
    class_loss(boxes, boxes, boxes, mode="typo")  # type: ignore[arg-type]
    class_loss(boxes, boxes, boxes)  # type: ignore[call-arg]
    distribution_loss(boxes, boxes, mode="typo")  # type: ignore[arg-type]
    distribution_loss(boxes, boxes)  # type: ignore[call-arg]
    rotated_box_loss(boxes, boxes)  # type: ignore[call-arg]
    rotated_box_loss(boxes, boxes, "ciou")  # type: ignore[arg-type]
    rotated_box_loss(boxes, boxes, "kld", alpha=2.0)  # type: ignore[call-arg]
    RotatedBoxLoss("kld", tau="1")  # type: ignore[arg-type]
    RotatedBoxLoss("kld")(boxes, boxes, angle_unit="grad")  # type: ignore[arg-type]
    box_loss()
