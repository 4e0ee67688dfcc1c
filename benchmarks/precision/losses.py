# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Losses of pairs as detectors call them on boxes that come out of a half-precision head."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from boxloss.torch import ciou_loss, giou_loss
from torch import Tensor

from ..common.losses import (
    UnavailableError,
    isolate_ultralytics,
    torchvision_file,
    torchvision_giou,
    transformers_loss,
)
from ..common.mmdet import mmdet_losses

PairLoss = Callable[[Tensor, Tensor], Tensor]  # (n, 4) predictions and true boxes -> (n) losses

STRIDE = 8  # pixels in a cell, Ultralytics' unit, on its finest grid
CHUNK = 128  # of pairs, of which transformers' N x N stays small


@dataclass(frozen=True)
class Variant:
    format: str  # "cxcywh", divided by the picture's size, or "xyxy" in pixels
    load: Callable[[], PairLoss]  # raises UnavailableError


def _boxloss(loss: Callable[..., Tensor], **options: str | float) -> PairLoss:
    return partial(loss, reduction="none", **options)


def _load_transformers() -> PairLoss:
    module = transformers_loss("loss_for_object_detection")

    def loss(pred: Tensor, target: Tensor) -> Tensor:
        corners = (module.center_to_corners_format(each) for each in (pred, target))
        chunks = zip(*(each.split(CHUNK) for each in corners), strict=True)
        return torch.cat([1 - torch.diag(module.generalized_box_iou(*chunk)) for chunk in chunks])

    return loss


def _load_torchvision_ciou() -> PairLoss:
    return torchvision_file("ciou_loss").complete_box_iou_loss  # type: ignore[no-any-return]


def _load_ultralytics(pixels: int) -> PairLoss:
    """`pixels` in the unit that boxes have."""
    isolate_ultralytics()
    try:
        from ultralytics.utils.metrics import bbox_iou
    except ImportError as error:
        raise UnavailableError(f"Ultralytics is not installed ({error})") from error

    def loss(pred: Tensor, target: Tensor) -> Tensor:
        # By a power of two: exact in any of the dtypes.
        iou = bbox_iou(pred / pixels, target / pixels, xywh=False, CIoU=True)
        return 1 - iou.squeeze(-1)

    return loss


def _load_mmdet(name: str) -> PairLoss:
    return mmdet_losses().__dict__[name](reduction="none")  # type: ignore[no-any-return]


ROUNDED = "boxloss GIoU, cxcywh"  # its exact gradient, rounded, has the least error possible
BOXLOSS = {
    # With DETR's eps.
    ROUNDED: Variant(
        "cxcywh",
        lambda: _boxloss(giou_loss, eps=0.0, pred_format="cxcywh", target_format="cxcywh"),
    ),
    "boxloss GIoU": Variant("xyxy", lambda: _boxloss(giou_loss)),
    "boxloss CIoU": Variant("xyxy", lambda: _boxloss(ciou_loss)),
}
ORIGINALS = {
    "transformers GIoU, cxcywh": Variant("cxcywh", _load_transformers),
    "torchvision GIoU": Variant("xyxy", torchvision_giou),
    "torchvision CIoU": Variant("xyxy", _load_torchvision_ciou),
    "Ultralytics CIoU": Variant("xyxy", partial(_load_ultralytics, STRIDE)),
    "mmdetection GIoU": Variant("xyxy", partial(_load_mmdet, "GIoULoss")),
    "mmdetection CIoU": Variant("xyxy", partial(_load_mmdet, "CIoULoss")),
}
VARIANTS = {**BOXLOSS, **ORIGINALS}
# Tried on large boxes only: on small ones its errors are the same as in cells.
IN_PIXELS = {"Ultralytics CIoU, in pixels": Variant("xyxy", partial(_load_ultralytics, 1))}
