# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Linear assignment of many matrices at once."""

from typing import NamedTuple

import torch
from torch import Tensor

from .arguments import beside, call, check_tensors, exportable, members_of

_ASSIGN = torch.ops.boxloss.linear_sum_assignment.default


@exportable
class Assignment(NamedTuple):
    """What `linear_sum_assignment` returns: int64, on the cost's device, -1 for none."""

    column_of_row: Tensor
    row_of_column: Tensor


def linear_sum_assignment(
    cost: Tensor,
    *,
    lengths: Tensor | None = None,
    maximize: bool = False,
    cost_limit: float | None = None,
) -> Assignment:
    """For each matrix the pairs of rows and columns of least total cost, min(N, M) of them.

    It is SciPy's linear_sum_assignment, index by index and ties included, wherever that has an
    answer (D. Crouse, On implementing 2D rectangular assignment algorithms, 2016).

    Costs that are not finite, and where it is solved, are as for `hungarian_match`: +inf forbids a
    pair, so that an infeasible matrix has fewer pairs, which is no error.

    Args:
        cost: (N, M), or (B, N, M) for B matrices, of any strides and any of the dtypes float64,
            float32, float16, bfloat16, uint8, int16, int32 and int64. Sums are in float64, so that
            integers are exact up to 2^53. It gets no gradient.
        lengths: (2) or (B, 2), int32 or int64: how many rows and columns of each matrix are in use,
            the first ones. Others are not read, and have no pair. On cost's device or on the CPU.
        maximize: the pairs of greatest total cost, as if cost were negated: then -inf forbids.
        cost_limit: only costs up to it make pairs, and what has no pair costs half of it: the least
            is the sum of the pairs' costs, and of cost_limit / 2 for each row and each column
            without one, as in lap.lapjv(cost, extend_cost=True, cost_limit=cost_limit). It is
            compared in cost's dtype, as torch does. A cost that is not finite makes no pair then.
            In cost's unit. +inf is no limit; do not take a huge number for it, beside which the
            sums lose what costs differ by.

    Returns:
        column_of_row, (N) or (B, N), and row_of_column, (M) or (B, M): of each its partner, or -1.

    Raises:
        ValueError: a bad shape; a finite cost_limit with maximize, or one that is NaN or -inf; on
            the CPU, lengths outside of the matrix (elsewhere such a matrix has no pair). TypeError:
            a bad dtype, or no tensor. RuntimeError: lengths on another device; a transform of
            torch.func.
    """
    check_tensors("linear_sum_assignment", cost=cost)
    lengths = beside(lengths, cost)
    result = call("linear_sum_assignment", _ASSIGN, (cost, lengths, maximize, cost_limit))
    return members_of(Assignment, result)  # type: ignore[no-any-return]
