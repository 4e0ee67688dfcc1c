# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What losses of logits share: a call, its gradient, and the formula for all that is beyond."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from ._library import run, traced
from .arguments import as_normalizer, compute_dtype
from .batching import Arrays, Many, batchable
from .implementations import formula_is_chosen
from .partitioning import REPLICATED, in_auto_axes, spec_of

Options = tuple[tuple[str, Any], ...]


def never(size: int, batched: set[str], arrays: Arrays) -> None:
    """No one problem holds many."""


class LossOfLogits(NamedTuple):
    """A loss of which logits alone have a gradient. Its handlers have its name."""

    function: str
    formula: Callable[[dict[str, Any], Arrays], Array]
    merged: Many = never  # under vmap: many problems as one, or None

    @property
    def forward(self) -> str:
        return f"boxloss_jax_{self.function}"

    @property
    def backward(self) -> str:
        return f"{self.forward}_backward"


def loss_of_logits(
    kind: LossOfLogits,
    arrays: Arrays,
    normalizer: ArrayLike | None,
    options: dict[str, Any],
) -> Array:
    """By the library or by the formula; sharded as the logits are, or not if it is reduced."""
    logits = arrays["logits"]
    if normalizer is not None:
        dtype = compute_dtype(logits, logits)
        arrays["normalizer"] = jnp.asarray(as_normalizer(kind.function, normalizer, dtype))
    traced(kind.forward, kind.function, arrays, options)  # checks the arguments
    arrays = {
        name: each if name == "logits" else jax.lax.stop_gradient(each)
        for name, each in arrays.items()
    }

    def loss(arrays: Arrays) -> Array:
        if formula_is_chosen():
            return kind.formula(options, arrays)
        return _loss(kind, tuple(options.items()), arrays)["loss"]

    is_reduced = options["reduction"] != "none"
    specs = REPLICATED if is_reduced else spec_of(logits, logits.ndim - 1)
    found: Array = in_auto_axes(loss, arrays, specs)
    return found


def _run(kind: LossOfLogits, operation: str, options: Options, arrays: Arrays) -> Arrays:
    """By name."""
    one = partial(run, operation, kind.function, options=dict(options))
    shapes = traced(operation, kind.function, arrays, dict(options))  # now: `many` is kept

    def many(size: int, batched: set[str], arrays: Arrays) -> Arrays | None:
        merged = kind.merged(size, batched, arrays)
        if merged is None:
            return None
        found = _run(kind, operation, options, merged)
        return {name: each.reshape(size, *shapes[name].shape) for name, each in found.items()}

    return batchable(one, many)(arrays)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _loss(kind: LossOfLogits, options: Options, arrays: Arrays) -> Arrays:
    """loss, and the scale that backward needs."""
    return _run(kind, kind.forward, options, arrays)


def _loss_and_kept(kind: LossOfLogits, options: Options, arrays: Arrays) -> tuple[Arrays, Any]:
    given = _loss(kind, options, arrays)  # itself, which may be differentiated again
    return given, (arrays, given["scale"])


def _backward(
    kind: LossOfLogits, options: Options, kept: Any, incoming: Arrays
) -> tuple[dict[str, Any]]:
    arrays, scale = kept
    gradient = _gradient(kind, options, arrays, scale, incoming["loss"])
    return (dict.fromkeys(arrays) | {"logits": gradient},)


_loss.defvjp(_loss_and_kept, _backward)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _gradient(
    kind: LossOfLogits, options: Options, arrays: Arrays, scale: Array, grad: Array
) -> Array:
    own = {**arrays, "scale": scale, "grad": grad}
    return _run(kind, kind.backward, options, own)["d_logits"]


def _gradient_and_kept(
    kind: LossOfLogits, options: Options, arrays: Arrays, scale: Array, grad: Array
) -> tuple[Array, Any]:
    return _gradient(kind, options, arrays, scale, grad), (arrays, grad)


def _second_backward(
    kind: LossOfLogits, options: Options, kept: Any, incoming: Array
) -> tuple[Any, ...]:
    """Of the formula, which JAX differentiates."""
    arrays, grad = kept

    def gradient(logits: Array, grad: Array) -> Array:
        def loss(logits: Array) -> Array:
            return kind.formula(dict(options), {**arrays, "logits": logits})

        found: Array = jax.vjp(loss, logits)[1](grad)[0]
        return found

    by_logits, by_grad = jax.vjp(gradient, arrays["logits"], grad)[1](incoming)
    return dict.fromkeys(arrays) | {"logits": by_logits}, None, by_grad


_gradient.defvjp(_gradient_and_kept, _second_backward)
