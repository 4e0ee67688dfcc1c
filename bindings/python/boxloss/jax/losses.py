# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The losses as functions."""

import inspect
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax import Array
from jax.custom_derivatives import SymbolicZero
from jax.sharding import PartitionSpec
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
from ._library import call, exportable, is_jits, traced
from .arguments import as_arrays, as_normalizer, as_options, compute_dtype
from .batching import as_sets, batchable
from .formula import Arrays, losses_by_formula
from .implementations import formula_is_chosen
from .partitioning import REPLICATED, by_image, in_auto_axes, spec_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

_ARRAYS = ("weight", "normalizer", "lengths", "mask", "offsets", "pred_index", "target_index")


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
    max(x, eps) with eps_mode "clamp". All terms are in docs/losses.md in boxloss' repository:

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
        target: true boxes, shaped as pred; with offsets (T, 4). Any floating dtype, uint8, int16,
            int32 or int64. Nothing is cast beforehand: values are converted in registers.
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
    return _call("box_loss", False, pred, target, loss, options, parameters)[0]


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
    given = with_defaults("box_losses", options, _DEFAULTS)
    return BoxLosses(*_call("box_losses", True, pred, target, loss, given, own))


class _Static(NamedTuple):
    """What of a call JAX does not trace."""

    function: str
    options: tuple[tuple[str, Any], ...]
    workspace: int  # A backend that is loaded later may need more: another program then.


def _call(
    function: str,
    extras: bool,
    pred: ArrayLike,
    target: ArrayLike,
    loss: Loss,
    options: dict[str, Any],
    parameters: Mapping[str, Any],
) -> tuple[Array, ...]:
    others = {name: options[name] for name in _ARRAYS if name != "normalizer"}
    arrays = as_arrays(function, pred=pred, target=target, **others)
    if options["normalizer"] is not None:
        dtype = compute_dtype(arrays["pred"], arrays["target"])
        arrays["normalizer"] = jnp.asarray(as_normalizer(function, options["normalizer"], dtype))
    words = {name: each for name, each in options.items() if name not in _ARRAYS}
    static = as_options(function, {"loss": loss, **words}, {"loss": "giou", **_DEFAULTS})
    static["extras"] = extras
    static["parameters"] = parameters_of(function, loss, parameters)
    results = traced("boxloss_jax_box_loss", function, arrays, static)  # checks the arguments
    if formula_is_chosen():
        by_formula = partial(losses_by_formula, static)
        losses: tuple[Array, ...] = in_auto_axes(by_formula, arrays, _specs(static, arrays))
    else:
        size = results["workspace"].size
        losses = _jitted(_Static(function, tuple(static.items()), size), arrays)
    return losses


@partial(jax.jit, static_argnums=0, inline=True)
def _jitted(static: _Static, arrays: Arrays) -> tuple[Array, ...]:
    """What is called without jit is kept compiled, and shard_map needs none around it: it has no
    rule of its own for symbolic zeros."""
    specs = _specs(dict(static.options), arrays)
    losses: tuple[Array, ...] = in_auto_axes(lambda own: _losses(static, own)[0], arrays, specs)
    return losses


def _specs(options: dict[str, Any], arrays: Arrays) -> tuple[PartitionSpec, ...]:
    """Rows are sharded as the array that gives them their shape, and sums are not."""
    index = arrays.get("pred_index", arrays.get("target_index"))
    boxes = arrays["target" if "offsets" in arrays else "pred"]
    rows = spec_of(boxes, boxes.ndim - 1) if index is None else spec_of(index, index.ndim)
    loss = rows if options["reduction"] == "none" else REPLICATED
    return (loss, loss, rows) if options["extras"] else (loss,)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _losses(static: _Static, arrays: Arrays) -> tuple[tuple[Array, ...], Array]:
    """loss or, with extras, loss, l1 and iou; and the factor that backward needs."""
    given = _forward(static, arrays)
    return tuple(given[name] for name in ("loss", "l1", "iou") if name in given), given["scale"]


