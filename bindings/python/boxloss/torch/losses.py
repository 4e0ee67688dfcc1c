# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The losses as functions."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol, TypedDict

import torch
from torch import Tensor
from typing_extensions import Unpack

from .._options import (
    BoxFormat,
    EpsMode,
    Loss,
    LossParameters,
    Reduction,
    completed,
    named,
    options_of,
    parameters_of,
    taking_what,
)
from .arguments import as_normalizer, call, check_tensors, exportable
from .nested import is_nested, nested, without_nested

# torch.ops is four look-ups, which take a tenth of a call's time.
_BOX_LOSS = torch.ops.boxloss.box_loss.default
_BOX_LOSSES = torch.ops.boxloss.box_losses.default


class PairOptions(TypedDict, total=False):
    """What calls of all losses of pairs may be given, beside weights."""

    normalizer: Tensor | float | None
    lengths: Tensor | None
    mask: Tensor | None
    offsets: Tensor | None
    zero_padded: bool
    reduction: Reduction
    eps: float
    eps_mode: EpsMode
    pred_index: Tensor | None
    target_index: Tensor | None


class BoxLossOptions(PairOptions, total=False):
    pred_format: BoxFormat
    target_format: BoxFormat


def box_loss(
    pred: Tensor,
    target: Tensor,
    loss: Loss = "giou",
    *,
    weight: Tensor | None = None,
    normalizer: Tensor | float | None = None,
    lengths: Tensor | None = None,
    mask: Tensor | None = None,
    offsets: Tensor | None = None,
    zero_padded: bool = False,
    pred_format: BoxFormat = "xyxy",
    target_format: BoxFormat = "xyxy",
    reduction: Reduction = "mean",
    eps: float = 1e-7,
    eps_mode: EpsMode = "add",
    pred_index: Tensor | None = None,
    target_index: Tensor | None = None,
    **parameters: Unpack[LossParameters],
) -> Tensor:
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

    pred and target have one unit, any. The defaults are torchvision's, corners in pixels. Those of
    `matching_cost` are DETR's, pred_format and target_format "cxcywh" in [0, 1] and eps 0.0, which
    a loss behind it is given, too: as corners such boxes are inverted, and their losses no losses.
    `check_boxes` finds that, and what else may be wrong with boxes.

    Valid pairs are given by at most one of ``zero_padded``, ``lengths``, ``mask``, ``offsets`` and
    indices (one or both); by default all are valid. The loss and gradients of an invalid pair are
    exactly 0, whatever its boxes contain, NaN included. Boxes are neither reordered nor clamped;
    NaN in a valid pair makes its loss and gradients NaN.

    Inside the transforms of torch.func (vmap, grad, jvp and their like), in forward mode and for
    second derivatives the same formula runs in torch's own operators, which are many kernels.
    Under torch.compile each other value of a number compiles anew, but for the normalizer.

    Boxes may be jagged nested tensors of shape (images, boxes of each, 4): nested pred and target
    are paired box by box. If only target is nested, its images' boxes are paired with the first
    predictions of pred (images, slots, 4), as with offsets. weight and mask may be nested, too.
    Of the structures only the total number of boxes is compared, since more would synchronize.
    "none" gives a nested tensor of target's structure.

    Args:
        pred: predicted boxes of shape (..., 4), float64, float32, float16 or bfloat16. It
            may have any strides, and is copied only if two strides for its leading dimensions and
            one for its coordinates cannot describe them.
        target: ground-truth boxes, shaped as pred; with offsets (T, 4). Any floating dtype, uint8,
            int16, int32 or int64. Nothing is cast beforehand: values are converted in registers.
        loss: one of the names above.
        weight: factors of shape (...), any floating dtype; with offsets (T), with indices theirs.
        normalizer: what reduction "mean" divides the sum by instead of the number of valid pairs:
            a number, or a tensor without dimensions, float64, float32, int64 or int32, read on the
            device. It is used as it is: 0 gives inf or NaN, but without valid pairs the loss is 0,
            whatever the normalizer is. With indices (S, P) also (S), one for each set. It gets no
            gradient.
        lengths: (images), int32 or int64: of image b's slots the first lengths[b], clamped to
            [0, slots], are valid. pred and target have shape (images, slots, 4).
        mask: bool of shape (...): true for valid pairs.
        offsets: (images + 1), int32 or int64: target rows offsets[b] to offsets[b + 1] belong to
            image b and are paired with its first predictions; pred has shape (images, slots, 4).
            Rows beyond slots have no prediction and are not valid. See check_indices.
        zero_padded: pairs whose target is four zeros are not valid; shapes as with lengths.
        pred_format: "xyxy" (two corners), "xywh" (corner and size) or "cxcywh" (centre and size).
        target_format: the same for target.
        reduction: "mean" (sum / max(number of valid pairs, 1)), "sum", or "none": one loss for
            each slot, with offsets for each target row, with indices for each pair, 0 for
            invalid ones.
        eps: finite, >= 0, in areas' unit. The default is torchvision's, for pixels. Boxes in [0, 1]
            lose by it if their sides are below about 1e-3: for them 0.0, as DETRs and
            `matching_cost` have, or eps_mode "clamp".
        eps_mode: what a formula divides by is x + eps ("add", torchvision's) or max(x, eps)
            ("clamp", mmdetection's).
        pred_index: (P) or (S, P), int32 or int64: pair k reads row pred_index[k] of pred, whose
            leading dimensions, of any number, are one list in row-major order. Pairs with an index
            outside their list are not valid; use -1 for padding. Rows may repeat, their gradients
            add up (on a GPU in any order, unless torch.use_deterministic_algorithms is set); rows
            in no pair get exactly 0. With (S, P), S sets of pairs at once, as of S decoder layers,
            "sum" and "mean" give (S). See collate_matches and check_indices.
        target_index: the same for target, and the same shape. An operand without an index is read
            pair by pair: it has the index' shape, followed by 4.
        **parameters: the loss' own numbers, each from 1e-6 to 1e6: alpha of "alpha_iou" (3.0 if
            it is not given), ratio of "inner_iou", constant of "nwd", image_width and image_height
            of "mpdiou". The last three are in the boxes' unit.

    Returns:
        The loss, float64 when either box tensor is, else float32. Differentiable, twice too, with
        respect to pred, weight and a floating target. Gradients have their input's dtype. They also
        have its strides if it fills its memory, as ``head.permute(0, 2, 3, 1)`` does; all others,
        and those with indices, are contiguous. At ties of min and max a gradient is split half
        and half; an intersection that is empty or only touches has none.

    Raises:
        ValueError: a bad value or shape. TypeError: a bad dtype, or no tensor. RuntimeError:
            tensors on several devices, or no implementation for their device in this build.
    """
    pairs = (weight, normalizer, lengths, mask, offsets, zero_padded, pred_format, target_format)
    options = (*pairs, reduction, eps, eps_mode, pred_index, target_index)
    return call_loss("box_loss", _BOX_LOSS, pred, target, loss, options, parameters)  # type: ignore[no-any-return]


# The one list of options. Editors and type checkers, which read signatures without running them,
# have BoxLossOptions; a test compares them.
OPTIONS = options_of(box_loss)
# Of each function that calls `call_loss`.
OPTIONS_OF: dict[str, Iterable[str]] = {"box_loss": OPTIONS, "box_losses": OPTIONS}
_DEFAULTS = {name: option.default for name, option in OPTIONS.items()}


def call_loss(
    function: str,
    operator: Callable[..., Any],
    pred: Tensor,
    target: Tensor,
    loss: str,
    options: tuple[Any, ...],
    parameters: Mapping[str, Any],
) -> Any:
    """The operator's result; all options are given, in their order."""
    own = (parameters_of(function, loss, parameters),) if parameters else ()
    structure = None
    if type(pred) is Tensor and type(target) is Tensor:  # which is told quickly
        has_nested = pred.is_nested or target.is_nested
    else:
        check_tensors(function, pred=pred, target=target)
        has_nested = is_nested(pred) or is_nested(target)
    if has_nested:
        named = dict(zip(OPTIONS_OF[function], options, strict=True))
        pred, target, options, structure = without_nested(function, pred, target, named)
    if options[1] is not None:
        weight, normalizer, *others = options
        options = (weight, as_normalizer(function, normalizer, pred, target), *others)
    result = call(function, operator, (pred, target, loss, *options, *own))
    return result if structure is None else nested(result, structure)


@exportable
class BoxLosses(NamedTuple):
    """The results of `box_losses`."""

    loss: Tensor
    l1: Tensor
    iou: Tensor


@taking_what(box_loss)
def box_losses(pred: Tensor, target: Tensor, loss: Loss = "giou", **options: Any) -> BoxLosses:
    """A loss, the L1 distance and the IoU of the same pairs, from one read of the boxes.

    Arguments, their defaults and errors are those of `box_loss`; pred_format and target_format must
    be equal. Behind `matching_cost` they are "cxcywh", and eps 0.0. l1 is in the boxes' unit.

    Returns:
        A named tuple of tensors in the loss' dtype:

        - loss: as `box_loss` gives it;
        - l1: the sum of |pred - target| over a box's four values, in their own format; weighted,
          excluded and reduced as the loss is. Differentiable; its derivative at a tie is 0;
        - iou: I / U' of each pair, with eps as eps_mode says; never reduced or weighted: of the
          shape that reduction "none" gives, 0 for invalid pairs. It has no gradient.
    """
    every, parameters = completed(options, _DEFAULTS)
    given = tuple(every.values())
    return BoxLosses(*call_loss("box_losses", _BOX_LOSSES, pred, target, loss, given, parameters))


class NamedLoss(Protocol):
    """`box_loss` with its loss chosen."""

    def __call__(
        self,
        pred: Tensor,
        target: Tensor,
        *,
        weight: Tensor | None = None,
        **options: Unpack[BoxLossOptions],
    ) -> Tensor: ...


iou_loss: NamedLoss = named(box_loss, "iou", "1 - IoU.")
giou_loss: NamedLoss = named(
    box_loss,
    "giou",
    """1 - GIoU.

For a pair with areas A_p and A_t, intersection I, union U = A_p + A_t - I and enclosing box C::

    loss = 1 - (I / (U + eps) - (C - U) / (C + eps))          eps_mode="add", torchvision's
    loss = 1 - (I / U' - (C' - U') / C')                      eps_mode="clamp", mmdetection's
           with U' = max(U, eps), C' = max(C, eps)""",
)
diou_loss: NamedLoss = named(box_loss, "diou", "1 - IoU + ρ² / c²' (Zheng et al., AAAI 2020).")
ciou_loss: NamedLoss = named(box_loss, "ciou", "DIoU's loss + α v (Zheng et al., AAAI 2020).")
eiou_loss: NamedLoss = named(
    box_loss, "eiou", "DIoU's loss + relative differences of the sides (Zhang et al., 2021)."
)
siou_loss: NamedLoss = named(
    box_loss, "siou", "1 - IoU + (distance + shape) / 2 (Gevorgyan, 2022)."
)
