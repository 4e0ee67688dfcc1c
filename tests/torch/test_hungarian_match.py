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
from boxloss.torch import box_losses, check_indices, hungarian_match
from hypothesis import example, given
from hypothesis import strategies as st
from problems import boxes
from torch import Tensor

optimize = pytest.importorskip("scipy.optimize", reason="SciPy is not installed")

CPU = torch.device("cpu")
QUERIES = 6
OFFSETS = [0, 2, 2, 9]  # fewer true boxes than queries, none, and more


def random_cost(shape: tuple[int, ...], device: torch.device = CPU, seed: int = 0) -> Tensor:
    random = torch.Generator().manual_seed(seed)
    return torch.rand(shape, generator=random).to(device)


def expected(cost: Tensor, offsets: list[int], groups: int = 1) -> tuple[list[Any], list[Any]]:
    """Rows of pred and of target, by layer."""
    layers = (cost if cost.dim() == 3 else cost[None]).detach().cpu().numpy()
    queries, images = cost.shape[-2], len(offsets) - 1
    size = queries // groups
    results: tuple[list[Any], list[Any]] = ([], [])
    for k, layer in enumerate(layers):
        pred_rows, target_rows = [], []
        for b, (first, last) in enumerate(pairwise(offsets)):
            for start in range(0, queries, max(size, 1)):
                pairs = optimize.linear_sum_assignment(layer[start : start + size, first:last])
                pred_rows += ((k * images + b) * queries + start + pairs[0]).tolist()
                target_rows += (first + pairs[1]).tolist()
        results[0].append(pred_rows)
        results[1].append(target_rows)
    return results if cost.dim() == 3 else (results[0][0], results[1][0])


def check(cost: Tensor, offsets: list[int], groups: int = 1, given: Tensor | None = None) -> None:
    given = torch.tensor(offsets) if given is None else given
    results = hungarian_match(cost, given, groups=groups)
    for result, wanted in zip(results, expected(cost, offsets, groups), strict=True):
        assert (result.dtype, result.device) == (torch.int64, cost.device)
        assert result.is_contiguous()
        assert not result.requires_grad
        assert result.tolist() == wanted
    assert results[0]._base is results[1]._base is not None


def test_by_hand(device: torch.device) -> None:
    # Two layers of two images with two queries; image 0 has one box, image 1 two.
    cost = torch.tensor([[[3.0, 1.0, 9.0], [2.0, 9.0, 1.0]], [[1.0, 5.0, 1.0], [2.0, 1.0, 0.0]]])
    offsets = torch.tensor([0, 1, 3], device=device)
    pred_index, target_index = hungarian_match(cost.to(device), offsets)
    assert pred_index.tolist() == [[1, 2, 3], [4, 6, 7]]
    assert target_index.tolist() == [[0, 1, 2], [0, 2, 1]]


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


def test_without_layers(device: torch.device) -> None:
    cost = random_cost((0, QUERIES, OFFSETS[-1]), device)
    for result in hungarian_match(cost, torch.tensor(OFFSETS)):
        assert (result.shape, result.device) == ((0, 2 + QUERIES), cost.device)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=str)
def test_offsets(device: torch.device, dtype: torch.dtype) -> None:
    cost = random_cost((2, QUERIES, OFFSETS[-1]), device)
    given = torch.tensor([OFFSETS, OFFSETS], dtype=dtype).T[:, 0]
    for each in (given, given.to(device)):
        check(cost, OFFSETS, groups=2, given=each)
    with torch.device("meta"):
        pred_index, _ = hungarian_match(cost, given)
    assert pred_index.device == cost.device


def test_cost_is_read_where_it_lies_and_stays_as_it_is(device: torch.device) -> None:
    columns = OFFSETS[-1]
    for cost in (
        random_cost((columns, QUERIES, 2), device).permute(2, 1, 0),
        random_cost((4, 2 * QUERIES, 3 * columns), device)[::2, ::2, ::3],
        random_cost((QUERIES, columns), device).expand(3, QUERIES, columns),
        random_cost((columns, QUERIES), device).T,
        random_cost((2, QUERIES, columns), device).requires_grad_(),
    ):
        before = cost.clone()
        check(cost, OFFSETS)
        assert torch.equal(cost, before)


