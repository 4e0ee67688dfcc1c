# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""hungarian_match against SciPy, asked for each layer, image and group by itself."""

import math
import sys
import warnings
from itertools import pairwise
from typing import Any

import pytest
import torch
from boxloss.torch import box_losses, check_indices, collate_matches, hungarian_match
from hypothesis import given
from hypothesis import strategies as st
from problems import boxes
from torch import Tensor

optimize = pytest.importorskip("scipy.optimize", reason="SciPy is not installed")

QUERIES = 6
OFFSETS = [0, 2, 2, 9]  # fewer true boxes than queries, none, and more


def random_cost(
    shape: tuple[int, ...], device: torch.device | str = "cpu", seed: int = 0
) -> Tensor:
    random = torch.Generator().manual_seed(seed)
    return torch.rand(shape, generator=random).to(device)


def by_scipy(cost: Tensor, offsets: list[int], groups: int = 1) -> list[list[Any]]:
    """[layer][image] of pairs, as collate_matches takes them; a group's follow the one before."""
    results = []
    for layer in cost.detach().cpu().numpy():
        results.append([])
        size = len(layer) // groups
        for first, last in pairwise(offsets):
            src, tgt = [], []
            for start in range(0, size * groups, max(size, 1)):
                pairs = optimize.linear_sum_assignment(layer[start : start + size, first:last])
                src += (pairs[0] + start).tolist()
                tgt += pairs[1].tolist()
            results[-1].append((src, tgt))
    return results


def expected(cost: Tensor, offsets: list[int], groups: int = 1) -> tuple[Tensor, Tensor]:
    """By collate_matches, of which no image owns columns before the first offset."""
    if len(offsets) == 1:  # no images: collate_matches has one at least
        none = torch.zeros((*cost.shape[:-2], 0), dtype=torch.int64)
        return none, none
    counts = [last - first for first, last in pairwise(offsets)]
    matches = by_scipy(cost if cost.dim() == 3 else cost[None], offsets, groups)
    pred_index, target_index = collate_matches(
        matches if cost.dim() == 3 else matches[0], counts, cost.shape[-2]
    )
    return pred_index, target_index + offsets[0]


def check(cost: Tensor, offsets: list[int], groups: int = 1, **kind: Any) -> None:
    results = hungarian_match(cost, torch.tensor(offsets, **kind), groups=groups)
    for result, wanted in zip(results, expected(cost, offsets, groups), strict=True):
        assert result.dtype == torch.int64
        assert result.device == cost.device
        assert result.is_contiguous()
        assert result.shape == wanted.shape
        assert result.tolist() == wanted.tolist()
    assert results[0]._base is results[1]._base is not None


def test_by_hand(device: torch.device) -> None:
    # Two layers of two images with two queries; image 0 has one box, image 1 two.
    cost = torch.tensor([[[3.0, 1.0, 9.0], [2.0, 9.0, 1.0]], [[1.0, 5.0, 1.0], [2.0, 1.0, 0.0]]])
    offsets = torch.tensor([0, 1, 3], device=device)
    pred_index, target_index = hungarian_match(cost.to(device), offsets)
    assert pred_index.tolist() == [[1, 2, 3], [4, 6, 7]]
    assert target_index.tolist() == [[0, 1, 2], [0, 2, 1]]


@pytest.mark.parametrize("groups", [1, 2, 3, 6])
@pytest.mark.parametrize("layers", [None, 1, 3])
def test_is_scipys(device: torch.device, layers: int | None, groups: int) -> None:
    shape = (QUERIES, OFFSETS[-1])
    cost = random_cost(shape if layers is None else (layers, *shape), device)
    check(cost, OFFSETS, groups)
    check(cost.double(), OFFSETS, groups)
    # Also where several assignments cost the same.
    check((3 * cost).round(), OFFSETS, groups)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(
    ("queries", "offsets"),
    [
        (4, [0, 0, 0, 3, 3]),  # images without boxes, the first and the last ones too
        (4, [0, 0, 0]),  # no boxes at all
        (4, [0]),  # no images
        (4, [0, 2, 4, 8]),  # as many as a group and as all queries
        (4, [0, 3, 20]),  # more than queries
        (4, [1, 3, 5]),  # the first column is nobody's
        (0, [0, 2, 5]),  # no queries
        (0, [0, 0]),
    ],
)
def test_sizes(device: torch.device, queries: int, offsets: list[int], groups: int) -> None:
    for layers in ((), (1,), (2,)):
        check(random_cost((*layers, queries, offsets[-1]), device), offsets, groups)


def test_columns_behind_the_last_image_are_in_no_pair(device: torch.device) -> None:
    cost = random_cost((2, QUERIES, 7), device)
    cost[..., [0, 6]] = math.nan
    check(cost, [1, 2, 6])


