# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Linear assignment beside torch-linear-assignment's functions, and a limit beside lap's."""

import lap
import pytest
import torch
import torch_linear_assignment as theirs
from boxloss.torch import linear_sum_assignment
from boxloss.torch.compat import assignment_to_indices, batch_linear_assignment
from surroundings import DEVICES
from torch import Tensor

SHAPES = [(9, 5, 5), (9, 3, 8), (9, 8, 3), (1, 1, 4), (0, 2, 3), (2, 3, 0)]


def random_cost(*shape: int, steps: int | None, dtype: torch.dtype = torch.float64) -> Tensor:
    """Of few steps: several assignments cost the same."""
    random = torch.Generator().manual_seed(sum(shape))
    numbers = torch.rand(shape, generator=random, dtype=torch.float64)
    return (numbers if steps is None else (steps * numbers).round()).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.int64])
@pytest.mark.parametrize("steps", [2, 300])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_torch_linear_assignments(
    shape: tuple[int, int, int], steps: int, dtype: torch.dtype
) -> None:
    """On the CPU, where theirs is SciPy: elsewhere they may decide ties otherwise."""
    cost = random_cost(*shape, steps=steps, dtype=dtype)
    ours, other = batch_linear_assignment(cost), theirs.batch_linear_assignment(cost)
    assert (ours.dtype, ours.shape) == (other.dtype, other.shape)
    assert torch.equal(ours, other)
    indices = assignment_to_indices(ours), theirs.assignment_to_indices(other)
    for a, b in zip(*indices, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert torch.equal(a, b)


@pytest.mark.parametrize("limit", [0.25, 1.0, 40.0, 1000.0])
@pytest.mark.parametrize("shape", [(5, 5), (3, 8), (8, 3), (1, 4), (30, 40)], ids=str)
@pytest.mark.parametrize("device", DEVICES)
def test_a_limit_is_laps(device: str, shape: tuple[int, int], limit: float) -> None:
    """By sums, which are exact: lap decides ties otherwise."""
    for scale in (1, 100):
        cost = random_cost(9, *shape, steps=64) / 64 * scale
        columns = linear_sum_assignment(cost.to(device), cost_limit=limit).column_of_row.cpu()
        for matrix, column_of_row in zip(cost, columns, strict=True):
            wanted = lap.lapjv(matrix.numpy(), extend_cost=True, cost_limit=limit)[1]
            sums = [
                limited_sum(matrix, x, limit) for x in (column_of_row, torch.from_numpy(wanted))
            ]
            assert sums[0] == sums[1]


def limited_sum(cost: Tensor, column_of_row: Tensor, limit: float) -> float:
    rows = (column_of_row >= 0).nonzero()[:, 0]
    pairs = cost[rows, column_of_row[rows].long()]
    assert (pairs <= limit).all()
    return float(pairs.sum()) + limit / 2 * (sum(cost.shape) - 2 * len(pairs))
