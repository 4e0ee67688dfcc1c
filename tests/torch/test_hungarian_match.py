# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""hungarian_match against SciPy, asked for each layer, image and group by itself. Matrices by hand,
ties and what is not finite are for tests/core."""

from itertools import pairwise

import pytest
import torch
from boxloss.torch import MatchResult, hungarian_match
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor

optimize = pytest.importorskip("scipy.optimize", reason="SciPy is not installed")

CPU = torch.device("cpu")
QUERIES = 6
OFFSETS = [0, 2, 2, 9]  # fewer ground-truth boxes than queries, none, and more


def random_cost(shape: tuple[int, ...], device: torch.device = CPU, seed: int = 0) -> Tensor:
    random = torch.Generator().manual_seed(seed)
    return torch.rand(shape, generator=random).to(device)


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


def assert_same(results: MatchResult, wanted: MatchResult) -> None:
    for result, each in zip(results, wanted, strict=True):
        assert torch.equal(result.cpu(), each)


def check(cost: Tensor, offsets: list[int], groups: int = 1) -> None:
    results = hungarian_match(cost, torch.tensor(offsets), groups=groups)
    assert isinstance(results, MatchResult)
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
    cost = (steps * random_cost(shape, seed=seed)).round()
    check(cost, offsets, groups)
    check(cost.double(), offsets, groups)
