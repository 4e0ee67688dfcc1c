# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Functions that take the place of torchvision's."""

from torch import Tensor

from .losses import Reduction, giou_loss


def generalized_box_iou_loss(
    boxes1: Tensor, boxes2: Tensor, reduction: Reduction = "none", eps: float = 1e-7
) -> Tensor:
    """torchvision's ``generalized_box_iou_loss``: same arguments, same values, same error.

    Args:
        boxes1: predicted boxes (N, 4) or (4,), xyxy, floating.
        boxes2: true boxes of the same shape.
        reduction: "none", "mean" (0 for empty input) or "sum".
        eps: added to both denominators.

    Returns:
        The loss, float32, or float64 when either input is.

    Raises:
        ValueError: an unknown reduction, in torchvision's words.
    """
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(
            f"Invalid Value for arg 'reduction': '{reduction} \n"
            " Supported reduction modes: 'none', 'mean', 'sum'"
        )
    return giou_loss(boxes1, boxes2, reduction=reduction, eps=eps)
