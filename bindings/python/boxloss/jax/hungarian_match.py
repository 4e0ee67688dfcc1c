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
    """The pairs of least total cost, for box_losses(..., pred_index=..., target_index=...).

    Each image's queries are assigned to its own columns, in each layer and group by itself, as many
    as there are of the fewer. It is SciPy's linear_sum_assignment, index by index and ties
    included, wherever that has an answer.

    Costs that are not finite are taken last: their number is minimized first, then the sum of the
    others. What is left with +inf is no pair, so that +inf forbids one; what is left with NaN or
    -inf is one, so that the loss shows it.

    It is solved on the cost's device, by a custom call like the losses: no callback.

    Args:
        cost: (queries, T) or (layers, queries, T), as from matching_cost, of any of the dtypes
            float64, float32, float16, bfloat16, uint8, int16, int32 and int64. Sums are in float64,
            so that integers are exact up to 2^53. It gets no gradient.
        offsets: (images + 1), int32 or int64: image b owns columns offsets[b] to offsets[b + 1].
            Columns of no image are in no pair. If one decreases or lies outside [0, T], everything
            is -1, since values are not known while JAX traces.
        groups: the number of groups of consecutive queries that an image's are split into; each
            group is assigned separately, so that a ground-truth box has up to `groups` queries.
            Static.

    Returns:
        pred_index and target_index, (layers, groups * T): for each column, in group after group,
        its query, as a row of pred (layers, images, queries, 4), and its own number, which is its
        row of target; -1 where a column has no query. They are indices for the losses.
        target_of_query, (layers, images, queries): each query's row of target, or -1; for class
        losses. Without layers each lacks its first dimension.

    Raises:
        ValueError: a bad shape; groups that do not divide the queries. TypeError: a bad dtype, no
            array, or groups that is no integer.
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
