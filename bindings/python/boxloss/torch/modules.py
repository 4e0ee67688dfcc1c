# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The losses as modules."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate

import torch
from torch import Tensor

from .._options import Loss, showing, with_defaults
from .arguments import check_options
from .losses import OPTIONS, P, box_loss, giou_loss

_FIXED = {name: option for name, option in OPTIONS.items() if option.default is not None}
_DEFAULTS = {name: option.default for name, option in _FIXED.items()}


def _made_with_options_of(
    model: Callable[Concatenate[Tensor, Tensor, P], Any],
) -> Callable[[Callable[..., None]], Callable[Concatenate[Any, P], None]]:
    """For type checkers, too, parameters are the model's without the boxes.

    They see tensors among them, which cannot be fixed: a ParamSpec is taken whole.
    """
    return showing(_FIXED)


class BoxLoss(torch.nn.Module):
    """`box_loss` as a module: options are fixed here, tensors are passed to each call.

    What is fixed is an attribute of its name. A call may replace it: ``module(pred, target,
    reduction="none")``.

    Raises:
        ValueError: an option that `box_loss` does not allow. TypeError: one that it does not have.
    """

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    @_made_with_options_of(box_loss)
    def __init__(self, loss: Loss = "giou", **options: Any) -> None:
        super().__init__()
        fixed = with_defaults(type(self).__name__, options, _DEFAULTS)
        check_options(loss, **fixed)
        self.loss = loss
        for name, value in fixed.items():
            setattr(self, name, value)

    @showing(OPTIONS)
    def forward(
        self, pred: Tensor, target: Tensor, weight: Tensor | None = None, **options: Any
    ) -> Tensor:
        """See `box_loss`."""
        for name in _FIXED:
            options.setdefault(name, getattr(self, name))
        return box_loss(pred, target, self.loss, weight=weight, **options)

    def extra_repr(self) -> str:
        """The options, for print(module)."""
        loss = "" if isinstance(self, _OneLoss) else f"{self.loss!r}, "
        return loss + ", ".join(f"{name}={getattr(self, name)!r}" for name in _FIXED)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """What an older version has stored lacks newer options."""
        super().__setstate__(_DEFAULTS | state)  # type: ignore[no-untyped-call]


class _OneLoss(BoxLoss):
    """A module that is named after its loss."""

    _word: ClassVar[Loss]

    def __init_subclass__(cls, loss: Loss, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._word = loss

    @_made_with_options_of(giou_loss)
    def __init__(self, **options: Any) -> None:
        super().__init__(self._word, **options)


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
