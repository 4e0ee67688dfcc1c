# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""linear_sum_assignment against SciPy, asked for each matrix by itself, and against all choices.

What it is to torch, and what it refuses: test_matchers.py, test_arguments.py.
"""

import math
from collections.abc import Callable, Iterator
from itertools import permutations, product

import pytest
import torch
from boxloss.torch import Assignment, hungarian_match, linear_sum_assignment
from devices import Implementation
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor

optimize = pytest.importorskip("scipy.optimize", reason="SciPy is not installed")

DTYPES = (
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16),
    *(torch.uint8, torch.int16, torch.int32, torch.int64),
)
SHAPES = [(7, 7), (4, 11), (11, 4), (1, 6), (6, 1)]
every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)
# Of numbers from 0 to 1, how many there are: ties in each, or in none.
STEPS = {"constant": 0, "few": 3, "many": 200}


def random_cost(*shape: int, steps: int | None = None, seed: int = 0) -> Tensor:
    """float64, whole numbers with steps; those up to 200 are exact in every dtype."""
    numbers = torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return numbers if steps is None else (steps * numbers).round()


def scipys(cost: Tensor, lengths: Tensor | None = None, maximize: bool = False) -> Assignment:
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


def assert_same(result: Assignment, wanted: Assignment) -> None:
    assert isinstance(result, Assignment)
    for each, other in zip(result, wanted, strict=True):
        assert each.dtype == torch.int64
        assert torch.equal(each.cpu(), other.cpu())


def check(cost: Tensor, lengths: Tensor | None = None, maximize: bool = False) -> None:
    result = linear_sum_assignment(cost, lengths=lengths, maximize=maximize)
    assert_same(result, scipys(cost, lengths, maximize))


def pairs_of(result: Assignment) -> list[tuple[int, int]]:
    """Of one matrix; both results must have the same ones."""
    by_row = [(i, j) for i, j in enumerate(result.column_of_row.tolist()) if j >= 0]
    by_column = [(i, j) for j, i in enumerate(result.row_of_column.tolist()) if i >= 0]
    assert by_row == sorted(by_column)
    return by_row


def test_by_hand(implementation: Implementation) -> None:
    cost = torch.tensor([[[4, 1, 3], [2, 0, 5]], [[1, 9, 9], [1, 9, 2]]])
    result = linear_sum_assignment(cost.to(implementation.device))
    assert result.column_of_row.tolist() == [[1, 0], [0, 2]]
    assert result.row_of_column.tolist() == [[1, 0, -1], [0, -1, 1]]
    assert all(each.device.type == implementation.device.type for each in result)


@st.composite
def problems(draw: st.DrawFn) -> tuple[Tensor, Tensor | None]:
    rows, columns = draw(st.integers(0, 9)), draw(st.integers(0, 9))
    layers = draw(st.none() | st.integers(0, 3))
    shape = (rows, columns) if layers is None else (layers, rows, columns)
    steps = draw(st.sampled_from([*STEPS.values(), None]))
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
def test_is_scipys(given: tuple[Tensor, Tensor | None], dtype: torch.dtype, maximize: bool) -> None:
    cost, lengths = given
    check(cost.to(dtype), lengths, maximize)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@every_dtype
def test_each_dtype(
    implementation: Implementation, dtype: torch.dtype, shape: tuple[int, int]
) -> None:
    for steps in STEPS.values():
        cost = random_cost(20, *shape, steps=steps).to(implementation.device, dtype)
        for maximize in (False, True):
            check(cost, None, maximize)
    if dtype.is_signed:
        check(-cost, None, False)


LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "transposed": lambda each: each.mT,
    "sliced": lambda each: each[::2, 1:, ::3],
    "last first": lambda each: each.permute(2, 0, 1),
    "one matrix": lambda each: each[:1].expand(5, -1, -1),
    "equal rows": lambda each: each[:, :1].expand(-1, 6, -1),
    "equal columns": lambda each: each[:, :, 2:3].expand(-1, -1, 4),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.int16], ids=str)
def test_strides(implementation: Implementation, dtype: torch.dtype, layout: str) -> None:
    cost = LAYOUTS[layout](random_cost(9, 8, 10, steps=200).to(implementation.device, dtype))
    check(cost)
    check(cost[0])


@pytest.mark.parametrize("steps", [3, None])
def test_many_small_matrices_in_one_call(implementation: Implementation, steps: int | None) -> None:
    count = 1_000 if implementation.name.endswith("reference") else 100_000
    sizes = (6 * random_cost(count, 2, seed=1)).long()  # from none to all five
    cost = random_cost(count, 5, 5, steps=steps).to(implementation.device)
    check(cost, sizes.to(implementation.device))


def test_what_is_not_in_use_is_not_read(implementation: Implementation) -> None:
    cost = random_cost(3, 4, 5).to(implementation.device)
    lengths = torch.tensor([[2, 5], [4, 3], [0, 5]], device=implementation.device)
    wanted = linear_sum_assignment(cost, lengths=lengths)
    cost[0, 2:], cost[1, :, 3:], cost[2] = math.nan, -math.inf, math.inf
    assert_same(linear_sum_assignment(cost, lengths=lengths), wanted)


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


def choices(rows: int, columns: int) -> Iterator[list[tuple[int, int]]]:
    """All ways to pair the fewer of them."""
    if rows <= columns:
        return (list(enumerate(each)) for each in permutations(range(columns), rows))
    return ([(i, j) for j, i in enumerate(each)] for each in permutations(range(rows), columns))


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("shape", [(2, 2), (3, 3), (2, 4), (4, 2)], ids=str)
def test_what_is_not_finite_is_taken_last(
    implementation: Implementation, shape: tuple[int, int], maximize: bool
) -> None:
    """Their number is the least, then the sum of the others; +inf is no pair, NaN and -inf are."""
    numbers = torch.tensor([1, 2, 5, math.inf, math.inf, math.nan, -math.inf], dtype=torch.float64)
    costs = numbers[random_cost(200, *shape, steps=len(numbers) - 1).long()]
    signed = -costs if maximize else costs
    results = linear_sum_assignment(signed.to(implementation.device), maximize=maximize)
    for b, cost in enumerate(costs.tolist()):
        kept: dict[tuple[int, float], list[list[tuple[int, int]]]] = {}
        for way in choices(*shape):
            finite = [cost[i][j] for i, j in way if math.isfinite(cost[i][j])]
            pairs = sorted((i, j) for i, j in way if cost[i][j] != math.inf)
            kept.setdefault((-len(finite), sum(finite)), []).append(pairs)
        assert pairs_of(Assignment(*(each[b] for each in results))) in kept[min(kept)]


# --- cost_limit ---


def least_by_scipy(cost: Tensor, limit: float) -> float:
    """Each row and column has a partner of its own for what has no pair, at half of the limit."""
    rows, columns = cost.shape
    extended = torch.full((rows + columns, rows + columns), limit / 2).double()
    extended[:rows, :columns] = cost.double().where(cost.isfinite() & (cost <= limit), 1e6)
    extended[rows:, columns:] = 0
    i, j = optimize.linear_sum_assignment(extended.numpy())
    return float(extended[i, j].sum())


def total(cost: Tensor, limit: float, pairs: list[tuple[int, int]]) -> float:
    return sum(float(cost[pair]) for pair in pairs) + limit / 2 * (sum(cost.shape) - 2 * len(pairs))


@pytest.mark.parametrize("limit", [-2.0, 0.0, 3.0, 4.5, 9.0, 1000.0])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.int16], ids=str)
def test_the_limits_sum_is_the_least(
    implementation: Implementation, dtype: torch.dtype, limit: float
) -> None:
    for seed, (rows, columns) in enumerate([*SHAPES, (0, 3), (3, 0)]):
        cost = (random_cost(20, rows, columns, steps=12, seed=seed) - 2).to(dtype)
        if dtype.is_floating_point:
            is_bad = random_cost(*cost.shape, seed=seed + 50)
            cost[is_bad < 0.1], cost[is_bad > 0.9] = math.inf, math.nan
            cost[(is_bad > 0.4) & (is_bad < 0.45)] = -math.inf
        results = linear_sum_assignment(cost.to(implementation.device), cost_limit=limit)
        for b, each in enumerate(cost):
            pairs = pairs_of(Assignment(*(result[b] for result in results)))
            assert all(each[pair].isfinite() and each[pair] <= limit for pair in pairs)
            assert total(each, limit, pairs) == least_by_scipy(each, limit)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_a_limit_is_compared_as_torch_does(
    implementation: Implementation, dtype: torch.dtype
) -> None:
    for limit in (0.1, 0.3, 0.5, 0.7, 0.8, 0.9):
        cost = torch.full((1, 1), limit, dtype=dtype, device=implementation.device)
        for each in (cost, cost * (1 + torch.finfo(dtype).eps)):
            pair = linear_sum_assignment(each, cost_limit=limit).column_of_row
            assert pair.item() == (0 if (each <= limit).item() else -1)


def test_an_infinite_limit_is_none(implementation: Implementation) -> None:
    cost = random_cost(9, 5, 6, steps=9).to(implementation.device)
    cost[cost > 6], cost[cost == 2] = math.inf, math.nan
    limited = linear_sum_assignment(cost, cost_limit=math.inf)
    assert_same(limited, linear_sum_assignment(cost))


def test_a_limit_and_lengths(implementation: Implementation) -> None:
    cost = random_cost(8, 5, 6, steps=9).to(implementation.device)
    sizes = [*product((0, 2, 5), (0, 3)), (5, 6), (1, 6)]
    lengths = torch.tensor(sizes, device=implementation.device)
    results = linear_sum_assignment(cost, lengths=lengths, cost_limit=3)
    for b, (rows, columns) in enumerate(sizes):
        own = cost[b, :rows, :columns].cpu()
        pairs = pairs_of(Assignment(*(result[b] for result in results)))
        assert total(own, 3, pairs) == least_by_scipy(own, 3)


# --- Numbers ---


def test_integers_are_exact_up_to_2_to_53(implementation: Implementation) -> None:
    half = 2**52
    cost = torch.tensor([[half, half - 1], [half - 1, half - 3]], device=implementation.device)
    assert linear_sum_assignment(cost).column_of_row.tolist() == [0, 1]
    assert linear_sum_assignment(cost, maximize=True).column_of_row.tolist() == [1, 0]
    row = 2**53 - torch.tensor([[1, 0, 3, 2]], device=implementation.device)
    assert linear_sum_assignment(row).column_of_row.tolist() == [2]
    assert linear_sum_assignment(row, maximize=True).column_of_row.tolist() == [1]


@every_dtype
def test_hungarian_match_of_each_dtype(implementation: Implementation, dtype: torch.dtype) -> None:
    cost = random_cost(3, 6, 9, steps=200).to(implementation.device)
    offsets = torch.tensor([0, 2, 2, 9], device=implementation.device)
    for groups, each in product((1, 2), (cost, cost[0])):
        wanted = hungarian_match(each, offsets, groups=groups)
        for a, b in zip(
            hungarian_match(each.to(dtype), offsets, groups=groups), wanted, strict=True
        ):
            assert torch.equal(a, b)
