# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Replacements for torchvision's functions: same arguments, same values, same error.

boxes1 are predicted boxes (N, 4) or (4,), xyxy, floating; boxes2 are ground-truth boxes, likewise.
reduction is "none", "mean" (0 for empty input) or "sum". The loss is float32, or float64 when
either input is. An unknown reduction is a ValueError with torchvision's message. They can be
scripted.
"""

import torch
from torch import Tensor

from .losses import box_loss


def _loss(boxes1: Tensor, boxes2: Tensor, loss: str, reduction: str, eps: float) -> Tensor:
    if reduction not in ["none", "mean", "sum"]:
        raise ValueError(
            f"Invalid Value for arg 'reduction': '{reduction} \n"
            " Supported reduction modes: 'none', 'mean', 'sum'"
        )
    if not torch.jit.is_scripting():  # type: ignore[attr-defined]
        return box_loss(boxes1, boxes2, loss, reduction=reduction, eps=eps)  # type: ignore[arg-type]
    return torch.ops.boxloss.box_loss(  # type: ignore[no-any-return]
        boxes1, boxes2, loss, reduction=reduction, eps=eps
    )


def generalized_box_iou_loss(
    boxes1: Tensor, boxes2: Tensor, reduction: str = "none", eps: float = 1e-7
) -> Tensor:
    """torchvision's ``generalized_box_iou_loss``: of (N, 4) boxes (N), with "mean" and "sum" ().

    eps is added to both denominators. Raises ValueError: an unknown reduction, or shapes that
    differ; TypeError: a dtype that is not allowed.
    """
    return _loss(boxes1, boxes2, "giou", reduction, eps)


def distance_box_iou_loss(
    boxes1: Tensor, boxes2: Tensor, reduction: str = "none", eps: float = 1e-7
) -> Tensor:
    """torchvision's ``distance_box_iou_loss``, as `generalized_box_iou_loss`."""
    return _loss(boxes1, boxes2, "diou", reduction, eps)


def complete_box_iou_loss(
    boxes1: Tensor, boxes2: Tensor, reduction: str = "none", eps: float = 1e-7
) -> Tensor:
    """torchvision's ``complete_box_iou_loss``, as `generalized_box_iou_loss`.

    eps is added to all denominators. torchvision always uses 1e-7 in the distance's: the values
    are torchvision's at the default eps.
    """
    return _loss(boxes1, boxes2, "ciou", reduction, eps)
