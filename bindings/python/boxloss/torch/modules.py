# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The losses as modules."""

from typing import Any, ClassVar

import torch
from torch import Tensor

from .arguments import check_options
from .losses import BoxFormat, EpsMode, Loss, Reduction, box_loss


class BoxLoss(torch.nn.Module):
    """`box_loss` as a module: options are fixed here, tensors are passed to each call.

    Raises:
        ValueError: an option that `box_loss` does not allow.
    """

    def __init__(
        self,
        loss: Loss = "giou",
        *,
        pred_format: BoxFormat = "xyxy",
        target_format: BoxFormat = "xyxy",
        reduction: Reduction = "mean",
        eps: float = 1e-7,
        eps_mode: EpsMode = "add",
    ) -> None:
        super().__init__()
        check_options(
            loss,
            pred_format=pred_format,
            target_format=target_format,
            reduction=reduction,
            eps=eps,
            eps_mode=eps_mode,
        )
        self.loss = loss
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
        normalizer: Tensor | float | None = None,
        lengths: Tensor | None = None,
        mask: Tensor | None = None,
        offsets: Tensor | None = None,
        zero_padded: bool = False,
        *,
        pred_index: Tensor | None = None,
        target_index: Tensor | None = None,
    ) -> Tensor:
        """See `box_loss`."""
        return box_loss(
            pred,
            target,
            self.loss,
            weight=weight,
            normalizer=normalizer,
            lengths=lengths,
            mask=mask,
            offsets=offsets,
            zero_padded=zero_padded,
            pred_format=self.pred_format,
            target_format=self.target_format,
            reduction=self.reduction,
            eps=self.eps,
            eps_mode=self.eps_mode,
            pred_index=pred_index,
            target_index=target_index,
        )

    def extra_repr(self) -> str:
        """The options, for print(module)."""
        loss = "" if isinstance(self, _OneLoss) else f"{self.loss!r}, "
        return (
            f"{loss}pred_format={self.pred_format!r}, target_format={self.target_format!r}, "
            f"reduction={self.reduction!r}, eps={self.eps}, eps_mode={self.eps_mode!r}"
        )


class _OneLoss(BoxLoss):
    """A module that is named after its loss."""

    _word: ClassVar[Loss]

    def __init_subclass__(cls, loss: Loss, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._word = loss

    def __init__(
        self,
        pred_format: BoxFormat = "xyxy",
        target_format: BoxFormat = "xyxy",
        reduction: Reduction = "mean",
        eps: float = 1e-7,
        eps_mode: EpsMode = "add",
    ) -> None:
        super().__init__(
            self._word,
            pred_format=pred_format,
            target_format=target_format,
            reduction=reduction,
            eps=eps,
            eps_mode=eps_mode,
        )


class IoULoss(_OneLoss, loss="iou"):
    """`iou_loss` as a module."""


class GIoULoss(_OneLoss, loss="giou"):
    """`giou_loss` as a module."""


class DIoULoss(_OneLoss, loss="diou"):
    """`diou_loss` as a module."""


class CIoULoss(_OneLoss, loss="ciou"):
    """`ciou_loss` as a module."""


class EIoULoss(_OneLoss, loss="eiou"):
    """`eiou_loss` as a module."""


class SIoULoss(_OneLoss, loss="siou"):
    """`siou_loss` as a module."""
