# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Assignment: from a matching cost to the pairs of least total cost, as indices for the losses."""

from typing import NamedTuple

import torch
from torch import Tensor

from .arguments import beside, call, check_tensors, exportable, members_of

_ASSIGN = torch.ops.boxloss.assign.default


@exportable
class MatchResult(NamedTuple):
    """What `hungarian_match` returns: int64, on the cost's device, -1 for none."""

    pred_index: Tensor
    target_index: Tensor
    target_of_query: Tensor


def hungarian_match(cost: Tensor, offsets: Tensor, *, groups: int = 1) -> MatchResult:
    """The pairs of least total cost, for box_losses(..., pred_index=..., target_index=...).

    Each image's queries are assigned to its own columns, in each layer and group by itself, as many
    as there are of the fewer. It is SciPy's linear_sum_assignment, index by index and ties
    included, wherever that has an answer.

    Costs that are not finite are taken last: their number is minimized first, then the sum of the
    others. What is left with +inf is no pair, so that +inf forbids one; what is left with NaN or
    -inf is one, so that the loss shows it.

    It is solved on the cost's device, without a synchronization, and can be captured in a CUDA
    graph there. Where the implementation in use does not serve it, or there is none, the cost is
    copied to the host, solved there, and the result copied back: one synchronization.
    use_implementation("aten") changes nothing, since torch has no operator for it.

    Args:
        cost: (queries, T) or (layers, queries, T), as from matching_cost, of any of the dtypes
            float64, float32, float16, bfloat16, uint8, int16, int32 and int64. Sums are in float64,
            so that integers are exact up to 2^53. It gets no gradient.
        offsets: (images + 1), int32 or int64, on cost's device or on the CPU: image b owns columns
            offsets[b] to offsets[b + 1]. Columns of no image are in no pair. If one decreases or
            lies outside [0, T], that is an error where cost is on the CPU; elsewhere everything is
            -1, since the host does not wait to see them.
        groups: the number of groups of consecutive queries that an image's are split into; each
            group is assigned separately, so that a ground-truth box has up to `groups` queries.

    Returns:
        pred_index and target_index, (layers, groups * T): for each column, in group after group,
        its query, as a row of pred (layers, images, queries, 4), and its own number, which is its
        row of target; -1 where a column has no query. They are indices for the losses.
        target_of_query, (layers, images, queries): each query's row of target, or -1; for class
        losses. Without layers each lacks its first dimension.

    Raises:
        ValueError: a bad shape; groups that do not divide the queries; on the CPU, offsets that
            decrease or lie outside [0, T]. TypeError: a bad dtype, or no tensor. RuntimeError:
            offsets on another device; a transform of torch.func.
    """
    check_tensors("hungarian_match", cost=cost, offsets=offsets)
    offsets = beside(offsets, cost)
    result = call("hungarian_match", _ASSIGN, (cost, offsets, groups))
    return members_of(MatchResult, result)  # type: ignore[no-any-return]
