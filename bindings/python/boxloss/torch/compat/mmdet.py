# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""mmdetection's box losses, with the signature that its heads use."""

from typing import Literal, get_args

import torch
from torch import Tensor

from ..._options import Reduction
from ..arguments import check_options, check_tensors
from ..losses import box_loss
from .ranks import number_of_boxes

# The losses of mmdetection that boxloss has, by boxloss' names.
MMDetWord = Literal["iou_log", "iou", "iou_squared", "giou", "diou", "ciou_gated", "siou"]

# These divide by max(x, eps), the others by x + eps.
_FLOOR: tuple[MMDetWord, ...] = ("iou_log", "iou", "iou_squared", "giou")
_HINTS = {
    "ciou": "; mmdetection's CIoULoss is 'ciou_gated'",
    "eiou": "; mmdetection's EIoULoss is another loss",
}


class MMDetLoss(torch.nn.Module):
    """mmdetection's IoULoss, GIoULoss, DIoULoss, CIoULoss or SIoULoss, in one fused kernel.

    - "iou_log": IoULoss();
    - "iou", "iou_squared": IoULoss(mode="linear"), IoULoss(mode="square");
    - "giou", "diou": GIoULoss(), DIoULoss();
    - "ciou_gated": CIoULoss();
    - "siou": SIoULoss(neg_gamma=True); the default is another loss.

    This module also has classes of mmdetection's names and options. A config may write, for
    example, loss_bbox=dict(type="boxloss.GIoULoss", loss_weight=2.0).

    Values and gradients are equal up to rounding and eps (docs/losses.md in boxloss' folder).
    Differences:

    - the result is float32, or float64 when either box tensor is; with reduction "none" it has
      shape (n) even if no weight is positive;
    - there is no synchronization to see whether a weight is positive;
    - the mean of no boxes is 0, not NaN;
    - IoULoss always uses 1e-6 in the union; here eps is used in both places;
    - a bad reduction_override is a ValueError, not an AssertionError.

    Args:
        loss: a name of the list above.
        eps: as theirs.
        reduction: "mean", "sum" or "none".
        loss_weight: multiplies the result.
    """

    def __init__(
        self,
        loss: MMDetWord = "giou",
        *,
        eps: float = 1e-6,
        reduction: Reduction = "mean",
        loss_weight: float = 1.0,
    ) -> None:
        super().__init__()
        words = get_args(MMDetWord)
        if loss not in words:
            raise ValueError(f"loss is {loss!r}; it must be one of {words}{_HINTS.get(loss, '')}")
        _check_reduction("reduction", reduction)
        check_options(loss, eps=eps)
        if not hasattr(loss_weight, "__float__"):
            raise TypeError(f"loss_weight is {type(loss_weight).__name__}; it must be a number")
        self.loss = loss
        self.eps = eps
        self.reduction = reduction
        self.loss_weight = loss_weight

    def forward(
        self,
        pred: Tensor,
        target: Tensor,
        weight: Tensor | None = None,
        avg_factor: float | Tensor | None = None,
        reduction_override: Reduction | None = None,
    ) -> Tensor:
        """The loss of paired boxes.

        Args:
            pred: (n, 4), xyxy, float64, float32, float16 or bfloat16.
            target: the same shape; any dtype that `box_loss` takes.
            weight: (n), or (n, 4), which is averaged over the last dimension.
            avg_factor: what "mean" divides the sum by, plus 1.19e-7, in place of n: a number, or a
                tensor of one element. It gets no gradient. "none" ignores it.
            reduction_override: replaces reduction.

        Raises:
            ValueError: avg_factor with "sum"; a bad shape or word. TypeError: no tensor, or no
                number.
        """
        reduction = self.reduction if reduction_override is None else reduction_override
        _check_reduction("reduction_override", reduction)
        check_tensors("MMDetLoss", pred=pred, target=target)
        if weight is not None:
            check_tensors("MMDetLoss", weight=weight)
        if weight is not None and weight.dim() > 1:
            if weight.shape != pred.shape:
                raise ValueError(
                    f"weight has shape {tuple(weight.shape)}; it must be (n) or that of pred, "
                    f"{tuple(pred.shape)}"
                )
            weight = weight.mean(-1)
        normalizer = None
        if avg_factor is not None and reduction == "sum":
            raise ValueError("avg_factor was given with reduction 'sum'; it is for 'mean'")
        if avg_factor is not None and reduction == "mean":
            eps = torch.finfo(torch.float32).eps  # as theirs: 0 is no division by 0
            normalizer = number_of_boxes("avg_factor", avg_factor, pred, target) + eps
        loss = box_loss(
            pred,
            target,
            self.loss,
            weight=weight,
            normalizer=normalizer,
            reduction=reduction,
            eps=self.eps,
            eps_mode="clamp" if self.loss in _FLOOR else "add",
        )
        return loss if self.loss_weight == 1 else self.loss_weight * loss

    def extra_repr(self) -> str:
        """The options, for print(module)."""
        return (
            f"{self.loss!r}, eps={self.eps}, reduction={self.reduction!r}, "
            f"loss_weight={self.loss_weight}"
        )


class _OfOneWord(MMDetLoss):
    """Whose class is its name, with the options of mmdetection's class of that name."""

    word: MMDetWord

    def __init__(
        self, eps: float = 1e-6, reduction: Reduction = "mean", loss_weight: float = 1.0
    ) -> None:
        super().__init__(self.word, eps=eps, reduction=reduction, loss_weight=loss_weight)


class GIoULoss(_OfOneWord):
    word = "giou"


class DIoULoss(_OfOneWord):
    word = "diou"


class CIoULoss(_OfOneWord):
    word = "ciou_gated"


class SIoULoss(MMDetLoss):
    """With neg_gamma=True, which is not the default."""

    def __init__(
        self,
        eps: float = 1e-6,
        reduction: Reduction = "mean",
        loss_weight: float = 1.0,
        neg_gamma: bool = False,
    ) -> None:
        if not neg_gamma:
            raise ValueError(f"neg_gamma is {neg_gamma}; boxloss has SIoULoss with True alone")
        super().__init__("siou", eps=eps, reduction=reduction, loss_weight=loss_weight)


class IoULoss(MMDetLoss):
    def __init__(
        self,
        linear: bool = False,
        eps: float = 1e-6,
        reduction: Reduction = "mean",
        loss_weight: float = 1.0,
        mode: Literal["linear", "square", "log"] = "log",
    ) -> None:
        words: dict[str, MMDetWord] = {"linear": "iou", "square": "iou_squared", "log": "iou_log"}
        if mode not in words:
            raise ValueError(f"mode is {mode!r}; it must be one of {tuple(words)}")
        word = words["linear" if linear else mode]
        super().__init__(word, eps=eps, reduction=reduction, loss_weight=loss_weight)


def _check_reduction(name: str, reduction: str) -> None:
    if reduction not in get_args(Reduction):
        raise ValueError(f"{name} is {reduction!r}; it must be one of {get_args(Reduction)}")
