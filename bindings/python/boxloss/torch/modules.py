# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The losses as modules."""

from inspect import Parameter
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor
from typing_extensions import Unpack

from .._options import (
    AngleUnit,
    BoxFormat,
    EpsMode,
    Loss,
    LossParameters,
    Reduction,
    RotatedLoss,
    RotatedLossParameters,
    parameters_of,
    show,
)
from .arguments import check_options
from .losses import OPTIONS, BoxLossOptions, box_loss
from .rotated_box_loss import OPTIONS as ROTATED_OPTIONS
from .rotated_box_loss import RotatedBoxLossOptions, rotated_box_loss


def _defaults_of(options: dict[str, Parameter]) -> dict[str, Any]:
    """Of what a module fixes: all options but the tensors."""
    return {name: each.default for name, each in options.items() if each.default is not None}


class _LossModule(torch.nn.Module):
    """What is fixed of a loss: attributes that have the options' names."""

    _function: ClassVar[str]
    _defaults: ClassVar[dict[str, Any]]
    loss: Any
    loss_parameters: Any
    zero_padded: bool
    reduction: Reduction
    eps: float
    eps_mode: EpsMode

    def __init__(self, loss: str, parameters: Any, *options: Any) -> None:
        """These are all that are fixed, in their order."""
        super().__init__()
        self.loss = loss
        self.loss_parameters = parameters
        for name, value in zip(self._defaults, options, strict=True):
            setattr(self, name, value)
        own = parameters_of(self._function, loss, parameters)
        check_options(loss, function=self._function, **self._fixed(), parameters=own)

    def _fixed(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._defaults}

    def extra_repr(self) -> str:
        """The options, for print(module)."""
        loss = "" if isinstance(self, _OneLoss) else f"{self.loss!r}, "
        fixed = {**self.loss_parameters, **self._fixed()}
        return loss + ", ".join(f"{name}={value!r}" for name, value in fixed.items())

    def __setstate__(self, state: dict[str, Any]) -> None:
        """What an older version has stored lacks newer options."""
        older = {**self._defaults, "loss_parameters": {}}
        super().__setstate__(older | state)  # type: ignore[no-untyped-call]


class BoxLoss(_LossModule):
    """`box_loss` as a module: options are fixed here, tensors are passed to each call.

    What is fixed is an attribute of its name. A call may replace it: ``module(pred, target,
    reduction="none")``.

    Raises:
        ValueError: an option that `box_loss` does not allow. TypeError: one that it does not have.
    """

    loss: Loss
    pred_format: BoxFormat
    target_format: BoxFormat
    _function = "box_loss"
    _defaults = _defaults_of(OPTIONS)

    def __init__(
        self,
        loss: Loss = "giou",
        *,
        zero_padded: bool = False,
        pred_format: BoxFormat = "xyxy",
        target_format: BoxFormat = "xyxy",
        reduction: Reduction = "mean",
        eps: float = 1e-7,
        eps_mode: EpsMode = "add",
        **parameters: Unpack[LossParameters],
    ) -> None:
        fixed = (zero_padded, pred_format, target_format, reduction, eps, eps_mode)
        super().__init__(loss, parameters, *fixed)

    def forward(
        self,
        pred: Tensor,
        target: Tensor,
        weight: Tensor | None = None,
        **options: Unpack[BoxLossOptions],
    ) -> Tensor:
        """See `box_loss`."""
        every: dict[str, Any] = {**self._fixed(), **self.loss_parameters, **options}
        return box_loss(pred, target, self.loss, weight=weight, **every)

    show(forward, box_loss, "loss", "parameters")
    if TYPE_CHECKING:  # torch.nn.Module's, which calls forward, takes and returns anything
        __call__ = forward


class RotatedBoxLoss(_LossModule):
    """`rotated_box_loss` as a module, as `BoxLoss` is `box_loss`'.

    Raises:
        ValueError: an option that `rotated_box_loss` does not allow. TypeError: one that it does
            not have.
    """

    loss: RotatedLoss
    angle_unit: AngleUnit
    _function = "rotated_box_loss"
    _defaults = _defaults_of(ROTATED_OPTIONS)

    def __init__(
        self,
        loss: RotatedLoss,
        *,
        zero_padded: bool = False,
        angle_unit: AngleUnit = "radians",
        reduction: Reduction = "mean",
        eps: float = 1e-7,
        eps_mode: EpsMode = "add",
        **parameters: Unpack[RotatedLossParameters],
    ) -> None:
        super().__init__(loss, parameters, zero_padded, angle_unit, reduction, eps, eps_mode)

    def forward(
        self,
        pred: Tensor,
        target: Tensor,
        weight: Tensor | None = None,
        **options: Unpack[RotatedBoxLossOptions],
    ) -> Tensor:
        """See `rotated_box_loss`."""
        every: dict[str, Any] = {**self._fixed(), **self.loss_parameters, **options}
        return rotated_box_loss(pred, target, self.loss, weight=weight, **every)

    show(forward, rotated_box_loss, "loss", "parameters")
    if TYPE_CHECKING:  # as of BoxLoss
        __call__ = forward


class _OneLoss(BoxLoss):
    """A module that is named after its loss."""

    _word: ClassVar[Loss]

    def __init_subclass__(cls, loss: Loss, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._word = loss

    def __init__(
        self,
        *,
        zero_padded: bool = False,
        pred_format: BoxFormat = "xyxy",
        target_format: BoxFormat = "xyxy",
        reduction: Reduction = "mean",
        eps: float = 1e-7,
        eps_mode: EpsMode = "add",
    ) -> None:
        fixed = (zero_padded, pred_format, target_format, reduction, eps, eps_mode)
        _LossModule.__init__(self, self._word, {}, *fixed)


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