def _forward(static: _Static, arrays: Arrays) -> Arrays:
    """By name; many problems by index are the sets of one."""

    def many(size: int, batched: set[str], arrays: Arrays) -> Arrays | None:
        if not {"pred_index", "target_index"} & arrays.keys():
            return None
        merged = as_sets(size, batched, arrays)
        if merged is None:
            return None
        return _split(size, _forward(static, merged), shapes)

    def alone(arrays: Arrays) -> Arrays:
        return by_image(one, arrays, shapes) if _is_by_image(static, arrays) else one(arrays)

    one, shapes = partial(_forward_alone, static), _shapes(static, arrays)
    return batchable(one, many, alone)(arrays)


def _is_by_image(static: _Static, arrays: Arrays) -> bool:
    """Whether nothing of an image is needed for another one's results."""
    lists = {"offsets", "pred_index", "target_index"} & arrays.keys()
    is_reduced = dict(static.options)["reduction"] != "none"
    return not lists and not is_reduced and arrays["pred"].ndim > 1 and is_jits(arrays)


def _forward_alone(static: _Static, arrays: Arrays) -> Arrays:
    options = dict(static.options)
    results = traced("boxloss_jax_box_loss", static.function, arrays, options)
    given = call("boxloss_jax_box_loss", arrays, _wanted(results, options, "workspace"), options)
    return _wanted(given, options)


def _shapes(static: _Static, arrays: Arrays) -> dict[str, jax.ShapeDtypeStruct]:
    """Of what forward gives."""
    options = dict(static.options)
    return _wanted(traced("boxloss_jax_box_loss", static.function, arrays, options), options)


def _wanted(results: dict[str, Any], options: dict[str, Any], *others: str) -> dict[str, Any]:
    """l1 and iou come only as extras."""
    names = ("loss", "scale", *(("l1", "iou") if options["extras"] else ()), *others)
    return {name: results[name] for name in names}


def _split(size: int, given: Arrays, shapes: dict[str, Any]) -> Arrays:
    """Of one problem that was many, whose results have these shapes."""
    return {name: each.reshape(size, *shapes[name].shape) for name, each in given.items()}


def _is_floating(array: Array) -> bool:
    return bool(jnp.issubdtype(array.dtype, jnp.floating))


def _losses_and_kept(static: _Static, primals: dict[str, Any]) -> tuple[Any, Any]:
    arrays = {name: each.value for name, each in primals.items()}
    losses, scale = _losses(static, arrays)  # itself, which may be differentiated again
    # As dtypes, which are not traced. What is kept has one structure, whatever is wanted: of a jit
    # that is differentiated by one argument and then by another, JAX remembers only the last.
    wanted = {
        name: primals[name].perturbed and _is_floating(arrays[name])
        for name in ("pred", "target", "weight")
        if name in arrays
    }
    flags = {name: jnp.zeros((), jnp.bool if each else jnp.int8) for name, each in wanted.items()}
    return (losses, scale), (arrays, scale, flags)


def _backward(static: _Static, kept: Any, incoming: Any) -> tuple[dict[str, Any]]:
    arrays, scale, flags = kept
    wanted = tuple(name for name, flag in flags.items() if flag.dtype == jnp.bool)
    grads = {
        name: grad
        for name, grad in zip(("grad_loss", "grad_l1"), incoming[0], strict=False)  # iou has none
        if not isinstance(grad, SymbolicZero)
    }
    found = _gradients(static, wanted, arrays, scale, grads) if wanted and grads else {}
    # Always of one structure, likewise.
    zeros = {
        name: SymbolicZero(jax.typeof(each).to_tangent_aval()) if _is_floating(each) else None
        for name, each in arrays.items()
    }
    return (zeros | found,)


_losses.defvjp(_losses_and_kept, _backward, symbolic_zeros=True)