def test_without_layers(device: torch.device) -> None:
    cost = random_cost((0, QUERIES, OFFSETS[-1]), device)
    for result in hungarian_match(cost, torch.tensor(OFFSETS)):
        assert result.shape == (0, 2 + QUERIES)
        assert result.device == cost.device


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("where", ["cpu", "as cost"])
def test_offsets(device: torch.device, dtype: torch.dtype, where: str) -> None:
    cost = random_cost((2, QUERIES, OFFSETS[-1]), device)
    check(cost, OFFSETS, dtype=dtype, device=device if where == "as cost" else where)
    strided = torch.tensor([OFFSETS, OFFSETS], dtype=dtype).T[:, 0]
    for result, wanted in zip(hungarian_match(cost, strided), expected(cost, OFFSETS), strict=True):
        assert result.tolist() == wanted.tolist()


def test_strides(device: torch.device) -> None:
    columns = OFFSETS[-1]
    check(random_cost((columns, QUERIES, 2), device).permute(2, 1, 0), OFFSETS)
    check(random_cost((4, 2 * QUERIES, 3 * columns), device)[::2, ::2, ::3], OFFSETS)
    check(random_cost((QUERIES, columns), device).expand(3, QUERIES, columns), OFFSETS)
    check(random_cost((columns, QUERIES), device).T, OFFSETS)


def test_cost_that_requires_grad(device: torch.device) -> None:
    cost = random_cost((2, QUERIES, OFFSETS[-1]), device).requires_grad_()
    check(cost, OFFSETS)
    assert not hungarian_match(cost, torch.tensor(OFFSETS))[0].requires_grad


def test_cost_stays_as_it_is(device: torch.device) -> None:
    cost = random_cost((2, QUERIES, OFFSETS[-1]), device)
    before = cost.clone()
    hungarian_match(cost, torch.tensor(OFFSETS))
    assert torch.equal(cost, before)


def test_whatever_the_default_device_is(device: torch.device) -> None:
    cost = random_cost((2, QUERIES, OFFSETS[-1]), device)
    offsets = torch.tensor(OFFSETS)
    with torch.device("meta"):
        results = hungarian_match(cost, offsets)
    for result, wanted in zip(results, expected(cost, OFFSETS), strict=True):
        assert result.tolist() == wanted.tolist()


def test_the_losses_take_them(device: torch.device) -> None:
    pred, target = boxes((2, 3, QUERIES), device, seed=1), boxes((9,), device, seed=2)
    cost = random_cost((2, QUERIES, 9), device)
    pred_index, target_index = hungarian_match(cost, torch.tensor(OFFSETS))
    check_indices(pred, target, pred_index=pred_index, target_index=target_index)
    loss = box_losses(pred, target, pred_index=pred_index, target_index=target_index).loss
    assert loss.shape == (2,)


@st.composite
def sizes(draw: st.DrawFn) -> tuple[int, int, int, list[int]]:
    groups, per_group = draw(st.integers(1, 3)), draw(st.integers(0, 4))
    offsets = sorted(draw(st.lists(st.integers(0, 12), min_size=1, max_size=5)))
    return draw(st.integers(1, 3)), groups, groups * per_group, offsets


@given(sizes=sizes(), seed=st.integers(0, 99), steps=st.sampled_from([2, 1000]))
def test_any_sizes(sizes: tuple[int, int, int, list[int]], seed: int, steps: int) -> None:
    layers, groups, queries, offsets = sizes
    cost = (steps * random_cost((layers, queries, 12), seed=seed)).round()
    check(cost, offsets, groups)


# --- The GPU ---


def test_waits_once_and_for_the_current_stream(device: torch.device) -> None:
    if device.type != "cuda":
        pytest.skip("only a GPU is waited for")
    right = random_cost((2, QUERIES, OFFSETS[-1]), device)
    offsets = torch.tensor(OFFSETS, device=device)
    hungarian_match(right, offsets)
    stream = torch.cuda.Stream(device)
    stream.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)  # until then the cost is not there
        cost = torch.zeros_like(right).copy_(right)
        torch.cuda.set_sync_debug_mode("warn")
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                results = hungarian_match(cost, offsets)
        finally:
            torch.cuda.set_sync_debug_mode("default")
        found = [result.tolist() for result in results]
    assert found == [wanted.tolist() for wanted in expected(right, OFFSETS)]
    waits = [each for each in caught if "synchronizing CUDA operation" in str(each.message)]
    assert len(waits) == 1


# --- Errors ---


