# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Linear assignment of many matrices at once."""

from math import prod
from typing import NamedTuple

from jax import Array
from jax.typing import ArrayLike

from ._library import Arrays, exportable
from .batching import repeated
from .matches import match


@exportable
class Assignment(NamedTuple):
    """What `linear_sum_assignment` returns: -1 for none."""

    column_of_row: Array
    row_of_column: Array


def linear_sum_assignment(
    cost: ArrayLike,
    *,
    lengths: ArrayLike | None = None,
    maximize: bool = False,
    cost_limit: float | None = None,
) -> Assignment:
    """`boxloss.torch.linear_sum_assignment` for JAX. See docs/jax.md and docs/assignment.md.

    It is solved on the cost's device, by a custom call like the losses: no callback. vmap of costs,
    of lengths or of both is one call, as of more matrices.
    """
    return match("linear_sum_assignment", Assignment, linear_sum_assignment, locals(), _merged)


def _merged(size: int, batched: set[str], arrays: Arrays) -> Arrays:
    """Many calls' matrices are those of one."""
    arrays = repeated(size, batched, arrays, set(arrays))
    by_call = arrays["cost"].shape[:-2]  # the size, and a call's own matrices
    return {
        name: each.reshape(prod(by_call), *each.shape[len(by_call) :])
        for name, each in arrays.items()
    }
