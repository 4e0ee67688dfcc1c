# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What losses share: a call, its gradient, and the formula for all that is beyond."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.custom_derivatives import SymbolicZero
from jax.sharding import PartitionSpec

from ._library import Arrays, Operation, implementations
from .arguments import arguments_of, as_normalizer, compute_dtype
from .batching import solve
from .implementations import formula_is_chosen
from .partitioning import REPLICATED, by_image, in_auto_axes

Options = dict[str, Any]


@dataclass(frozen=True, eq=False)
class DifferentiableLoss:
    """A loss whose handlers have its name."""

    name: str
    formula: Callable[[Options, Arrays], tuple[Array, ...]]
    gradients: dict[str, str]  # of which arrays, and what backward calls them
    incoming: tuple[str, ...]  # what it calls the losses' gradients
    typed_by: tuple[str, ...]  # float64 if one of these arrays is
    merge: Callable[..., Arrays | None]  # under vmap
    rows: Callable[[Arrays], PartitionSpec]  # how unreduced losses are sharded
    is_by_image: Callable[[Options, Arrays], bool]  # whether it needs nothing of other images
    has_extras: bool = False  # l1 and iou

    def by_formula(self, options: Options, arrays: Arrays) -> tuple[Array, ...]:
        return self.formula(options, self.with_constants(arrays))

    def with_constants(self, arrays: Arrays) -> Arrays:
        return {
            name: each if name in self.gradients else jax.lax.stop_gradient(each)
            for name, each in arrays.items()
        }

    def specs(self, options: Options, arrays: Arrays) -> tuple[PartitionSpec, ...]:
        """Rows are sharded as the array that gives them their shape, and sums are not."""
        rows = self.rows(arrays)
        loss = rows if options["reduction"] == "none" else REPLICATED
        return (loss, loss, rows) if self.has_extras else (loss,)


class _Static(NamedTuple):
    """What of a call JAX does not trace."""

    loss: DifferentiableLoss
    options: tuple[tuple[str, Any], ...]
    implementations: bytes


def losses_of(
    loss: DifferentiableLoss, function: Callable[..., Any], values: Options
) -> tuple[Array, ...]:
    """loss or, with extras, loss, l1 and iou; by the library or by the formula."""
    normalizer = values["normalizer"]
    arrays, options = arguments_of(function, values | {"normalizer": None})
    if normalizer is not None:
        dtype = compute_dtype(*(arrays[name] for name in loss.typed_by))
        arrays["normalizer"] = jnp.asarray(as_normalizer(loss.name, normalizer, dtype))
    static = _Static(loss, tuple(options.items()), implementations())
    _operation(static).shapes(arrays)  # checks the arguments
    if not formula_is_chosen():
        return _jitted(static, arrays)  # type: ignore[no-any-return]
    by_formula = partial(loss.by_formula, options)
    return in_auto_axes(by_formula, arrays, loss.specs(options, arrays))  # type: ignore[no-any-return]


def _operation(static: _Static, wanted: tuple[str, ...] = ()) -> Operation:
    """Forward or, of what is wanted, backward."""
    loss, options = static.loss, dict(static.options)
    target = f"boxloss_jax_{loss.name}"
    if not wanted:
        return Operation(target, loss.name, options)
    options |= {f"wants_{name}": name in wanted for name in loss.gradients}
    results = tuple(loss.gradients[name] for name in wanted)
    return Operation(f"{target}_backward", loss.name, options, results)


def _run(static: _Static, arrays: Arrays, wanted: tuple[str, ...] = ()) -> Arrays:
    """By name."""
    operation, loss = _operation(static, wanted), static.loss

    def alone(arrays: Arrays) -> Arrays:
        if loss.is_by_image(operation.options, arrays):
            return by_image(operation.run, arrays, operation.shapes(arrays))
        return operation.run(arrays)

    return solve(operation, arrays, partial(loss.merge, wanted=wanted), alone=alone)


@partial(jax.jit, static_argnums=0, inline=True)
def _jitted(static: _Static, arrays: Arrays) -> tuple[Array, ...]:
    """What is called without jit is kept compiled, and shard_map needs none around it: it has no
    rule of its own for symbolic zeros."""
    specs = static.loss.specs(dict(static.options), arrays)
    arrays = static.loss.with_constants(arrays)
    losses: tuple[Array, ...] = in_auto_axes(lambda own: _losses(static, own)[0], arrays, specs)
    return losses


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _losses(static: _Static, arrays: Arrays) -> tuple[tuple[Array, ...], Array]:
    """The losses, and the factor that backward needs."""
    results = _run(static, arrays)
    losses = (results[name] for name in ("loss", "l1", "iou") if name in results)
    return tuple(losses), results["scale"]


def _losses_and_kept(static: _Static, primals: dict[str, Any]) -> tuple[Any, Any]:
    arrays = {name: each.value for name, each in primals.items()}
    losses, scale = _losses(static, arrays)  # itself, which may be differentiated again
    # As dtypes, which are not traced. What is kept has one structure, whatever is wanted: of a jit
    # that is differentiated by one argument and then by another, JAX remembers only the last.
    wanted = {
        name: primals[name].perturbed and _is_floating(arrays[name])
        for name in static.loss.gradients
        if name in arrays
    }
    flags = {name: jnp.zeros((), jnp.bool if each else jnp.int8) for name, each in wanted.items()}
    return (losses, scale), (arrays, scale, flags)


def _backward(static: _Static, kept: Any, incoming: Any) -> tuple[dict[str, Any]]:
    arrays, scale, flags = kept
    wanted = tuple(name for name, flag in flags.items() if flag.dtype == jnp.bool)
    grads = {
        name: grad
        for name, grad in zip(static.loss.incoming, incoming[0], strict=False)  # iou has none
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


def _is_floating(array: Array) -> bool:
    return bool(jnp.issubdtype(array.dtype, jnp.floating))


@partial(jax.jit, static_argnums=(0, 1), inline=True)
@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _gradients(
    static: _Static, wanted: tuple[str, ...], arrays: Arrays, scale: Array, grads: Arrays
) -> Arrays:
    results = _run(static, {**arrays, "scale": scale, **grads}, wanted)
    return {name: results[static.loss.gradients[name]] for name in wanted}


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
            inputs = {**arrays, **floating, **inputs}
            found = static.loss.by_formula(dict(static.options), inputs)
            named = dict(zip(static.loss.incoming, found, strict=False))
            return {name: named[name] for name in grads}

        (found,) = jax.vjp(losses, {name: floating[name] for name in wanted})[1](grads)
        return found  # type: ignore[no-any-return]

    floating = {
        name: each
        for name, each in arrays.items()
        if name in static.loss.gradients and _is_floating(each)
    }
    by_floating, by_grads = jax.vjp(gradients, floating, grads)[1](incoming)
    return {name: by_floating.get(name) for name in arrays}, None, by_grads


_gradients.__wrapped__.defvjp(_gradients_and_kept, _second_backward)
