# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""vmap: a batch of calls as one, where the library has a problem that holds it."""

from collections.abc import Callable
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ._library import Arrays, Operation, Shapes

One = Callable[[Arrays], Arrays]
Merge = Callable[[int, set[str], Arrays], Arrays | None]
Split = Callable[[int, Arrays, Shapes], Arrays]


def never(size: int, batched: set[str], arrays: Arrays, wanted: tuple[str, ...] = ()) -> None:
    """No one problem holds many."""


def by_size(size: int, results: Arrays, shapes: Shapes) -> Arrays:
    """Of one problem that was many, whose results have these shapes."""
    return {name: each.reshape(size, *shapes[name].shape) for name, each in results.items()}


def solve(
    operation: Operation,
    arrays: Arrays,
    merge: Merge = never,
    split: Split = by_size,
    alone: One | None = None,
) -> Arrays:
    """The operation's results, by `alone`, which is its own `run` if none is given.

    Under vmap it is one problem, whose arrays `merge` makes of many, where the batched ones have
    that size in front; if it makes none, it is one `run` after the other.
    """
    shapes = operation.shapes(arrays)  # now, since JAX keeps the rule, and these may be a trace's

    def rule(size: int, flags: list[dict[str, bool]], many: Arrays) -> tuple[Arrays, Any]:
        batched = {name for name, flag in flags[0].items() if flag}
        merged = merge(size, batched, many)
        if merged is None:
            axes = {name: 0 if name in batched else None for name in many}
            found = jax.vmap(operation.run, in_axes=(axes,), axis_size=size)(many)
        else:
            found = split(size, solve(operation, merged, merge, split, alone), shapes)
        return found, dict.fromkeys(found, True)

    call = jax.custom_batching.custom_vmap(alone or operation.run)
    call.def_vmap(rule)
    return call(arrays)  # type: ignore[no-any-return]


def repeated(size: int, batched: set[str], arrays: Arrays, names: set[str]) -> Arrays:
    """The arrays, with that size in front of these, too."""
    return {
        name: jnp.broadcast_to(each, (size, *each.shape))
        if name in names and name not in batched
        else each
        for name, each in arrays.items()
    }


def as_sets(
    size: int, batched: set[str], arrays: Arrays, wanted: tuple[str, ...] = ()
) -> Arrays | None:
    """Many problems of pairs by index as the sets of one. Their lists of boxes are put one after
    the other; one that all share stays as it is, unless its gradient is wanted."""
    if not {"pred_index", "target_index"} & arrays.keys():
        return None
    lists = {name for name in ("pred", "target") if f"{name}_index" in arrays}
    shared = lists - batched - set(wanted)
    arrays = repeated(size, batched, arrays, set(arrays) - shared)
    for name in lists - shared:
        rows = prod(arrays[name].shape[1:-1])
        index = arrays[f"{name}_index"]
        if size * rows > jnp.iinfo(index.dtype).max:
            return None
        first = rows * jnp.arange(size, dtype=index.dtype).reshape(-1, *[1] * (index.ndim - 1))
        is_row = (index >= 0) & (index < rows)
        arrays[f"{name}_index"] = jnp.where(is_row, index + first, -1)
        arrays[name] = arrays[name].reshape(-1, arrays[name].shape[-1])
    (index, *_) = (arrays[f"{name}_index"] for name in lists)
    by_set = index.shape[:-1]  # the size, and a problem's own sets
    if "normalizer" in arrays and arrays["normalizer"].ndim < len(by_set):  # one for all own sets
        arrays["normalizer"] = jnp.broadcast_to(arrays["normalizer"][:, None], by_set)
    return {
        name: each if name in lists else each.reshape(prod(by_set), *each.shape[len(by_set) :])
        for name, each in arrays.items()
    }


def as_layers(
    size: int, batched: set[str], arrays: Arrays, wanted: tuple[str, ...] = ()
) -> Arrays | None:
    """Many class losses of queries for the same labels as the layers of one."""
    shared = {"labels", "quality", "weight"}
    if batched & shared:
        return None
    arrays = repeated(size, batched, arrays, set(arrays) - shared)
    index = arrays["target_index"].shape
    *by_set, images, queries = index if len(index) > 2 else (size, 1, index[1])

    def merged(each: Array) -> Array:
        if each.ndim > len(by_set):
            return each.reshape(prod(by_set), images, queries, *each.shape[len(index) :])
        own = each[:, None] if each.ndim < len(by_set) else each  # a normalizer for all own layers
        return jnp.broadcast_to(own, by_set).reshape(-1)

    return {name: each if name in shared else merged(each) for name, each in arrays.items()}
