# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The generalized IoU loss (Rezatofighi et al., CVPR 2019)."""

from typing import Literal

import torch
from torch import Tensor

BoxFormat = Literal["xyxy", "xywh", "cxcywh"]
Reduction = Literal["none", "sum", "mean"]
EpsMode = Literal["add", "clamp"]


def giou_loss(
    pred: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    normalizer: Tensor | None = None,
    lengths: Tensor | None = None,
    mask: Tensor | None = None,
    offsets: Tensor | None = None,
    zero_padded: bool = False,
    pred_format: BoxFormat = "xyxy",
    target_format: BoxFormat = "xyxy",
    reduction: Reduction = "mean",
    eps: float = 1e-7,
    eps_mode: EpsMode = "add",
) -> Tensor:
    """1 - GIoU of paired boxes, in one fused kernel, forward and backward.

    For a pair with areas A_p and A_t, intersection I, union U = A_p + A_t - I and enclosing box C::

        loss = 1 - (I / (U + eps) - (C - U) / (C + eps))          eps_mode="add", torchvision's
        loss = 1 - (I / U' - (C' - U') / C')                      eps_mode="clamp", mmdetection's
               with U' = max(U, eps), C' = max(C, eps)

    Which pairs count is told by at most one of ``zero_padded``, ``lengths``, ``mask`` and
    ``offsets``; by none of them, all do. An excluded pair has loss and gradients of exactly 0,
    whatever its boxes hold, NaN included. Boxes are neither reordered nor clamped; NaN in a pair
    that counts makes its loss and gradients NaN.

    Args:
        pred: predicted boxes of shape (..., 4), float64, float32, float16 or bfloat16. The last
            dimension must be contiguous; the others may have any strides.
        target: true boxes, shaped as pred; with offsets (T, 4). Any floating dtype, uint8, int16,
            int32 or int64. Nothing is cast beforehand: values are converted in registers.
        weight: factors of shape (...), any floating dtype; with offsets (T).
        normalizer: what reduction "mean" divides the sum by instead of the number of counted pairs:
            a tensor without dimensions, float64, float32, int64 or int32, read on the device and
            used as it is. It gets no gradient.
        lengths: (images), int32 or int64: of image b's slots the first lengths[b] count, clamped to
            [0, slots]. pred and target have shape (images, slots, 4).
        mask: bool of shape (...): the pairs where it is true count.
        offsets: (images + 1), int32 or int64: target rows offsets[b] to offsets[b + 1] belong to
            image b and meet its first predictions; pred has shape (images, slots, 4). Rows beyond
            slots have no prediction and do not count. See check_indices.
        zero_padded: pairs whose target is four zeros do not count; shapes as with lengths.
        pred_format: "xyxy" (two corners), "xywh" (corner and size) or "cxcywh" (centre and size).
        target_format: the same for target.
        reduction: "mean" (sum / max(number of counted pairs, 1)), "sum", or "none": one loss for
            each slot, with offsets for each target row, 0 where nothing counts.
        eps: finite, >= 0.
        eps_mode: "add" or "clamp", see above.

    Returns:
        The loss, float64 when either box tensor is, else float32. Differentiable, twice too, with
        respect to pred, weight and a floating target; gradients have their input's dtype. At ties
        of min and max a gradient is split half and half; an intersection that is empty or only
        touches has none.

    Raises:
        ValueError: a bad value or shape. TypeError: a bad dtype. RuntimeError: tensors on several
            devices, or no implementation for their device in this build.
    """
    return torch.ops.boxloss.giou_loss.default(  # type: ignore[no-any-return]
        pred,
        target,
        weight,
        normalizer,
        lengths,
        mask,
        offsets,
        zero_padded,
        pred_format,
        target_format,
        reduction,
        eps,
        eps_mode,
    )


class GIoULoss(torch.nn.Module):
    """`giou_loss` as a module: its options are fixed here, tensors are given to each call."""

    def __init__(
        self,
        pred_format: BoxFormat = "xyxy",
        target_format: BoxFormat = "xyxy",
        reduction: Reduction = "mean",
        eps: float = 1e-7,
        eps_mode: EpsMode = "add",
    ) -> None:
        super().__init__()
        self.pred_format = pred_format
        self.target_format = target_format
        self.reduction = reduction
        self.eps = eps
        self.eps_mode = eps_mode

    def forward(
        self,
        pred: Tensor,
        target: Tensor,
        weight: Tensor | None = None,
        normalizer: Tensor | None = None,
        lengths: Tensor | None = None,
        mask: Tensor | None = None,
        offsets: Tensor | None = None,
        zero_padded: bool = False,
    ) -> Tensor:
        """See `giou_loss`."""
        return giou_loss(
            pred,
            target,
            weight,
            normalizer,
            lengths,
            mask,
            offsets,
            zero_padded,
            self.pred_format,
            self.target_format,
            self.reduction,
            self.eps,
            self.eps_mode,
        )

    def extra_repr(self) -> str:
        """The options, for print(module)."""
        return (
            f"pred_format={self.pred_format!r}, target_format={self.target_format!r}, "
            f"reduction={self.reduction!r}, eps={self.eps}, eps_mode={self.eps_mode!r}"
        )


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
