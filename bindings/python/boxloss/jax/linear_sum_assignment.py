# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Linear assignment of many matrices at once."""

from functools import partial
from math import prod
from typing import Any, NamedTuple

import jax
from jax import Array
from jax.typing import ArrayLike

from .._options import options_of
from ._library import exportable, index_dtype, run
from .arguments import as_arrays, as_options
from .batching import batchable, repeated
from .partitioning import in_auto_axes


@exportable
class Assignment(NamedTuple):
    """What `linear_sum_assignment` returns: int32, or int64 with jax_enable_x64; -1 for none."""

    column_of_row: Array
    row_of_column: Array


def linear_sum_assignment(
    cost: ArrayLike,
    *,
    lengths: ArrayLike | None = None,
    maximize: bool = False,
    cost_limit: float | None = None,
) -> Assignment:
    """For each matrix the pairs of rows and columns of least total cost, min(N, M) of them.

    It is SciPy's linear_sum_assignment, index by index and ties included, wherever that has an
    answer (D. Crouse, On implementing 2D rectangular assignment algorithms, 2016).

    Costs that are not finite are taken last: their number is minimized first, then the sum of the
    others. What is left with +inf is no pair, so that +inf forbids one and an infeasible matrix has
    fewer pairs, which is no error; what is left with NaN or -inf is one.

    It is solved on the cost's device, by a custom call like the losses: no callback.

    Args:
        cost: (N, M), or (B, N, M) for B matrices, of any of the dtypes float64, float32, float16,
            bfloat16, uint8, int16, int32 and int64. Sums are in float64, so that integers are exact
            up to 2^53. It gets no gradient.
        lengths: (2) or (B, 2), int32 or int64: how many rows and columns of each matrix are in use,
            the first ones. Others are not read, and have no pair. Where one lies outside of the
            matrix, that matrix has no pair, since values are not known while JAX traces.
        maximize: the pairs of greatest total cost, as if cost were negated: then -inf forbids.
            Static, as the following.
        cost_limit: only costs up to it make pairs, and what has no pair costs half of it: the least
            is the sum of the pairs' costs, and of cost_limit / 2 for each row and each column
            without one, as in lap.lapjv(cost, extend_cost=True, cost_limit=cost_limit). A cost that
            is not finite makes no pair then. In cost's unit. +inf is no limit; do
            not take a huge number for it, beside which the sums lose what costs differ by.

    Returns:
        column_of_row, (N) or (B, N), and row_of_column, (M) or (B, M): of each its partner, or -1.

    Raises:
        ValueError: a bad shape; a finite cost_limit with maximize, or one that is NaN or -inf.
            TypeError: a bad dtype, no array, maximize that is no bool, or cost_limit that is no
            number.
    """
    arrays = as_arrays("linear_sum_assignment", cost=cost, lengths=lengths)
    arrays = {name: jax.lax.stop_gradient(each) for name, each in arrays.items()}
    given = {"maximize": maximize, "cost_limit": cost_limit}
    options = as_options("linear_sum_assignment", given, _DEFAULTS)
    options["index"] = index_dtype()
    found = in_auto_axes(partial(_solved, options), arrays)
    return Assignment(*(found[name] for name in Assignment._fields))


_DEFAULTS = {name: option.default for name, option in options_of(linear_sum_assignment).items()}


def _solved(options: dict[str, Any], arrays: dict[str, Array]) -> dict[str, Array]:
    """By name; many calls' matrices are those of one."""

    def many(size: int, batched: set[str], arrays: dict[str, Array]) -> dict[str, Array]:
        arrays = repeated(size, batched, arrays, set(arrays))
        by_call = arrays["cost"].shape[:-2]  # the size, and a call's own matrices
        count = prod(by_call)
        merged = {
            name: each.reshape(count, *each.shape[len(by_call) :]) for name, each in arrays.items()
        }
        found = _solved(options, merged)
        return {name: each.reshape(*by_call, *each.shape[1:]) for name, each in found.items()}

    alone = partial(
        run, "boxloss_jax_linear_sum_assignment", "linear_sum_assignment", options=options
    )
    return batchable(alone, many)(arrays)
