# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Linear assignment beside torch-linear-assignment's functions, and a limit beside lap's."""

import inspect
import math
import re
from pathlib import Path
from typing import Any

import lap
import pytest
import torch
import torch_linear_assignment as theirs
from boxloss.torch import linear_sum_assignment
from boxloss.torch.compat import assignment_to_indices, batch_linear_assignment
from rfdetr.models import _assignment as rf_detr
from surroundings import DEVICES, assert_reads_nothing
from torch import Tensor

SHAPES = [(9, 5, 5), (9, 3, 8), (9, 8, 3), (1, 1, 4), (0, 2, 3), (2, 0, 3), (2, 3, 0)]


def random_cost(*shape: int, steps: int | None, dtype: torch.dtype = torch.float64) -> Tensor:
    """Of few steps: several assignments cost the same."""
    random = torch.Generator().manual_seed(sum(shape))
    numbers = torch.rand(shape, generator=random, dtype=torch.float64)
    return (numbers if steps is None else (steps * numbers).round()).to(dtype)


DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32]
DTYPES += [torch.int16, torch.uint8, torch.bool]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("steps", [2, 200])
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


@pytest.mark.parametrize(("bad", "first"), [(math.inf, -1), (math.nan, 1), (-math.inf, 1)])
@pytest.mark.parametrize("device", DEVICES)
def test_what_they_raise_is_no_error(device: str, bad: float, first: int) -> None:
    cost = torch.tensor([[[bad, bad], [1, 2]], [[bad, 1], [1, bad]]], device=device)
    with pytest.raises(ValueError, match=r"^(cost matrix is infeasible|matrix .*invalid numeric)"):
        theirs.batch_linear_assignment(cost)
    assert batch_linear_assignment(cost).tolist() == [[first, 0], [1, 0]]


def test_large_integers_are_not_rounded() -> None:
    cost = torch.tensor([[[2**24 + 1, 2**24]], [[2**24, 2**24 + 1]]])
    assert batch_linear_assignment(cost).tolist() == [[1], [0]]
    assert len(theirs.batch_linear_assignment(cost).unique()) == 1


def test_the_host_reads_nothing() -> None:
    assert_reads_nothing(batch_linear_assignment, on="cuda", cost=torch.rand(4, 3, 5))


# Padded to the most boxes of an image, without any, and one problem size after the other.
@pytest.mark.parametrize("sizes", [[3, 0, 5], [0, 0], [12, 2]], ids=str)
def test_in_rf_detrs_place(sizes: list[int]) -> None:
    """rfdetr's module, with the lines that docs/depend.md shows."""
    page = (Path(__file__).parents[2] / "docs/depend.md").read_text()
    source = inspect.getsource(rf_detr)
    for before, after in re.findall(r"^-( +.*)\n\+( +.*)", page, re.MULTILINE):
        assert source.count(before) == 1
        source = source.replace(before, after)
    assert "torch_linear_assignment.batch" not in source
    changed: dict[str, Any] = {"__name__": "changed"}
    exec(source, changed)
    costs = [*random_cost(2, 30, sum(sizes), steps=None, dtype=torch.float32)]
    ours = changed["assign_many_bucketed"](costs, sizes, 3)
    torch.testing.assert_close(ours, rf_detr.assign_many_bucketed(costs, sizes, 3))


@pytest.mark.parametrize("limit", [0.25, 1.0, 40.0, 1000.0])
@pytest.mark.parametrize("shape", [(5, 5), (3, 8), (8, 3), (1, 4), (30, 40)], ids=str)
@pytest.mark.parametrize("device", DEVICES)
def test_a_limit_is_laps(device: str, shape: tuple[int, int], limit: float) -> None:
    """By sums, which are exact: lap decides ties otherwise."""
    for scale in (1, 100):
        cost = random_cost(9, *shape, steps=64) / 64 * scale
        columns = linear_sum_assignment(cost.to(device), cost_limit=limit).column_of_row.cpu()
        for matrix, column_of_row in zip(cost, columns, strict=True):
            _, other, _ = lap.lapjv(matrix.numpy(), extend_cost=True, cost_limit=limit)
            wanted = limited_sum(matrix, torch.from_numpy(other), limit)
            assert limited_sum(matrix, column_of_row, limit) == wanted


def limited_sum(cost: Tensor, column_of_row: Tensor, limit: float) -> float:
    rows = (column_of_row >= 0).nonzero()[:, 0]
    pairs = cost[rows, column_of_row[rows].long()]
    assert (pairs <= limit).all()
    return float(pairs.sum()) + limit / 2 * (sum(cost.shape) - 2 * len(pairs))
