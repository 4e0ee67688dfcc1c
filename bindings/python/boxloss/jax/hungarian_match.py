# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Assignment: from a matching cost to the pairs of least total cost, as indices for the losses."""

from functools import partial
from math import prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from ._library import exportable, index_dtype, run
from .arguments import as_arrays, as_options
from .batching import batchable
from .partitioning import in_auto_axes


@exportable
class MatchResult(NamedTuple):
    """What `hungarian_match` returns: int32, or int64 with jax_enable_x64; -1 for none."""

    pred_index: Array
    target_index: Array
    target_of_query: Array


def hungarian_match(cost: ArrayLike, offsets: ArrayLike, *, groups: int = 1) -> MatchResult:
    """`boxloss.torch.hungarian_match` for JAX: the pairs of least total cost.

    See docs/matcher.md. It is solved on the cost's device, by a custom call like the losses: no
    callback. cost and offsets (int32 or int64) are arrays of JAX or NumPy, groups is static. vmap
    of costs for the same offsets is one call, as of more layers.

    Returns:
        What torch's gives, int32, or int64 with jax_enable_x64. If an offset decreases or lies
        outside [0, T], everything is -1, since values are not known while JAX traces. Nothing has a
        gradient.
    """
    arrays = as_arrays("hungarian_match", cost=cost, offsets=offsets)
    arrays = {name: jax.lax.stop_gradient(each) for name, each in arrays.items()}
    options = as_options("hungarian_match", {"groups": groups}, {"groups": 1})
    options["index"] = index_dtype()
    given = in_auto_axes(partial(_solved, options), arrays)
    return MatchResult(*(given[name] for name in MatchResult._fields))


def _solved(options: dict[str, Any], arrays: dict[str, Array]) -> dict[str, Array]:
    """By name; many costs are the layers of one."""

    def many(size: int, batched: set[str], arrays: dict[str, Array]) -> dict[str, Array] | None:
        if "offsets" in batched:
            return None
        cost = arrays["cost"]
        merged = arrays | {"cost": cost.reshape(prod(cost.shape[:-2]), *cost.shape[-2:])}
        given = _solved(options, merged)
        given = {
            name: each.reshape(*cost.shape[:-2], *each.shape[1:]) for name, each in given.items()
        }
        # Rows are numbered through all layers, here those of each.
        rows = prod((*cost.shape[1:-2], *given["target_of_query"].shape[-2:]))
        before = rows * jnp.arange(size).reshape(-1, *[1] * (cost.ndim - 2))
        index = given["pred_index"]
        given["pred_index"] = jnp.where(index < 0, -1, index - before.astype(index.dtype))
        return given

    alone = partial(run, "boxloss_jax_assign", "hungarian_match", options=options)
    return batchable(alone, many)(arrays)