@partial(jax.jit, static_argnums=(0, 1), inline=True)
@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _gradients(
    static: _Static, wanted: tuple[str, ...], arrays: Arrays, scale: Array, grads: Arrays
) -> Arrays:
    return _backward_call(static, wanted, {**arrays, "scale": scale, **grads})


def _backward_call(static: _Static, wanted: tuple[str, ...], own: Arrays) -> Arrays:
    def shapes(operands: Arrays) -> dict[str, jax.ShapeDtypeStruct]:
        boxes = {name: operands[name] for name in wanted}
        return {name: jax.ShapeDtypeStruct(each.shape, each.dtype) for name, each in boxes.items()}

    of_one = shapes(own)  # now, since JAX keeps `many`, and the arrays may be a trace's

    def one(operands: Arrays) -> Arrays:
        options = dict(static.options)
        return call("boxloss_jax_box_loss_backward", operands, shapes(operands), options)

    def alone(operands: Arrays) -> Arrays:
        is_by_image = _is_by_image(static, operands)
        return by_image(one, operands, shapes(operands)) if is_by_image else one(operands)

    def many(size: int, batched: set[str], operands: Arrays) -> Arrays | None:
        if not {"pred_index", "target_index"} & operands.keys():
            return None
        merged = as_sets(size, batched, operands, wanted)
        if merged is None:
            return None
        return _split(size, _backward_call(static, wanted, merged), of_one)

    return batchable(one, many, alone)(own)


def _gradients_and_kept(
    static: _Static, wanted: tuple[str, ...], arrays: Arrays, scale: Array, grads: Arrays
) -> tuple[Arrays, Any]:
    return _gradients(static, wanted, arrays, scale, grads), (arrays, grads)


def _second_backward(
    static: _Static, wanted: tuple[str, ...], kept: Any, incoming: Arrays
) -> tuple[Any, ...]:
    """Of the formula, which JAX differentiates."""
    arrays, grads = kept

    def gradients(floating: Arrays, grads: Arrays) -> Arrays:
        def losses(inputs: Arrays) -> Arrays:
            given = losses_by_formula(dict(static.options), {**arrays, **floating, **inputs})
            named = dict(zip(("grad_loss", "grad_l1"), given, strict=False))
            return {name: named[name] for name in grads}

        (found,) = jax.vjp(losses, {name: floating[name] for name in wanted})[1](grads)
        return found  # type: ignore[no-any-return]

    floating = {name: each for name, each in arrays.items() if _is_floating(each)}
    by_floating, by_grads = jax.vjp(gradients, floating, grads)[1](incoming)
    return {name: by_floating.get(name) for name in arrays}, None, by_grads


_gradients.__wrapped__.defvjp(_gradients_and_kept, _second_backward)


class NamedLoss(Protocol):
    """`box_loss` with its loss chosen."""

    def __call__(self, pred: ArrayLike, target: ArrayLike, **options: Any) -> Array: ...


def _named(loss: Loss, words: str) -> NamedLoss:
    def function(pred: ArrayLike, target: ArrayLike, **options: Any) -> Array:
        return box_loss(pred, target, loss, **options)

    function.__name__ = function.__qualname__ = f"{loss}_loss"
    function.__doc__ = f"{words}\n\nEverything else is as in `box_loss`."
    return showing(OPTIONS)(function)


iou_loss = _named("iou", "1 - IoU.")
giou_loss = _named("giou", "1 - GIoU.")
diou_loss = _named("diou", "1 - IoU + ρ² / c²' (Zheng et al., AAAI 2020).")
ciou_loss = _named("ciou", "DIoU's loss + α v (Zheng et al., AAAI 2020).")
eiou_loss = _named("eiou", "DIoU's loss + relative differences of the sides (Zhang et al., 2021).")
siou_loss = _named("siou", "1 - IoU + (distance + shape) / 2 (Gevorgyan, 2022).")
