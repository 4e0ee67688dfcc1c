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
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor

optimize = pytest.importorskip("scipy.optimize", reason="SciPy is not installed")

QUERIES = 6
OFFSETS = [0, 2, 2, 9]  # fewer ground-truth boxes than queries, none, and more
DTYPES = (
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16),
    *(torch.uint8, torch.int16, torch.int32, torch.int64),
)


def random_cost(*shape: int, steps: int | None = None, seed: int = 0) -> Tensor:
    """float64, whole numbers with steps; those up to 200 are exact in every dtype."""
    numbers = torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return numbers if steps is None else (steps * numbers).round()


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


def check(cost: Tensor, offsets: list[int], groups: int = 1) -> None:
    results = hungarian_match(cost, torch.tensor(offsets), groups=groups)
    assert_same(results, expected(cost, offsets, groups))


@st.composite
def sizes(draw: st.DrawFn) -> tuple[int | None, int, int, list[int]]:
    groups, per_group = draw(st.integers(1, 3)), draw(st.integers(0, 4))
    offsets = sorted(draw(st.lists(st.integers(0, 12), min_size=1, max_size=5)))
    return draw(st.none() | st.integers(1, 3)), groups, groups * per_group, offsets


@given(sizes=sizes(), seed=st.integers(0, 99), steps=st.sampled_from([2, 1000]))
@example((None, 1, QUERIES, OFFSETS), 0, 1000)
@example((3, 2, QUERIES, OFFSETS), 0, 2)  # several assignments cost the same
@example((2, 1, 4, [0, 0, 0, 3, 3]), 0, 1000)  # the first and last images have no boxes
@example((2, 2, 4, [0, 3, 12]), 0, 1000)  # more boxes than queries
@example((2, 1, 4, [1, 3, 5]), 0, 1000)  # the first column is nobody's
@example((1, 1, 4, [0, 0, 0]), 0, 1000)  # no boxes at all
@example((None, 1, 4, [0]), 0, 1000)  # no images
@example((2, 1, 0, [0, 2, 5]), 0, 1000)  # no queries
def test_is_scipys(sizes: tuple[int | None, int, int, list[int]], seed: int, steps: int) -> None:
    layers, groups, queries, offsets = sizes
    shape = (queries, 12) if layers is None else (layers, queries, 12)
    cost = random_cost(*shape, steps=steps, seed=seed)
    check(cost.float(), offsets, groups)
    check(cost, offsets, groups)


# --- Matrices alone ---


def scipys_of_matrices(
    cost: Tensor, lengths: Tensor | None = None, maximize: bool = False
) -> Assignment:
    matrices = (cost if cost.dim() == 3 else cost[None]).double().cpu().numpy()
    column_of_row = torch.full(matrices.shape[:2], -1).numpy()
    row_of_column = torch.full(matrices.shape[::2], -1).numpy()
    full = torch.tensor(matrices.shape[1:]).expand(len(matrices), 2)
    sizes = (full if lengths is None else lengths.cpu().reshape(-1, 2)).tolist()
    for b, (rows, columns) in enumerate(sizes):
        i, j = optimize.linear_sum_assignment(matrices[b, :rows, :columns], maximize)
        column_of_row[b, i], row_of_column[b, j] = j, i
    results = torch.from_numpy(column_of_row), torch.from_numpy(row_of_column)
    return Assignment(*(results if cost.dim() == 3 else (each[0] for each in results)))


def check_matrices(cost: Tensor, lengths: Tensor | None = None, maximize: bool = False) -> None:
    result = linear_sum_assignment(cost, lengths=lengths, maximize=maximize)
    assert_same(result, scipys_of_matrices(cost, lengths, maximize))


@st.composite
def problems(draw: st.DrawFn) -> tuple[Tensor, Tensor | None]:
    rows, columns = draw(st.integers(0, 9)), draw(st.integers(0, 9))
    layers = draw(st.none() | st.integers(0, 3))
    shape = (rows, columns) if layers is None else (layers, rows, columns)
    steps = draw(st.sampled_from([0, 3, 200, None]))
    cost = random_cost(*shape, steps=steps, seed=draw(st.integers(0, 99)))
    if not draw(st.booleans()):
        return cost, None
    most = torch.tensor([rows, columns]) + 1
    of_matrix = random_cost(*shape[:-2], 2, seed=draw(st.integers(0, 99)))
    return cost, (of_matrix * most).to(draw(st.sampled_from([torch.int32, torch.int64])))


@given(given=problems(), dtype=st.sampled_from(DTYPES), maximize=st.booleans())
@example((torch.ones(0, 3, 4), None), torch.float32, False)
@example((torch.ones(2, 0, 4), torch.tensor([[0, 4], [0, 0]])), torch.float32, False)
@example((torch.ones(3, 0), torch.tensor([3, 0])), torch.float64, True)
@example((torch.ones(2, 3, 4), torch.tensor([[0, 4], [3, 0]])), torch.float32, False)
def test_matrices_are_scipys(
    given: tuple[Tensor, Tensor | None], dtype: torch.dtype, maximize: bool
) -> None:
    cost, lengths = given
    check_matrices(cost.to(dtype), lengths, maximize)


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


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_a_limit_is_compared_as_torch_does(
    implementation: Implementation, dtype: torch.dtype
) -> None:
    for limit in (0.1, 0.3, 0.5, 0.7, 0.8, 0.9):
        cost = torch.full((1, 1), limit, dtype=dtype, device=implementation.device)
        for each in (cost, cost * (1 + torch.finfo(dtype).eps)):
            pair = linear_sum_assignment(each, cost_limit=limit).column_of_row
            assert pair.item() == (0 if (each <= limit).item() else -1)


def test_integers_are_exact_up_to_2_to_53(implementation: Implementation) -> None:
    half = 2**52
    cost = torch.tensor([[half, half - 1], [half - 1, half - 3]], device=implementation.device)
    assert linear_sum_assignment(cost).column_of_row.tolist() == [0, 1]
    assert linear_sum_assignment(cost, maximize=True).column_of_row.tolist() == [1, 0]
    row = 2**53 - torch.tensor([[1, 0, 3, 2]], device=implementation.device)
    assert linear_sum_assignment(row).column_of_row.tolist() == [2]
    assert linear_sum_assignment(row, maximize=True).column_of_row.tolist() == [1]
