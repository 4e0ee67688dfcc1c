# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""vmap: a batch of calls as one, where the library has a problem that holds it."""

from collections.abc import Callable
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

Arrays = dict[str, Array]
One = Callable[[Arrays], Arrays]
Many = Callable[[int, set[str], Arrays], Arrays | None]


def batchable(one: One, many: Many, alone: One | None = None) -> One:
    """`alone(arrays)`, by default `one`; under vmap `many(size, batched, arrays)`, where the
    batched ones have that size in front. Where that is None it is one `one` after the other."""

    def rule(size: int, flags: list[dict[str, bool]], arrays: Arrays) -> tuple[Arrays, Any]:
        batched = {name for name, flag in flags[0].items() if flag}
        given = many(size, batched, arrays)
        if given is None:
            axes = {name: 0 if name in batched else None for name in arrays}
            given = jax.vmap(one, in_axes=(axes,), axis_size=size)(arrays)
        return given, dict.fromkeys(given, True)

    call = jax.custom_batching.custom_vmap(alone or one)
    call.def_vmap(rule)
    return call  # type: ignore[no-any-return]


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


def as_layers(size: int, batched: set[str], arrays: Arrays) -> Arrays | None:
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
