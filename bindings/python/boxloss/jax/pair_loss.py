# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What losses of pairs share: calls, their gradients, and the formula for all that is beyond."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.custom_derivatives import SymbolicZero
from jax.sharding import PartitionSpec
from jax.typing import ArrayLike

from ._library import call, is_jits, traced
from .arguments import as_arrays, as_normalizer, as_options, compute_dtype
from .batching import as_sets, batchable
from .formula import Arrays, losses_by_formula
from .implementations import formula_is_chosen
from .partitioning import REPLICATED, by_image, in_auto_axes, spec_of

_ARRAYS = ("weight", "normalizer", "lengths", "mask", "offsets", "pred_index", "target_index")


class PairLoss(NamedTuple):
    """A loss of pairs. Its handlers have its name."""

    name: str
    formula: str
    words: tuple[str, ...]  # the options that the formula takes besides numbers
    has_extras: bool = False  # l1 and iou

    @property
    def forward(self) -> str:
        return f"boxloss_jax_{self.name}"

    @property
    def backward(self) -> str:
        return f"{self.forward}_backward"

    def by_formula(self, options: dict[str, Any], arrays: Arrays) -> tuple[Array, ...]:
        return losses_by_formula(self.formula, self.words, self.has_extras, options, arrays)


class _Static(NamedTuple):
    """What of a call JAX does not trace."""

    kind: PairLoss
    options: tuple[tuple[str, Any], ...]
    workspace: int  # A backend that is loaded later may need more: another program then.


def losses_of(
    kind: PairLoss,
    pred: ArrayLike,
    target: ArrayLike,
    options: dict[str, Any],
    defaults: dict[str, Any],
    parameters: tuple[float, ...],
) -> tuple[Array, ...]:
    """loss or, with extras, loss, l1 and iou; by the library or by the formula."""
    function = kind.name
    others = {name: options[name] for name in _ARRAYS if name != "normalizer"}
    arrays = as_arrays(function, pred=pred, target=target, **others)
    if options["normalizer"] is not None:
        dtype = compute_dtype(arrays["pred"], arrays["target"])
        arrays["normalizer"] = jnp.asarray(as_normalizer(function, options["normalizer"], dtype))
    words = {name: each for name, each in options.items() if name not in _ARRAYS}
    static = as_options(function, words, {"loss": "", **defaults})
    static["parameters"] = parameters
    results = traced(kind.forward, function, arrays, static)  # checks the arguments
    if formula_is_chosen():
        by_formula = partial(kind.by_formula, static)
        losses: tuple[Array, ...] = in_auto_axes(by_formula, arrays, _specs(kind, static, arrays))
    else:
        size = results["workspace"].size
        losses = _jitted(_Static(kind, tuple(static.items()), size), arrays)
    return losses


@partial(jax.jit, static_argnums=0, inline=True)
def _jitted(static: _Static, arrays: Arrays) -> tuple[Array, ...]:
    """What is called without jit is kept compiled, and shard_map needs none around it: it has no
    rule of its own for symbolic zeros."""
    specs = _specs(static.kind, dict(static.options), arrays)
    losses: tuple[Array, ...] = in_auto_axes(lambda own: _losses(static, own)[0], arrays, specs)
    return losses


def _specs(kind: PairLoss, options: dict[str, Any], arrays: Arrays) -> tuple[PartitionSpec, ...]:
    """Rows are sharded as the array that gives them their shape, and sums are not."""
    index = arrays.get("pred_index", arrays.get("target_index"))
    boxes = arrays["target" if "offsets" in arrays else "pred"]
    rows = spec_of(boxes, boxes.ndim - 1) if index is None else spec_of(index, index.ndim)
    loss = rows if options["reduction"] == "none" else REPLICATED
    return (loss, loss, rows) if kind.has_extras else (loss,)


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
    results = traced(static.kind.forward, static.kind.name, arrays, options)
    given = call(static.kind.forward, arrays, results, options)
    return {name: each for name, each in given.items() if name != "workspace"}


def _shapes(static: _Static, arrays: Arrays) -> dict[str, jax.ShapeDtypeStruct]:
    """Of what forward gives."""
    results = traced(static.kind.forward, static.kind.name, arrays, dict(static.options))
    return {name: each for name, each in results.items() if name != "workspace"}


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
        flags = {f"wants_{name}": name in wanted for name in ("pred", "target", "weight")}
        options = dict(static.options) | flags
        return call(static.kind.backward, operands, shapes(operands), options)

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
            given = static.kind.by_formula(dict(static.options), {**arrays, **floating, **inputs})
            named = dict(zip(("grad_loss", "grad_l1"), given, strict=False))
            return {name: named[name] for name in grads}

        (found,) = jax.vjp(losses, {name: floating[name] for name in wanted})[1](grads)
        return found  # type: ignore[no-any-return]

    floating = {name: each for name, each in arrays.items() if _is_floating(each)}
    by_floating, by_grads = jax.vjp(gradients, floating, grads)[1](incoming)
    return {name: by_floating.get(name) for name in arrays}, None, by_grads


_gradients.__wrapped__.defvjp(_gradients_and_kept, _second_backward)
