# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Indices outside their lists, rows that no pair has, and NaN in those that one has."""

import pytest
import torch
from boxloss.torch import box_losses, giou_loss
from comparison import run
from devices import Implementation
from problems import INDICES, REDUCTIONS, Problem, excluded, indexed, problem
from torch import Tensor

pytestmark = pytest.mark.asan
INT32, INT64 = torch.iinfo(torch.int32), torch.iinfo(torch.int64)
# As 32 bits the larger ones would be rows that there are.
WILD = [-1, -2, INT32.min, INT32.max, 2**32 + 1, -(2**32) + 1, INT64.min, INT64.max]
LISTS = {"pred_index": 15, "target_index": 12}
NAN = float("nan")


def equal_results(actual: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    for name, result in expected.items():
        assert torch.equal(actual[name], result), name


@pytest.mark.parametrize("number", [*WILD, "rows", "rows + 1"])
@pytest.mark.parametrize("name", INDICES)
def test_an_index_outside_is_padding(
    implementation: Implementation, name: str, number: int | str
) -> None:
    if isinstance(number, str):
        number = LISTS[name] + ("1" in number)
    dtypes = [torch.int64] if not INT32.min <= number <= INT32.max else [torch.int32, torch.int64]
    for reduction in REDUCTIONS:
        values = indexed((2, 7), implementation.device, weight=torch.float32, reduction=reduction)
        for dtype in dtypes:
            wild = {**values, name: values[name].to(dtype)}
            padded = {**values, name: wild[name].clone()}
            wild[name][1, ::3] = number
            padded[name][1, ::3] = -1
            equal_results(run(wild, by=("loss", "l1")), run(padded, by=("loss", "l1")))


@pytest.mark.parametrize("name", INDICES)
def test_the_first_and_the_last_row_count(implementation: Implementation, name: str) -> None:
    values = indexed((2,), implementation.device, reduction="none")
    for index in INDICES:
        values[index] = torch.tensor([0, LISTS[index] - 1], device=implementation.device)
    assert box_losses(**values).l1.all()
    for step, counts in (([-1, 0], [False, True]), ([0, 1], [True, False])):
        index = values[name] + torch.tensor(step, device=implementation.device)
        assert (box_losses(**{**values, name: index}).l1 != 0).tolist() == counts


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", INDICES)
def test_one_index_outside_leaves_its_partner_alone(
    implementation: Implementation, name: str, reduction: str
) -> None:
    """A pair that does not count gives its other row no gradient, even if only that has NaN."""
    values = indexed((2, 7), implementation.device, reduction=reduction)
    values[name][:] = -1
    values["pred"][:] = NAN
    values["target"][:] = NAN
    for result in run(values, by=("loss", "l1")).values():
        assert not result.any()


@pytest.mark.parametrize("poison", [NAN, float("inf")])
def test_rows_of_no_pair(implementation: Implementation, poison: float) -> None:
    # No row in two pairs: in 16 bits two gradients of one round as a GPU's threads come to it.
    lists: Problem = {"pred_list": (20,), "target_list": (18,), "most": 1}
    values = indexed((2, 7), implementation.device, torch.bfloat16, torch.float16, **lists)
    clean = run(values, by=("loss", "l1"))
    slots, rows, _ = excluded(values)
    assert slots.sum() > 2
    assert rows.sum() > 2
    values["pred"][slots] = poison
    values["target"][rows] = poison
    dirty = run(values, by=("loss", "l1"))
    equal_results(dirty, clean)
    assert not dirty["pred"][slots].any()
    assert not dirty["target"][rows].any()


def with_a_nan(implementation: Implementation, operand: str) -> Problem:
    """In a row of the second set, twice in it."""
    device = implementation.device
    values = problem("sets", device, weight=torch.float32)
    values["pred_index"] = torch.tensor([[0, 1, 2], [3, 4, 3]], device=device)
    values["target_index"] = torch.tensor([[0, 1, 2], [5, 4, 5]], device=device)
    values["weight"] = values["weight"][:, :3]
    values[operand].view(-1, 4)[3 if operand == "pred" else 5, 2] = NAN
    return values


@pytest.mark.parametrize("operand", ["pred", "target"])
def test_nan_in_a_pair_that_counts(implementation: Implementation, operand: str) -> None:
    values = with_a_nan(implementation, operand)
    wanted = torch.tensor([[False] * 3, [True, False, True]], device=implementation.device)
    for reduction in REDUCTIONS:
        result = run({**values, "reduction": reduction}, by=("loss", "l1"))
        for name in ("loss", "l1"):
            of_output = wanted if reduction == "none" else wanted.any(-1)
            assert torch.equal(result[name].isnan(), of_output), name
        assert torch.equal(result["iou"].isnan(), wanted)
        assert torch.equal(result["weight"].isnan(), wanted)
        for name, row in (("pred", 3), ("target", 5)):
            is_nan = result[name].reshape(-1, 4).isnan()
            assert is_nan[row].all()
            assert is_nan.sum() == 4


@pytest.mark.parametrize("shape", [(4,), (3, 4)])
def test_no_pair_counts(implementation: Implementation, shape: tuple[int, ...]) -> None:
    """The mean of nothing is 0, also by a normalizer of 0."""
    values = indexed(shape, implementation.device, weight=torch.float32)
    values["pred_index"][:] = -1
    for result in run(values, by=("loss", "l1")).values():
        assert not result.any()
    zero = torch.zeros((), device=implementation.device)
    loss = giou_loss(**values, normalizer=zero)
    assert loss.shape == shape[:-1]
    assert not loss.any()
