# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Pairs by index: every output and gradient against the formula."""

from typing import Any

import pytest
import torch
from bounds import check_bounded
from boxloss.torch import box_losses
from devices import Implementation
from problems import (
    FLOATING,
    FORMATS,
    INDICES,
    REDUCTIONS,
    TARGETS,
    Problem,
    boxes,
    indexed,
    some_rows,
    with_overlaps,
)
from torch import Tensor

pytestmark = pytest.mark.asan
SHAPES = [(10,), (2, 7)]
GIVEN = [INDICES, INDICES[:1], INDICES[1:]]


def check(values: Problem, upstream: Tensor | None = None) -> None:
    check_bounded(with_overlaps(values), upstream, by=("loss", "l1"))


@pytest.mark.parametrize("weight", [None, torch.float32])
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("given", GIVEN)
def test_one_index_or_both(
    implementation: Implementation,
    given: tuple[str, ...],
    shape: tuple[int, ...],
    reduction: str,
    weight: torch.dtype | None,
) -> None:
    check(indexed(shape, implementation.device, weight=weight, given=given, reduction=reduction))


@pytest.mark.parametrize("target_index", [torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("pred_index", [torch.int32, torch.int64], ids=str)
def test_index_dtypes(
    implementation: Implementation, pred_index: torch.dtype, target_index: torch.dtype
) -> None:
    values = indexed((2, 7), implementation.device)
    for name, dtype in zip(INDICES, (pred_index, target_index), strict=True):
        values[name] = values[name].to(dtype)
    check(values)


@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize("pred", FLOATING, ids=str)
def test_every_mix_of_dtypes_with_rows_in_several_pairs(
    implementation: Implementation, pred: torch.dtype, target: torch.dtype
) -> None:
    device = implementation.device
    check(indexed((40,), device, pred, target, reduction="none", most=6))
    check(indexed((3, 20), device, pred, target, weight=torch.float16, most=6))


@pytest.mark.parametrize("box_format", FORMATS)
@pytest.mark.parametrize("shape", SHAPES)
def test_formats(implementation: Implementation, shape: tuple[int, ...], box_format: str) -> None:
    formats = {"pred_format": box_format, "target_format": box_format}
    check(indexed(shape, implementation.device, reduction="none", **formats))


@pytest.mark.parametrize("normalizer", [2.5, [2.5, 0.75], [[2.5, 0.0]]])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.int64, torch.int32], ids=str)
def test_normalizers(implementation: Implementation, normalizer: Any, dtype: torch.dtype) -> None:
    device = implementation.device
    number = torch.tensor(normalizer, device=device).mul(4).to(dtype)
    if number.dim() == 2:  # one for all, in the shape of one for each
        number = number[0, :1].expand(2)
    check(indexed((2, 7), device, weight=torch.float32, normalizer=number))
    if number.dim() == 0:
        check(indexed((10,), device, weight=torch.float32, normalizer=number))


def test_normalizers_that_are_not_contiguous(implementation: Implementation) -> None:
    numbers = torch.tensor([3.0, 100.0, 0.5, 100.0], device=implementation.device)
    check(indexed((2, 7), implementation.device, normalizer=numbers[::2]))


@pytest.mark.parametrize("kind", ["sliced", "one number", "reversed"])
def test_strides_of_the_sets_gradient(implementation: Implementation, kind: str) -> None:
    numbers = torch.tensor([0.25, 9.0, -1.0, 9.0, 0.5], device=implementation.device)
    upstream = {
        "sliced": numbers[::2],
        "one number": numbers[2].expand(3),
        "reversed": numbers.view(1, 5)[:, :3].T[:, 0],
    }[kind]
    check(indexed((3, 6), implementation.device, reduction="sum"), upstream)


@pytest.mark.parametrize("name", INDICES)
def test_one_row_in_every_pair(implementation: Implementation, name: str) -> None:
    values = indexed((2, 20), implementation.device, weight=torch.float32, most=9)
    values[name] = torch.full_like(values[name], 3)
    check({**values, "reduction": "none"})


def test_the_same_pair_many_times(implementation: Implementation) -> None:
    """Its loss as often, and one gradient of all of them."""
    values = indexed((64,), implementation.device, reduction="sum", most=6)
    for name in INDICES:
        values[name] = torch.full_like(values[name], 4)
    check(values)
    once = box_losses(**{**values, **{name: values[name][:1] for name in INDICES}})
    many = box_losses(**values)
    assert many.loss.item() == pytest.approx(64 * once.loss.item(), rel=1e-6)
    assert many.l1.item() == pytest.approx(64 * once.l1.item(), rel=1e-6)
    assert torch.equal(many.iou, once.iou.expand(64))


