# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Linear assignment by other libraries' names, beside SciPy; tests/peers has the originals."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from boxloss.torch.compat import (
    assignment_to_indices,
    batch_linear_assignment,
    linear_sum_assignment,
)
from torch import Tensor

optimize = pytest.importorskip("scipy.optimize", reason="SciPy is not installed")


def random_cost(*shape: int) -> Tensor:
    """Whole numbers, with ties."""
    random = torch.Generator().manual_seed(sum(shape))
    return torch.randint(0, 20, shape, generator=random).double()


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("shape", [(5, 5), (3, 8), (8, 3), (0, 3)], ids=str)
def test_is_scipys(device: torch.device, shape: tuple[int, int], maximize: bool) -> None:
    cost = random_cost(*shape).to(device).requires_grad_()
    for each in (cost, cost > 10):
        results = linear_sum_assignment(each, maximize)
        numbers = each.detach().cpu().numpy()
        for a, b in zip(results, optimize.linear_sum_assignment(numbers, maximize), strict=True):
            assert (a.dtype, a.tolist()) == (torch.int64, b.tolist())
            assert a.device == each.device


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("count", [1, 3])  # of one row: all of it leaves it without a pair
def test_errors_are_scipys(device: torch.device, count: int, bad: float, maximize: bool) -> None:
    cost = random_cost(2, 3)
    cost[1, :count] = bad

    def text(function: Callable[..., Any], *given: Any) -> str:
        try:
            function(*given, maximize)
        except ValueError as error:
            return str(error)
        return ""

    wanted = text(optimize.linear_sum_assignment, cost.numpy())
    assert text(linear_sum_assignment, cost.to(device)) == wanted


def test_bad_shapes() -> None:
    with pytest.raises(ValueError, match=r"cost has shape \[2, 3\]; it must be \(B, W, T\)$"):
        batch_linear_assignment(torch.ones(2, 3))
    with pytest.raises(ValueError, match=r"^linear_sum_assignment: cost_matrix is on meta; its"):
        linear_sum_assignment(torch.rand(2, 2, device="meta"))
    with pytest.raises(ValueError, match=r"cost_matrix has shape \[3\]; it must be \(N, M\)$"):
        linear_sum_assignment(torch.ones(3))
    with pytest.raises(ValueError, match=r"assignment has shape \[3\]; it must be \(B, W\)$"):
        assignment_to_indices(torch.ones(3).long())
    with pytest.raises(ValueError, match="assignment has from 1 to 2 pairs in a matrix; each"):
        assignment_to_indices(torch.tensor([[0, 1], [-1, 0]]))
