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
    named,
    options_of,
    taking_what,
)
from ._library import exportable
from .custom_vjp import losses_of
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
    """`boxloss.torch.box_loss` for JAX. See docs/jax.md and docs/losses.md.

    Lists of boxes are padded to one length, since shapes are static: rows of no image, and pairs
    whose index is -1, do not count. vmap of pairs by index is one call, as of more sets.

    Only gradients that are asked for are computed.
    """
    return losses_of(_BOX_LOSS, box_loss, locals())[0]


_DEFAULTS = {name: option.default for name, option in options_of(box_loss).items()}


@taking_what(box_loss)
def box_losses(
    pred: ArrayLike, target: ArrayLike, loss: Loss = "giou", **options: Any
) -> BoxLosses:
    """`boxloss.torch.box_losses` for JAX: a loss, the L1 distance and the IoU of the same pairs.

    What `box_loss` here has of its own, this has, too.
    """
    values, parameters = completed(options, _DEFAULTS)
    values |= {"pred": pred, "target": target, "loss": loss, "parameters": parameters}
    return BoxLosses(*losses_of(_BOX_LOSSES, box_losses, values))


class NamedLoss(Protocol):
    """`box_loss` with its loss chosen."""

    def __call__(self, pred: ArrayLike, target: ArrayLike, **options: Any) -> Array: ...


iou_loss: NamedLoss = named(box_loss, "iou", "`boxloss.torch.iou_loss` for JAX.")
giou_loss: NamedLoss = named(box_loss, "giou", "`boxloss.torch.giou_loss` for JAX.")
diou_loss: NamedLoss = named(box_loss, "diou", "`boxloss.torch.diou_loss` for JAX.")
ciou_loss: NamedLoss = named(box_loss, "ciou", "`boxloss.torch.ciou_loss` for JAX.")
eiou_loss: NamedLoss = named(box_loss, "eiou", "`boxloss.torch.eiou_loss` for JAX.")
siou_loss: NamedLoss = named(box_loss, "siou", "`boxloss.torch.siou_loss` for JAX.")