def test_more_rows_and_pairs_than_one_task_has(implementation: Implementation) -> None:
    device = implementation.device
    lists = {"pred_list": (2, 40_000), "target_list": (35_000,)}
    # Not `check`, which would take seconds to make them overlap.
    check_bounded(indexed((2, 9_000), device, weight=torch.float32, **lists), by=("loss", "l1"))


def test_rows_that_32_bits_do_not_count(implementation: Implementation) -> None:
    """Of lists that are one row, expanded."""
    device = implementation.device
    rows = 2**33
    index = torch.tensor([0, 2**31, 2**32 + 5, rows - 1, rows, -1, -rows], device=device)
    counts = torch.tensor([True] * 4 + [False] * 3, device=device)
    one, other = boxes((1,), device, seed=1), boxes((7,), device, seed=2).requires_grad_()
    expected = box_losses(one.expand(7, 4), other, mask=counts, reduction="none")
    for name, shape in (("target", (rows,)), ("target", (2**16, 2**17)), ("pred", (2, rows // 2))):
        pred, target = (one.expand(*shape, 4), other)[:: 1 if name == "pred" else -1]
        actual = box_losses(pred, target, reduction="none", **{f"{name}_index": index})
        (gradient,) = torch.autograd.grad(actual.l1.sum(), other)
        assert torch.equal(gradient.any(-1), counts)
        for output in ("l1", "iou"):
            a, e = getattr(actual, output), getattr(expected, output)
            assert torch.allclose(a, e, rtol=1e-5, atol=0)


# --- Lists of any leading dimensions and strides ---


def views(device: torch.device) -> dict[str, Tensor]:
    """Lists of 24 rows or more, each row something else than its neighbours' and gaps' values."""
    image = boxes((2, 3, 4), device, seed=1)
    wide = torch.full((2, 3, 4, 9), float("nan"), device=device)
    wide[..., 3:7] = image
    gaps = torch.full((2, 6, 4, 4), float("nan"), device=device)
    gaps[:, ::2] = image
    return {
        "one dimension": boxes((24,), device, seed=1),
        "three dimensions": image,
        "four dimensions": boxes((2, 3, 2, 2), device, seed=1),
        "dimensions of one": boxes((1, 24, 1), device, seed=1),
        "slices of wider rows": wide[..., 3:7],
        "gaps": gaps[:, ::2],
        "transposed, as two numbers tell": boxes((6, 4), device, seed=1).transpose(0, 1),
        "transposed, as they do not": boxes((4, 3, 2), device, seed=1).permute(2, 1, 0, 3),
        "four dimensions, reversed": boxes((2, 2, 3, 2), device, seed=1).permute(3, 2, 1, 0, 4),
        "one row, expanded": boxes((1, 1), device, seed=1).expand(4, 6, 4),
        "one image, expanded": boxes((1, 6), device, seed=1).expand(4, 6, 4),
        "each row again and again": boxes((6, 1), device, seed=1).expand(6, 4, 4),
        "the middle one expanded": boxes((2, 1, 3), device, seed=1).expand(2, 4, 3, 4),
    }


@pytest.mark.parametrize("operand", ["pred", "target"])
@pytest.mark.parametrize("name", views(torch.device("cpu")))
def test_views(implementation: Implementation, name: str, operand: str) -> None:
    device = implementation.device
    view = views(device)[name]
    values = indexed((2, 13), device, pred_list=(24,), target_list=(24,), reduction="none")
    # Not `check`, which would make a copy.
    check_bounded({**values, operand: view}, by=("loss", "l1"))


@pytest.mark.parametrize("name", [n for n in views(torch.device("cpu")) if "dimension" not in n])
def test_an_operand_without_an_index_may_have_any_strides(
    implementation: Implementation, name: str
) -> None:
    device = implementation.device
    view = views(device)[name]
    view = view[0] if view.dim() == 4 else view
    shape = tuple(view.shape[:-1])
    for other in (INDICES[:1], INDICES[1:]):
        values = indexed(shape, device, given=other, pred_list=(24,), target_list=(24,))
        operand = "target" if other == INDICES[:1] else "pred"
        check_bounded({**values, operand: view}, by=("loss", "l1"))


@pytest.mark.parametrize("kind", ["transposed", "sliced", "expanded"])
def test_indices_that_are_not_contiguous(implementation: Implementation, kind: str) -> None:
    values = indexed((3, 8), implementation.device, pred_list=(24,), target_list=(24,))
    for seed, name in enumerate(INDICES):
        longer = some_rows((8, 6), 24, seed).to(values[name])
        values[name] = {
            "transposed": longer[:, :3].T,
            "sliced": longer.view(6, 8)[::2],
            "expanded": longer.flatten()[:8].expand(3, 8),
        }[kind]
        assert not values[name].is_contiguous()
    check(values)
