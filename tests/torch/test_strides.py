# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Views of all kinds: what can be expressed by strides gives what its contiguous copy gives."""

import pytest
import torch
from boxloss.torch import giou_loss
from comparison import check
from devices import Implementation
from problems import INDICES, PAIRINGS, Problem, boxes, problem
from torch import Tensor

pytestmark = pytest.mark.asan


def in_wider_rows(values: Tensor, width: int, first: int) -> Tensor:
    """The same boxes as a slice of rows that hold NaN around them."""
    rows = values.new_full((*values.shape[:-1], width), float("nan"))
    rows[..., first : first + 4] = values
    return rows[..., first : first + 4]


def every_second(values: Tensor, dim: int) -> Tensor:
    """The same values with gaps along one dimension."""
    return (
        values.repeat_interleave(2, dim)
        .index_select(dim, torch.arange(2 * values.shape[dim], device=values.device))
        .movedim(dim, 0)[::2]
        .movedim(0, dim)
    )


@pytest.mark.parametrize(("width", "first"), [(85, 0), (6, 1), (5, 1)])
@pytest.mark.parametrize("reduction", ["none", "mean"])
@pytest.mark.parametrize("pairing", PAIRINGS)
def test_slices_of_wider_rows(
    implementation: Implementation, pairing: str, reduction: str, width: int, first: int
) -> None:
    values = problem(pairing, implementation.device, reduction=reduction)
    values["pred"] = in_wider_rows(values["pred"], width, first)
    values["target"] = in_wider_rows(values["target"], width, first)
    assert not values["pred"].is_contiguous()
    check(values)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_rows_that_are_not_aligned(implementation: Implementation, dtype: torch.dtype) -> None:
    values = problem("dense", implementation.device, dtype, dtype, reduction="none")
    values["pred"] = in_wider_rows(values["pred"], 5, 1)
    check(values)


def copies_made(values: Problem) -> int:
    """How many tensors the call copies before it computes."""
    with torch.profiler.profile() as profile:
        giou_loss(**values)
    return sum(event.name == "aten::clone" for event in profile.events())


def test_only_what_strides_cannot_express_is_copied(device: torch.device) -> None:
    values = problem("mask", device)
    values["pred"] = in_wider_rows(values["pred"], 85, 0)
    assert copies_made(values) == 0
    values["pred"] = in_wider_rows(values["pred"].movedim(0, 1), 6, 1).movedim(0, 1)
    assert copies_made(values) == 0
    values["mask"] = every_second(values["mask"], -1)
    assert copies_made(values) == 1
    target = boxes((2, 3, 5), device)
    collapsing = boxes((5, 2, 3), device).permute(1, 2, 0, 3)
    assert copies_made({"pred": collapsing, "target": target}) == 0
    reversed_order = boxes((5, 3, 2), device).permute(2, 1, 0, 3)
    assert copies_made({"pred": reversed_order, "target": target}) == 1
    planes = boxes((2, 3, 5), device).movedim(-1, 1).contiguous().movedim(1, -1)
    assert copies_made({"pred": planes, "target": target}) == 0
    anchors = boxes((2, 3, 5), device).permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    assert copies_made({"pred": anchors, "target": target}) == 1


@pytest.mark.parametrize("operand", ["pred", "target"])
@pytest.mark.parametrize("pairing", PAIRINGS)
def test_transposed_images_and_slots(
    implementation: Implementation, pairing: str, operand: str
) -> None:
    values = problem(pairing, implementation.device, reduction="none")
    values[operand] = values[operand].transpose(0, -2).contiguous().transpose(0, -2)
    check(values)


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("pairing", PAIRINGS)
def test_gaps(implementation: Implementation, pairing: str, dim: int) -> None:
    values = problem(pairing, implementation.device, reduction="none")
    values["pred"] = every_second(values["pred"], dim)
    assert not values["pred"].is_contiguous()
    check(values)


def expanded(values: Problem, operand: str, dim: int) -> Problem:
    first = values[operand].narrow(dim, 0, 1)
    return {**values, operand: first.expand_as(values[operand])}


@pytest.mark.parametrize("reduction", ["none", "sum"])
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("operand", ["pred", "target"])
@pytest.mark.parametrize("pairing", ["dense", "lengths", "mask"])
def test_expanded_boxes(
    implementation: Implementation, pairing: str, operand: str, dim: int, reduction: str
) -> None:
    values = problem(pairing, implementation.device, reduction=reduction)
    check(expanded(values, operand, dim))


def test_an_expanded_image_with_offsets(implementation: Implementation) -> None:
    check(expanded(problem("offsets", implementation.device, reduction="none"), "pred", 0))


def test_one_box_against_many(implementation: Implementation) -> None:
    pred = boxes((6,), implementation.device, seed=1)
    check({"pred": pred, "target": boxes((), pred.device, seed=2).expand(6, 4)})


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 0, 1), (2, 1, 0)])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("operand", ["pred", "target"])
def test_three_leading_dimensions(
    implementation: Implementation, operand: str, masked: bool, order: tuple[int, int, int]
) -> None:
    # Some orders collapse to images and slots, others have to be copied.
    shape = (2, 3, 5)
    stored = tuple(shape[dim] for dim in order)
    back = [order.index(dim) for dim in range(3)]
    device = implementation.device
    values: Problem = {
        "pred": boxes(shape, device, seed=1),
        "target": boxes(shape, device, seed=2),
        "reduction": "none",
        operand: boxes(stored, device, seed=3).permute(*back, 3),
    }
    if masked:
        values["mask"] = (torch.arange(30, device=device) % 3 > 0).reshape(stored).permute(back)
    check(values)


@pytest.mark.parametrize("kind", ["expanded", "transposed", "sliced", "one number"])
@pytest.mark.parametrize("pairing", PAIRINGS)
def test_strides_of_the_incoming_gradient(
    implementation: Implementation, pairing: str, kind: str
) -> None:
    values = problem(pairing, implementation.device, weight=torch.float32, reduction="none")
    shape = giou_loss(**values).shape
    numbers = torch.arange(1.0, 1 + 2 * shape.numel(), device=implementation.device)
    upstream = {
        "expanded": numbers[: shape[-1]].expand(shape),
        "transposed": numbers[: shape.numel()]
        .reshape(tuple(reversed(shape)))
        .permute(*reversed(range(len(shape)))),
        "sliced": numbers[::2].reshape(shape),
        "one number": numbers[3].expand(shape),
    }[kind]
    check(values, upstream / numbers.max())


@pytest.mark.parametrize("kind", ["gaps", "first dimension last"])
@pytest.mark.parametrize("reduction", ["none", "mean"])
@pytest.mark.parametrize("pairing", PAIRINGS)
def test_weight_mask_and_indices_that_are_not_contiguous(
    implementation: Implementation, pairing: str, reduction: str, kind: str
) -> None:
    values = problem(pairing, implementation.device, weight=torch.float32, reduction=reduction)
    for name in ("weight", "mask", "lengths", "offsets", *INDICES):
        if name in values and kind == "gaps":
            values[name] = every_second(values[name], -1)
            assert not values[name].is_contiguous()
        elif name in values:
            values[name] = values[name].movedim(0, -1).contiguous().movedim(-1, 0)
    check(values)


def test_lengths_of_one_number(implementation: Implementation) -> None:
    values = problem("lengths", implementation.device)
    values["lengths"] = torch.tensor(2, device=implementation.device).expand(3)
    check(values)
