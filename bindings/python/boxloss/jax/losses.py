# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The losses as functions."""

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from jax import Array
from jax.typing import ArrayLike

from .._options import (
    BoxFormat,
    EpsMode,
    Loss,
    LossParameters,
    Reduction,
    completed,
    options_of,
    showing,
    taking_what,
)
from ._library import exportable
from .loss import losses_of
from .pair_loss import pair_loss

if TYPE_CHECKING:
    from typing_extensions import Unpack

_WORDS = ("loss", "pred_format", "target_format")
_BOX_LOSS = pair_loss("box_loss", "box_loss", _WORDS)
_BOX_LOSSES = pair_loss("box_losses", "box_loss", _WORDS, has_extras=True)


@exportable
class BoxLosses(NamedTuple):
    """The results of `box_losses`."""

    loss: Array
    l1: Array
    iou: Array


def box_loss(
    pred: ArrayLike,
    target: ArrayLike,
    loss: Loss = "giou",
    *,
    weight: ArrayLike | None = None,
    normalizer: ArrayLike | None = None,
    lengths: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    zero_padded: bool = False,
    pred_format: BoxFormat = "xyxy",
    target_format: BoxFormat = "xyxy",
    reduction: Reduction = "mean",
    eps: float = 1e-7,
    eps_mode: EpsMode = "add",
    pred_index: ArrayLike | None = None,
    target_index: ArrayLike | None = None,
    **parameters: "Unpack[LossParameters]",
) -> Array:
    """`boxloss.torch.box_loss` for JAX, with its losses, arguments and errors.

    They are also in docs/losses.md. The arrays are of JAX or NumPy: pred, target, weight, lengths,
    mask, offsets, pred_index, target_index and, if it is no number, normalizer. Lengths, offsets
    and indices are int32 or int64. loss, zero_padded, pred_format, target_format, reduction, eps,
    eps_mode and the parameters of a loss are static: under jit they are no arguments of it.

    Lists of boxes are padded to one length, since shapes are static: rows of no image, and pairs
    whose index is -1, do not count. vmap of pairs by index is one call, as of more sets.

    Returns:
        What torch's gives. Differentiable in reverse mode, any number of times, with respect to
        pred, weight and a floating target. Only gradients that are asked for are computed.

    Raises:
        TypeError: also forward mode, for which `use_implementation` has the formula.
    """
    return losses_of(_BOX_LOSS, box_loss, locals())[0]


# The one list of options: what follows has its names and defaults from here.
OPTIONS = options_of(box_loss)
_DEFAULTS = {name: option.default for name, option in OPTIONS.items()}


@taking_what(box_loss)
def box_losses(
    pred: ArrayLike, target: ArrayLike, loss: Loss = "giou", **options: Any
) -> BoxLosses:
    """`boxloss.torch.box_losses` for JAX: a loss, the L1 distance and the IoU of the same pairs.

    Arguments and errors are those of `box_loss`; pred_format and target_format must be equal.
    Losses and l1 are differentiable, iou has no gradient.
    """
    given, parameters = completed(options, _DEFAULTS)
    given |= {"pred": pred, "target": target, "loss": loss, "parameters": parameters}
    return BoxLosses(*losses_of(_BOX_LOSSES, box_losses, given))


class NamedLoss(Protocol):
    """`box_loss` with its loss chosen."""

    def __call__(self, pred: ArrayLike, target: ArrayLike, **options: Any) -> Array: ...


def _named(loss: Loss, words: str) -> NamedLoss:
    def function(pred: ArrayLike, target: ArrayLike, **options: Any) -> Array:
        return box_loss(pred, target, loss, **options)

    function.__name__ = function.__qualname__ = f"{loss}_loss"
    function.__doc__ = f"{words}\n\nEverything else is as in `box_loss`, whose name errors have."
    return showing(OPTIONS)(function)


iou_loss = _named("iou", "1 - IoU.")
giou_loss = _named("giou", "1 - GIoU.")
diou_loss = _named("diou", "1 - IoU + ρ² / c²' (Zheng et al., AAAI 2020).")
ciou_loss = _named("ciou", "DIoU's loss + α v (Zheng et al., AAAI 2020).")
eiou_loss = _named("eiou", "DIoU's loss + relative differences of the sides (Zhang et al., 2021).")
siou_loss = _named("siou", "1 - IoU + (distance + shape) / 2 (Gevorgyan, 2022).")
