# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Linear assignment by the names and signatures of torch-linear-assignment and of SciPy."""

import torch
from torch import Tensor

from ..arguments import check_tensors
from ..linear_sum_assignment import linear_sum_assignment as assign


def _checked(function: str, name: str, given: Tensor, shape: str) -> Tensor:
    """Of as many dimensions as the words for its shape have; of bool as numbers."""
    check_tensors(function, **{name: given})
    if given.is_meta and function == "linear_sum_assignment":
        raise ValueError(f"{function}: {name} is on meta; its errors need data")
    if given.dim() != shape.count(",") + 1:
        raise ValueError(f"{function}: {name} has shape {list(given.shape)}; it must be {shape}")
    return given.to(torch.uint8) if given.dtype == torch.bool else given


def batch_linear_assignment(cost: Tensor) -> Tensor:
    """The assignment of least total cost of each matrix, in place of torch-linear-assignment's.

    Results are theirs, and those of torch-hungarian's function of this name; ties are decided as
    SciPy does. A matrix that +inf makes infeasible is an error there. Here nobody waits to see it:
    its workers without a task have -1. NaN and -inf are no errors, either, as in
    boxloss.torch.linear_sum_assignment. Theirs rounds costs that are not float64 to float32;
    here integers are exact up to 2^53.

    Args:
        cost: (B, W, T), of B matrices of W workers and T tasks, of any strides and any of the
            dtypes of boxloss.torch.linear_sum_assignment, or bool.

    Returns:
        (B, W), int64, on the cost's device: of each worker its task, or -1.

    Raises:
        ValueError: a cost that has not three dimensions. TypeError: a bad dtype, or no tensor.
    """
    return assign(_checked("batch_linear_assignment", "cost", cost, "(B, W, T)")).column_of_row


def assignment_to_indices(assignment: Tensor) -> tuple[Tensor, Tensor]:
    """Pairs as SciPy has them, in place of torch-linear-assignment's. It waits once for the device.

    Args:
        assignment: (B, W), as from batch_linear_assignment: of each worker its task, or less than 0
            for none.

    Returns:
        row_ind, int64, and col_ind, of assignment's dtype, both (B, K): each matrix' K workers that
        have a task, in order, and their tasks. (0, 0) without matrices.

    Raises:
        ValueError: another number of dimensions; matrices of different numbers of pairs. TypeError:
            no tensor.
    """
    _checked("assignment_to_indices", "assignment", assignment, "(B, W)")
    if len(assignment) == 0:
        return assignment.new_empty((0, 0), dtype=torch.int64), assignment.new_empty((0, 0))
    is_free = assignment < 0
    least, most = torch.stack((~is_free).sum(1).aminmax()).tolist()
    if least != most:
        raise ValueError(
            f"assignment_to_indices: assignment has from {least} to {most} pairs in a matrix; each "
            "matrix must have as many as the others"
        )
    row_ind = is_free.byte().sort(stable=True).indices[:, :most]
    return row_ind, assignment.gather(1, row_ind)


def linear_sum_assignment(cost_matrix: Tensor, maximize: bool = False) -> tuple[Tensor, Tensor]:
    """The assignment of one matrix, with the signature, results and errors of SciPy's.

    It waits once for the device, to see errors; boxloss.torch.linear_sum_assignment does not, and
    takes many matrices.

    Args:
        cost_matrix: (N, M), of any strides and any of the dtypes of
            boxloss.torch.linear_sum_assignment, or bool.
        maximize: the pairs of greatest total cost.

    Returns:
        row_ind, in order, and col_ind, both (min(N, M)), int64, on the cost's device.

    Raises:
        ValueError: another number of dimensions; "matrix contains invalid numeric entries" of NaN
            and -inf, with maximize +inf; "cost matrix is infeasible" where the other infinity
            leaves fewer pairs. TypeError: a bad dtype, or no tensor.
    """
    cost = _checked("linear_sum_assignment", "cost_matrix", cost_matrix, "(N, M)").detach()
    column_of_row, row_of_column = assign(cost, maximize=maximize)
    is_bad = cost.isnan() | (cost.isposinf() if maximize else cost.isneginf())
    is_wide = cost.shape[0] <= cost.shape[1]
    partners = column_of_row if is_wide else row_of_column  # of the fewer, all of which have one
    has_bad, is_infeasible = torch.stack((is_bad.any(), (partners < 0).any())).tolist()
    if has_bad:
        raise ValueError("matrix contains invalid numeric entries")
    if is_infeasible:
        raise ValueError("cost matrix is infeasible")
    if is_wide:
        return torch.arange(len(partners), device=cost.device), partners
    row_ind, col_ind = partners.sort()
    return row_ind, col_ind