def test_the_losses_take_them(device: torch.device) -> None:
    pred, target = boxes((2, 3, QUERIES), device, seed=1), boxes((9,), device, seed=2)
    cost = random_cost((2, QUERIES, 9), device)
    pred_index, target_index = hungarian_match(cost, torch.tensor(OFFSETS))
    check_indices(pred, target, pred_index=pred_index, target_index=target_index)
    loss = box_losses(pred, target, pred_index=pred_index, target_index=target_index).loss
    assert loss.shape == (2,)


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
    assert found == [*expected(right, OFFSETS)]
    waits = [each for each in caught if "synchronizing CUDA operation" in str(each.message)]
    assert len(waits) == 1


# --- Errors ---


@pytest.mark.parametrize("number", [math.nan, -math.inf])
@pytest.mark.parametrize("place", [(1, 3, 0), (1, 5, 1)])
def test_nan_is_an_error(device: torch.device, place: tuple[int, ...], number: float) -> None:
    cost = random_cost((2, QUERIES, OFFSETS[-1]), device)
    cost[place] = number
    text = r"^cost of layer 1, image 0, group 1 has no assignment: .*; matching_cost's argument "
    with pytest.raises(ValueError, match=text + "nonfinite puts a number for NaN and infinities$"):
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


COST, GOOD = random_cost((2, QUERIES, 9)), torch.tensor(OFFSETS)
# What is changed, and what the error says.
ERRORS: list[tuple[type[Exception], dict[str, Any], str]] = [
    (TypeError, {"cost": COST.half()}, "cost is torch.float16; it must be float32 or float64$"),
    (TypeError, {"cost": COST.tolist()}, "cost is a list; it must be a tensor$"),
    (TypeError, {"offsets": OFFSETS}, "offsets is a list; it must be a tensor$"),
    (TypeError, {"offsets": GOOD.short()}, "offsets is torch.int16; it must be int32 or int64$"),
    (TypeError, {"groups": 2.0}, r"groups is 2.0; it must be an integer$"),
    (ValueError, {"cost": COST[0, 0]}, r"cost has shape \(9,\); it must be \(queries, T\) or "),
    (ValueError, {"cost": COST[None]}, r"cost has shape \(1, 2, 6, 9\); it must be \(queries"),
    (ValueError, {"offsets": GOOD[None]}, r"offsets has shape \(1, 4\); it must be \(images \+ 1"),
    (ValueError, {"offsets": GOOD[:0]}, r"offsets has shape \(0,\); it must be \(images \+ 1,\)$"),
    (ValueError, {"offsets": GOOD + 1}, r"offsets\[3\] is 10; it must lie in \[0, 9\]$"),
    (ValueError, {"offsets": GOOD - 1}, r"offsets\[0\] is -1; it must lie in \[0, 9\]$"),
    (
        ValueError,
        {"offsets": torch.tensor([0, 4, 3, 9])},
        r"offsets\[2\] is 3, less than offsets\[1\], which is 4; offsets must not decrease$",
    ),
    (ValueError, {"groups": 4}, "groups is 4; cost has 6 queries, which it must divide$"),
    (ValueError, {"groups": 0}, "groups is 0; it must be at least 1$"),
    (RuntimeError, {"offsets": GOOD.to("meta")}, "offsets is on meta, cost on cpu; offsets must "),
]


@pytest.mark.parametrize(("error", "changed", "text"), ERRORS)
def test_errors(error: type[Exception], changed: dict[str, Any], text: str) -> None:
    with pytest.raises(error, match=f"^{text}"):
        hungarian_match(**{"cost": COST, "offsets": GOOD, **changed})


@pytest.mark.parametrize("name", ["numpy", "scipy.optimize"])
def test_without_scipy(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    text = f"^hungarian_match needs {name}, which cannot be imported: pip install scipy$"
    with pytest.raises(ImportError, match=text):
        hungarian_match(COST, GOOD)
