# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The losses as functions."""

import inspect
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from jax import Array
from jax.typing import ArrayLike

from .._options import (
    LOSS_PARAMETERS,
    BoxFormat,
    EpsMode,
    Loss,
    LossParameters,
    Reduction,
    options_of,
    parameters_of,
    showing,
    with_defaults,
)
from ._library import exportable
from .pair_loss import PairLoss, losses_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

_BOX_LOSS = PairLoss("box_loss", ("loss", "pred_format", "target_format"))


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
    """A box-regression loss of paired boxes, in one fused kernel, forward and backward.

    ``loss`` names the formula, with iou = I / U' of intersection I and union U. x' is x + eps, or
    max(x, eps) with eps_mode "clamp". All terms are in docs/losses.md in boxloss' folder:

    - "iou", "iou_squared", "iou_log": 1 - iou, 1 - iou², -log(max(iou, eps));
    - "giou": 1 - iou + (C' - U') / C' with the enclosing area C;
    - "diou": 1 - iou + ρ² / c²' with the centres' distance ρ and the enclosing diagonal c;
    - "ciou": diou + α v, where v compares the boxes' width / height and α is a constant to the
      gradient; "ciou_gated": mmdetection's, with another α;
    - "eiou": diou + the squared differences of the sides, relative to the enclosure's;
    - "siou": 1 - iou + (distance with an angle + shape) / 2;
    - "alpha_iou": 1 - iou ** alpha; "inner_iou": 1 - iou of boxes with sides ratio times as long;
    - "nwd": 1 - exp(-distance / constant), the distance of the boxes as Gaussians;
    - "mpdiou": 1 - iou + the corners' squared distances / (image_width² + image_height²).

    Valid pairs are given by at most one of ``zero_padded``, ``lengths``, ``mask``, ``offsets`` and
    indices (one or both); by default all are valid. The loss and gradients of an invalid pair are
    exactly 0, whatever its boxes contain, NaN included. NaN in a valid pair makes its loss and
    gradients NaN.

    Strings, ``zero_padded`` and ``eps`` are static: under jit they are no arguments of it.

    Args:
        pred: predicted boxes of shape (..., 4), float64, float32, float16 or bfloat16.
        target: ground-truth boxes, shaped as pred; with offsets (T, 4). Any floating dtype, uint8,
            int16, int32 or int64. Nothing is cast beforehand: values are converted in registers.
        loss: one of the names above.
        weight: factors of shape (...), any floating dtype; with offsets (T), with indices theirs.
        normalizer: what reduction "mean" divides the sum by instead of the number of valid pairs:
            a number, or an array without dimensions, float64, float32, int64 or int32. Without
            valid pairs the loss is 0, whatever it is. With indices (S, P) also (S), one for each
            set. It gets no gradient.
        lengths: (images), int32 or int64: of image b's slots the first lengths[b], clamped to
            [0, slots], are valid. pred and target have shape (images, slots, 4).
        mask: bool of shape (...): true for valid pairs.
        offsets: (images + 1), int32 or int64: target rows offsets[b] to offsets[b + 1] belong to
            image b and are paired with its first predictions; pred has shape (images, slots, 4).
            Rows beyond slots have no prediction and are not valid.
        zero_padded: pairs whose target is four zeros are not valid; shapes as with lengths.
        pred_format: "xyxy" (two corners), "xywh" (corner and size) or "cxcywh" (centre and size).
        target_format: the same for target.
        reduction: "mean" (sum / max(number of valid pairs, 1)), "sum", or "none": one loss for
            each slot, with offsets for each target row, with indices for each pair, 0 for
            invalid ones.
        eps: finite, >= 0.
        eps_mode: what a formula divides by is x + eps ("add", torchvision's) or max(x, eps)
            ("clamp", mmdetection's).
        pred_index: (P) or (S, P), int32 or int64: pair k reads row pred_index[k] of pred, whose
            leading dimensions, of any number, are one list in row-major order. Pairs with an index
            outside their list are not valid; use -1 for padding. Rows may repeat, their gradients
            add up (on a GPU in any order); rows in no pair get exactly 0. With (S, P), S sets of
            pairs at once, as of S decoder layers, "sum" and "mean" give (S).
        target_index: the same for target, and the same shape. An operand without an index is read
            pair by pair: it has the index' shape, followed by 4.
        **parameters: the loss' own numbers, each from 1e-6 to 1e6: alpha of "alpha_iou" (3.0 if
            it is not given), ratio of "inner_iou", constant of "nwd", image_width and image_height
            of "mpdiou". The last three are in the boxes' unit.

    Returns:
        The loss, float64 when either box array is float64, else float32. Differentiable in reverse
        mode, any number of times, with respect to pred, weight and a floating target; gradients
        have their input's dtype. At ties of min and max a gradient is split half and half; an
        intersection that is empty or only touches has none.

    Raises:
        ValueError: a bad value or shape. TypeError: a bad dtype, or no array; forward
            mode, for which `use_implementation` has the formula.
    """
    options = {
        "loss": loss,
        "weight": weight,
        "normalizer": normalizer,
        "lengths": lengths,
        "mask": mask,
        "offsets": offsets,
        "zero_padded": zero_padded,
        "pred_format": pred_format,
        "target_format": target_format,
        "reduction": reduction,
        "eps": eps,
        "eps_mode": eps_mode,
        "pred_index": pred_index,
        "target_index": target_index,
    }
    own = parameters_of("box_loss", loss, parameters)
    return losses_of(_BOX_LOSS, "box_loss", pred, target, options, _DEFAULTS, own)[0]


# The one list of options: what follows has its names and defaults from here.
OPTIONS = options_of(box_loss)
_DEFAULTS = {name: option.default for name, option in OPTIONS.items()}


@showing(OPTIONS | {"parameters": inspect.signature(box_loss).parameters["parameters"]})
def box_losses(
    pred: ArrayLike, target: ArrayLike, loss: Loss = "giou", **options: Any
) -> BoxLosses:
    """A loss, the L1 distance and the IoU of the same pairs, from one read of the boxes.

    Arguments and errors are those of `box_loss`; pred_format and target_format must be equal.

    Returns:
        A named tuple of arrays in the loss' dtype:

        - loss: as `box_loss` gives it;
        - l1: the sum of |pred - target| over a box's four values, in their own format; weighted,
          excluded and reduced as the loss is. Differentiable; its derivative at a tie is 0;
        - iou: I / U' of each pair, with eps as eps_mode says; never reduced or weighted: of the
          shape that reduction "none" gives, 0 for invalid pairs. It has no gradient.
    """
    own = {name: options.pop(name) for name in LOSS_PARAMETERS.get(loss, ()) if name in options}
    given = {"loss": loss, **with_defaults("box_losses", options, _DEFAULTS)}
    numbers = parameters_of("box_losses", loss, own)
    kind, function = _BOX_LOSS, "box_losses"
    return BoxLosses(
        *losses_of(kind, function, pred, target, given, _DEFAULTS, numbers, extras=True)
    )


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