@pytest.mark.parametrize("number", [math.nan, -math.inf])
@pytest.mark.parametrize("place", [(1, 3, 0), (1, 5, 1)])
def test_nan_is_an_error(device: torch.device, place: tuple[int, ...], number: float) -> None:
    cost = random_cost((2, QUERIES, OFFSETS[-1]), device)
    cost[place] = number
    with pytest.raises(
        ValueError,
        match=r"^cost of layer 1, image 0, group 1 has no assignment: .*; matching_cost's argument "
        r"nonfinite puts a number for NaN and infinities$",
    ):
        hungarian_match(cost, torch.tensor(OFFSETS), groups=2)
    with pytest.raises(ValueError, match=r"^cost of layer 0, image 0, group 0 "):
        hungarian_match(cost[1], torch.tensor(OFFSETS))
    check(cost, [2, 2, 9])  # nobody reads it


def test_infinity_is_an_error_only_where_it_cannot_be_left_out(device: torch.device) -> None:
    cost = random_cost((QUERIES, OFFSETS[-1]), device)
    cost[:-2, 0] = math.inf
    check(cost, OFFSETS)
    cost[:, 8] = math.inf  # seven boxes for six queries
    check(cost, OFFSETS)
    cost[3, 2:] = math.inf
    with pytest.raises(ValueError, match=r"^cost of layer 0, image 2, group 0 .*infeasible"):
        hungarian_match(cost, torch.tensor(OFFSETS))


@pytest.mark.parametrize(
    ("offsets", "text"),
    [
        ([0, 2, 10], r"^offsets\[2\] is 10; it must lie in \[0, 9\]$"),
        ([-1, 2, 9], r"^offsets\[0\] is -1; it must lie in \[0, 9\]$"),
        ([0, 2**40, 9], r"^offsets\[1\] is 1099511627776; it must lie in \[0, 9\]$"),
        (
            [0, 4, 3, 9],
            r"^offsets\[2\] is 3, less than offsets\[1\], which is 4; offsets must not decrease$",
        ),
    ],
)
def test_bad_offsets(device: torch.device, offsets: list[int], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        hungarian_match(random_cost((QUERIES, 9), device), torch.tensor(offsets))


COST = random_cost((2, QUERIES, 9))
GOOD = torch.tensor(OFFSETS)


@pytest.mark.parametrize(
    ("cost", "offsets", "groups", "error", "text"),
    [
        (
            COST.half(),
            GOOD,
            1,
            TypeError,
            r"^cost is torch.float16; it must be float32 or float64$",
        ),
        (COST.long(), GOOD, 1, TypeError, r"^cost is torch.int64; it must be float32 or float64$"),
        (COST.tolist(), GOOD, 1, TypeError, r"^cost is a list; it must be a tensor$"),
        (COST, OFFSETS, 1, TypeError, r"^offsets is a list; it must be a tensor$"),
        (COST[0, 0], GOOD, 1, ValueError, r"^cost has shape \(9,\); it must be \(queries, T\) or "),
        (COST[None], GOOD, 1, ValueError, r"^cost has shape \(1, 2, 6, 9\); it must be \(queries"),
        (COST, GOOD.short(), 1, TypeError, r"^offsets is torch.int16; it must be int32 or int64$"),
        (COST, GOOD.double(), 1, TypeError, r"^offsets is torch.float64; it must be int32 or "),
        (COST, GOOD[None], 1, ValueError, r"^offsets has shape \(1, 4\); it must be \(images \+ 1"),
        (COST, GOOD[0], 1, ValueError, r"^offsets has shape \(\); it must be \(images \+ 1,\)$"),
        (COST, GOOD[:0], 1, ValueError, r"^offsets has shape \(0,\); it must be \(images \+ 1,\)$"),
        (
            COST,
            GOOD.to("meta"),
            1,
            RuntimeError,
            r"^offsets is on meta, cost on cpu; offsets must ",
        ),
        (COST, GOOD, 4, ValueError, r"^groups is 4; cost has 6 queries, which it must divide$"),
        (COST, GOOD, 7, ValueError, r"^groups is 7; cost has 6 queries, which it must divide$"),
        (COST, GOOD, 0, ValueError, r"^groups is 0; it must be at least 1$"),
        (COST, GOOD, -2, ValueError, r"^groups is -2; it must be at least 1$"),
        (COST, GOOD, 2.0, TypeError, r"^groups is 2.0; it must be an integer$"),
    ],
)
def test_bad_arguments(
    cost: Any, offsets: Any, groups: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        hungarian_match(cost, offsets, groups=groups)


@pytest.mark.parametrize("name", ["numpy", "scipy.optimize"])
def test_without_scipy(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        ImportError,
        match=f"^hungarian_match needs {name}, which cannot be imported: pip install scipy$",
    ):
        hungarian_match(COST, GOOD)
