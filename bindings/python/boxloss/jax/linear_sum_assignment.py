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
    """`boxloss.torch.linear_sum_assignment` for JAX, with its arguments and errors.

    They are also in docs/assignment.md. It is solved on the cost's device, by a custom call like
    the losses: no callback. cost and lengths (int32 or int64) are arrays of JAX or NumPy; maximize
    and cost_limit are static. vmap of costs, of lengths or of both is one call, as of more
    matrices.

    Returns:
        What torch's gives, int32, or int64 with jax_enable_x64. Where a length lies outside of a
        matrix, that matrix has no pair, since values are not known while JAX traces. Nothing has a
        gradient.
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
