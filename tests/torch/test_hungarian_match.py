# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""hungarian_match and linear_sum_assignment against SciPy, asked for each matrix by itself.

All choices of small ones, limits and what is not finite are for tests/core, layouts and sizes for
tests/conformance. What they are to torch: test_matchers.py; what they refuse: test_arguments.py.
"""

from itertools import pairwise

import pytest
import torch
from boxloss.torch import Assignment, MatchResult, hungarian_match, linear_sum_assignment
from devices import Implementation
from problems import TARGETS
from torch import Tensor

optimize = pytest.importorskip("scipy.optimize", reason="SciPy is not installed")

QUERIES = 6
OFFSETS = [0, 2, 2, 9]  # fewer ground-truth boxes than queries, none, and more


def random_cost(*shape: int, steps: int) -> Tensor:
    """Whole numbers in float64; those up to 200 are exact in every dtype."""
    numbers = torch.rand(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return (steps * numbers).round()


def scipys(block: Tensor) -> list[tuple[int, int]]:
    return list(zip(*optimize.linear_sum_assignment(block.numpy()), strict=True))


def expected(cost: Tensor, offsets: list[int], groups: int = 1) -> MatchResult:
    """What it returns, from each block's pairs of query and column."""
    layers = (cost if cost.dim() == 3 else cost[None]).detach().cpu()
    queries, columns = layers.shape[1:]
    images, size = len(offsets) - 1, queries // groups
    pred_index = torch.full((len(layers), groups, columns), -1)
    target_of_query = torch.full((len(layers), images, queries), -1)
    for k, layer in enumerate(layers):
        for b, (first, last) in enumerate(pairwise(offsets)):
            for group in range(groups):
                start = group * size
                for query, column in scipys(layer[start : start + size, first:last]):
                    row = (k * images + b) * queries + start + query
                    pred_index[k, group, first + column] = row
                    target_of_query[k, b, start + query] = first + column
    target_index = torch.where(pred_index < 0, -1, torch.arange(columns))
    results = pred_index.flatten(1), target_index.flatten(1), target_of_query
    return MatchResult(*(results if cost.dim() == 3 else (each[0] for each in results)))


def assert_same(results: MatchResult | Assignment, wanted: MatchResult | Assignment) -> None:
    assert type(results) is type(wanted)
    for result, each in zip(results, wanted, strict=True):
        assert result.dtype == torch.int64
        assert torch.equal(result.cpu(), each)


@pytest.mark.parametrize(
    ("layers", "groups", "queries", "offsets", "steps"),
    [
        (None, 1, QUERIES, OFFSETS, 1000),
        (3, 2, QUERIES, OFFSETS, 2),  # several assignments cost the same
        (2, 1, 4, [0, 0, 0, 3, 3], 1000),  # the first and last images have no boxes
        (2, 2, 4, [0, 3, 12], 1000),  # more boxes than queries
        (2, 1, 4, [1, 3, 5], 1000),  # the first column is nobody's
        (1, 1, 4, [0, 0, 0], 1000),  # no boxes at all
        (None, 1, 4, [0], 1000),  # no images
        (2, 1, 0, [0, 2, 5], 1000),  # no queries
    ],
)
def test_is_scipys(
    layers: int | None, groups: int, queries: int, offsets: list[int], steps: int
) -> None:
    shape = (queries, 12) if layers is None else (layers, queries, 12)
    cost = random_cost(*shape, steps=steps)
    for each in (cost, cost.float()):
        results = hungarian_match(each, torch.tensor(offsets), groups=groups)
        assert_same(results, expected(each, offsets, groups))


# --- Matrices alone ---


@pytest.mark.parametrize("steps", [3, 200])
@pytest.mark.parametrize("dtype", TARGETS)
@pytest.mark.parametrize("maximize", [False, True])
def test_matrices_are_scipys(dtype: torch.dtype, maximize: bool, steps: int) -> None:
    cost = random_cost(3, 6, 9, steps=steps).to(dtype)
    lengths = torch.tensor([[6, 9], [5, 2], [0, 4]])
    of_batch = linear_sum_assignment(cost, lengths=lengths.int(), maximize=maximize)
    for i, (rows, columns) in enumerate(lengths.tolist()):
        used = cost[i, :rows, :columns].double()
        row_index, column_index = optimize.linear_sum_assignment(used.numpy(), maximize)
        wanted = Assignment(torch.full((6,), -1), torch.full((9,), -1))
        wanted.column_of_row[row_index] = torch.from_numpy(column_index)
        wanted.row_of_column[column_index] = torch.from_numpy(row_index)
        assert_same(Assignment(*(each[i] for each in of_batch)), wanted)
        of_one = linear_sum_assignment(cost[i], lengths=lengths[i], maximize=maximize)
        assert_same(of_one, wanted)


@pytest.mark.parametrize("lengths", [[-1, 2], [2, 4], [4, 2], [2, 2**40]], ids=str)
def test_lengths_outside_of_the_matrix_give_nothing_on_a_gpu(
    gpu: torch.device, lengths: list[int]
) -> None:
    """Where nobody looks at them; the CPU's errors are in test_arguments.py."""
    given = torch.tensor([[3, 3], lengths])
    for each in (given, given.to(gpu)):
        result = linear_sum_assignment(-torch.eye(3, device=gpu).expand(2, 3, 3), lengths=each)
        for rows in result:
            assert rows.tolist() == [[0, 1, 2], [-1, -1, -1]]


def test_integers_are_exact_up_to_2_to_53(implementation: Implementation) -> None:
    half = 2**52
    cost = torch.tensor([[half, half - 1], [half - 1, half - 3]], device=implementation.device)
    assert linear_sum_assignment(cost).column_of_row.tolist() == [0, 1]
    assert linear_sum_assignment(cost, maximize=True).column_of_row.tolist() == [1, 0]
    row = 2**53 - torch.tensor([[1, 0, 3, 2]], device=implementation.device)
    assert linear_sum_assignment(row).column_of_row.tolist() == [2]
    assert linear_sum_assignment(row, maximize=True).column_of_row.tolist() == [1]
