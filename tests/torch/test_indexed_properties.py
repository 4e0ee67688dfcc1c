# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Pairs by index are the boxes that torch gathers, for any indices."""

from typing import Any

import pytest
import torch
from boxloss.torch import box_loss, box_losses
from comparison import UNIT_ROUNDOFF, roundoff
from formulas import LOSSES
from hypothesis import given
from hypothesis import strategies as st
from problems import FLOATING, REDUCTIONS, TARGETS, boxes
from torch import Tensor

ROWS, TRUE_BOXES = 11, 7


@st.composite
def index_pairs(draw: st.DrawFn) -> list[tuple[int, int]]:
    """Some of them outside, many of them again and again."""
    row = st.integers(-2, ROWS + 1)
    true_box = st.integers(-2, TRUE_BOXES + 1)
    return draw(st.lists(st.tuples(row, true_box), max_size=40))


def assert_same(actual: Tensor, expected: Tensor) -> None:
    """To the bit, but where each kernel contracts products and sums, and adds, in its own way."""
    if actual.device.type == "cpu":
        assert torch.equal(actual, expected)
    else:
        # Losses of ordinary boxes are within 80 roundings, see test_bounds.py.
        error = 2 * 80 * roundoff(torch.float32) * max(actual.numel(), 40)
        assert torch.allclose(actual, expected, rtol=1e-5, atol=error)


def gathered(list_: Tensor, index: Tensor) -> Tensor:
    return list_.index_select(0, index.clamp(0, len(list_) - 1))


def results(function: Any, pred: Tensor, target: Tensor) -> tuple[Tensor, ...]:
    """Outputs, and gradients of ones."""
    leaves = [each.detach().requires_grad_() for each in (pred, target) if each.is_floating_point()]
    outputs = function(leaves[0], leaves[1] if len(leaves) == 2 else target)
    total = outputs.loss.sum() + outputs.l1.sum()
    return (*(each.detach() for each in outputs), *torch.autograd.grad(total, leaves))


@given(
    pairs=index_pairs(),
    loss=st.sampled_from(LOSSES),
    dtypes=st.tuples(st.sampled_from(FLOATING), st.sampled_from(TARGETS)),
    index_dtypes=st.tuples(*[st.sampled_from([torch.int32, torch.int64])] * 2),
    reduction=st.sampled_from(REDUCTIONS),
)
def test_as_index_select(
    device: torch.device,
    pairs: list[tuple[int, int]],
    loss: Any,
    dtypes: tuple[torch.dtype, torch.dtype],
    index_dtypes: tuple[torch.dtype, torch.dtype],
    reduction: Any,
) -> None:
    pred = boxes((ROWS,), device, dtypes[0], seed=1)
    target = boxes((TRUE_BOXES,), device, dtypes[1], seed=2)
    numbers = torch.tensor(pairs, dtype=torch.int64, device=device).reshape(-1, 2)
    rows, true_boxes = numbers.unbind(-1)
    counted = (rows >= 0) & (rows < ROWS) & (true_boxes >= 0) & (true_boxes < TRUE_BOXES)
    options: dict[str, Any] = {"loss": loss, "reduction": reduction}

    def by_index(p: Tensor, t: Tensor) -> Any:
        index = {"pred_index": rows.to(index_dtypes[0])}
        index["target_index"] = true_boxes.to(index_dtypes[1])
        return box_losses(p, t, **index, **options)

    def by_gathering(p: Tensor, t: Tensor) -> Any:
        return box_losses(gathered(p, rows), gathered(t, true_boxes), mask=counted, **options)

    actual, expected = results(by_index, pred, target), results(by_gathering, pred, target)
    for a, e in zip(actual[:3], expected[:3], strict=True):
        assert_same(a, e)
    for a, e in zip(actual[3:], expected[3:], strict=True):
        # 40 terms, each added in two ways with a rounding to the gradient's dtype. Sides are 3 and
        # longer, and a derivative of iou_log is up to 1 / iou, 100 here, times those of iou.
        size = 40 * (4 / 3 * (100 if loss == "iou_log" else 1) + 1)
        unit = max(UNIT_ROUNDOFF[a.dtype], roundoff(torch.float32))
        assert a.sub(e).abs().max() <= 2 * 41 * unit * size


@given(pairs=index_pairs(), sets=st.integers(1, 4))
def test_sets_are_calls_of_their_own(
    device: torch.device, pairs: list[tuple[int, int]], sets: int
) -> None:
    pred, target = boxes((ROWS,), device, seed=1), boxes((TRUE_BOXES,), device, seed=2)
    numbers = torch.tensor(pairs, dtype=torch.int64, device=device).reshape(-1, 2)
    numbers = numbers[: len(numbers) // sets * sets].reshape(sets, -1, 2)
    rows, true_boxes = numbers.unbind(-1)
    together = box_losses(pred, target, pred_index=rows, target_index=true_boxes)
    for i in range(sets):
        alone = box_losses(pred, target, pred_index=rows[i], target_index=true_boxes[i])
        for all_sets, one in zip(together, alone, strict=True):
            assert_same(all_sets[i], one)


@given(pairs=index_pairs(), order=st.randoms(use_true_random=False))
def test_the_order_of_pairs_is_theirs(
    device: torch.device, pairs: list[tuple[int, int]], order: Any
) -> None:
    pred, target = boxes((ROWS,), device, seed=1), boxes((TRUE_BOXES,), device, seed=2)
    places = list(range(len(pairs)))
    order.shuffle(places)
    numbers = torch.tensor(pairs, dtype=torch.int64, device=device).reshape(-1, 2)
    losses = []
    for each in (numbers, numbers[places]):
        rows, true_boxes = each.unbind(-1)
        index = {"pred_index": rows, "target_index": true_boxes}
        losses.append(box_loss(pred, target, **index, reduction="none"))
    assert torch.equal(losses[0][places], losses[1])


@pytest.mark.parametrize("shape", [(ROWS,), (1, ROWS)])
def test_every_row_once_is_the_dense_loss(device: torch.device, shape: tuple[int, ...]) -> None:
    pred, target = boxes((ROWS,), device, seed=1), boxes((ROWS,), device, seed=2)
    index = torch.arange(ROWS, device=device).reshape(shape)
    by_index = box_losses(pred, target, pred_index=index, target_index=index, reduction="none")
    for actual, expected in zip(by_index, box_losses(pred, target, reduction="none"), strict=True):
        assert_same(actual, expected.reshape(shape))
