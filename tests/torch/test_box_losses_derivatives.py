# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""box_losses' derivatives of both orders, in every mode, and function transforms."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from boxloss.torch import box_loss, box_losses
from comparison import UNIT_ROUNDOFF, differentiable, run
from formula import box_losses as formula_losses
from problems import (
    INDICES,
    PAIRINGS,
    REDUCTIONS,
    Problem,
    boxes,
    indexed,
    on_cpu,
    problem,
    with_overlaps,
)
from torch import Tensor
from torch.autograd import forward_ad, gradcheck, gradgradcheck
from torch.func import grad, jacfwd, jacrev, jvp, vjp, vmap

DOUBLE = torch.float64
BY = [("loss",), ("l1",), ("loss", "l1")]


def assert_same(actual: Tensor, expected: Tensor) -> None:
    """Two ways in double, some 1000 roundings of the largest value apart."""
    expected = expected.to(actual.device)
    largest = max(float(expected.abs().max()), 1.0) if expected.numel() else 1.0
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    assert (actual - expected).abs().le(1000 * UNIT_ROUNDOFF[DOUBLE] * largest).all()


def double_problem(pairing: str, device: torch.device, **options: Any) -> Problem:
    return with_overlaps(problem(pairing, device, DOUBLE, DOUBLE, DOUBLE, **options))


def as_function(
    values: Problem, by: tuple[str, ...]
) -> tuple[Callable[..., tuple[Tensor, ...]], tuple[Tensor, ...]]:
    """Some outputs as a function of the differentiable tensors alone, and those tensors."""
    leaves = differentiable(values)

    def function(*tensors: Tensor) -> tuple[Tensor, ...]:
        results = box_losses(**{**values, **dict(zip(leaves, tensors, strict=True))})
        return tuple(getattr(results, name) for name in by)

    return function, tuple(leaves.values())


@pytest.mark.parametrize("by", BY, ids="+".join)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("pairing", [name for name in PAIRINGS if name != "zero_padded"])
def test_gradcheck(device: torch.device, pairing: str, reduction: str, by: tuple[str, ...]) -> None:
    function, leaves = as_function(double_problem(pairing, device, reduction=reduction), by)
    assert gradcheck(function, leaves, fast_mode=True)
    assert gradgradcheck(function, leaves, fast_mode=True)


@pytest.mark.parametrize("given", [INDICES[:1], INDICES[1:]])
def test_gradcheck_with_one_index_and_rows_in_many_pairs(
    device: torch.device, given: tuple[str, ...]
) -> None:
    normalizer = torch.tensor([1.5, 0.25], device=device)
    options: Problem = {"given": given, "normalizer": normalizer, "most": 9}
    values = indexed((2, 30), device, DOUBLE, DOUBLE, DOUBLE, **options)
    formats = {"pred_format": "cxcywh", "target_format": "cxcywh"}
    function, leaves = as_function({**values, **formats}, ("loss", "l1"))
    # A GPU adds up to 60 pairs to a row in any order: 60 roundings of 2^-53 of sums below 1000.
    order = 60 * 1000 * 2**-53 if device.type == "cuda" else 0.0
    assert gradcheck(function, leaves, fast_mode=True, nondet_tol=order)
    assert gradgradcheck(function, leaves, fast_mode=True, nondet_tol=order)


def test_gradcheck_in_forward_mode(device: torch.device) -> None:
    function, leaves = as_function(double_problem("sets", device), ("loss", "l1"))
    assert gradcheck(function, leaves, fast_mode=True, check_forward_ad=True)


def derivatives(function: Callable[..., Any], values: Problem, by: tuple[str, ...]) -> list[Tensor]:
    """The first by all of `by`, and second ones through all of those."""
    leaves = differentiable(values)
    results = function(**{**values, **leaves})
    results = results if isinstance(results, dict) else results._asdict()
    total = sum(((2 + i) * results[name]).square().sum() for i, name in enumerate(by))
    first = torch.autograd.grad(total, tuple(leaves.values()), create_graph=True)
    mixed = sum((g.square() * (1 + i)).sum() for i, g in enumerate(first))
    return [g.detach() for g in (*first, *torch.autograd.grad(mixed, tuple(leaves.values())))]


@pytest.mark.parametrize("by", BY, ids="+".join)
@pytest.mark.parametrize("pairing", PAIRINGS)
def test_second_derivatives_are_the_formulas(
    device: torch.device, pairing: str, by: tuple[str, ...]
) -> None:
    values = double_problem(pairing, device)
    actual = derivatives(box_losses, values, by)
    expected = derivatives(formula_losses, on_cpu(values), by)
    for a, e in zip(actual, expected, strict=True):
        assert e.any()
        assert_same(a, e)


@pytest.mark.parametrize("by", BY, ids="+".join)
def test_no_nan_of_pairs_that_do_not_count_twice(device: torch.device, by: tuple[str, ...]) -> None:
    values = double_problem("sets", device, eps=0.0)
    clean = derivatives(box_losses, values, by)
    used = torch.zeros(15, dtype=torch.bool)
    used[values["pred_index"].cpu().clamp(0, 14).flatten()] = True
    values["pred"].view(-1, 4)[(~used).to(device)] = float("nan")
    for a, e in zip(derivatives(box_losses, values, by), clean, strict=True):
        assert torch.equal(a, e)


# --- Modes and transforms, which take another way ---


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("pairing", PAIRINGS)
def test_transforms_are_the_fused_results(
    device: torch.device, pairing: str, reduction: str
) -> None:
    values = double_problem(pairing, device, reduction=reduction)
    names = ("pred", "target", "weight")
    tensors = tuple(values[name] for name in names)

    def function(*tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(box_losses(**{**values, **dict(zip(names, tensors, strict=True))}))

    ones = torch.ones_like(box_loss(**values))
    fused = run(values, ones, by=("loss", "l1"))
    outputs, back = vjp(function, *tensors)
    for name, output in zip(("loss", "l1", "iou"), outputs, strict=True):
        assert_same(output, fused[name])
    zero = torch.zeros_like(outputs[2])
    for name, gradient in zip(names, back((ones, ones, zero)), strict=True):
        assert_same(gradient, fused[name])
    total = grad(lambda *tensors: sum(each.sum() for each in function(*tensors)[:2]), (0, 1, 2))
    for name, gradient in zip(names, total(*tensors), strict=True):
        assert_same(gradient, fused[name])

    directions = tuple(torch.linspace(-1, 1, t.numel()).to(t).reshape(t.shape) for t in tensors)
    _, tangents = jvp(function, tensors, directions)
    wanted = sum(
        (fused[name] * direction).sum() for name, direction in zip(names, directions, strict=True)
    )
    assert_same(tangents[0].sum() + tangents[1].sum(), wanted)
    assert not tangents[2].any()


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_jacobians(device: torch.device, pairing: str) -> None:
    values = double_problem(pairing, device)

    def function(pred: Tensor) -> Tensor:
        result = box_losses(**{**values, "pred": pred})
        return torch.stack((result.loss, result.l1))

    by_rows = jacrev(function)(values["pred"])
    assert_same(jacfwd(function)(values["pred"]), by_rows)
    wanted = run(values, torch.ones_like(box_loss(**values)), by=("l1",))["pred"]
    by_l1 = by_rows[1]
    assert_same(by_l1.sum(0) if by_l1.dim() > wanted.dim() else by_l1, wanted)


def test_dual_tensors(device: torch.device) -> None:
    values = double_problem("sets", device)
    direction = torch.linspace(-1, 1, values["pred"].numel(), device=device, dtype=DOUBLE)
    direction = direction.reshape(values["pred"].shape)

    def function(pred: Tensor) -> tuple[Tensor, ...]:
        return tuple(box_losses(**{**values, "pred": pred}))

    _, tangents = jvp(function, (values["pred"],), (direction,))
    with forward_ad.dual_level():
        results = function(forward_ad.make_dual(values["pred"], direction))
        loss, l1, iou = (forward_ad.unpack_dual(result) for result in results)
        assert_same(loss.tangent, tangents[0])
        assert_same(l1.tangent, tangents[1])
        assert iou.tangent is None or not iou.tangent.any()
    for dual, output in zip((loss, l1, iou), box_losses(**values), strict=True):
        assert_same(dual.primal, output)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_vmap_over_indices_is_one_call_with_sets(device: torch.device, reduction: str) -> None:
    values = double_problem("sets", device, reduction=reduction)
    together = box_losses(**values)
    mapped = (*INDICES, "weight")

    def function(*of_set: Tensor) -> tuple[Tensor, ...]:
        return tuple(box_losses(**{**values, **dict(zip(mapped, of_set, strict=True))}))

    for actual, expected in zip(
        vmap(function)(*(values[name] for name in mapped)), together, strict=True
    ):
        assert_same(actual, expected)


@pytest.mark.parametrize("operand", ["pred", "target", "both"])
def test_vmap_over_lists(device: torch.device, operand: str) -> None:
    values = double_problem("sets", device)
    names = ("pred", "target") if operand == "both" else (operand,)
    several = [torch.stack((values[n], values[n] + 1, 2 * values[n])) for n in names]

    def function(*lists: Tensor) -> tuple[Tensor, ...]:
        return tuple(box_losses(**{**values, **dict(zip(names, lists, strict=True))}))

    for i, actual in enumerate(vmap(function)(*several)):
        wanted = torch.stack([function(*(each[k] for each in several))[i] for k in range(3)])
        assert_same(actual, wanted)


def test_vmap_of_grad(device: torch.device) -> None:
    values = double_problem("indices", device)
    preds = torch.stack((values["pred"], values["pred"] + 1))

    def l1(pred: Tensor) -> Tensor:
        return box_losses(**{**values, "pred": pred}).l1

    wanted = torch.stack(
        [run({**values, "pred": p}, torch.ones(()), by=("l1",))["pred"] for p in preds]
    )
    assert_same(vmap(grad(l1))(preds), wanted)


# --- Inputs that depend on each other ---


def one_list(x: Tensor) -> Tensor:
    """Each box with its successor."""
    device = x.device
    pred_index = torch.tensor([0, 1, 2, 3, -1, 4], device=device)
    target_index = torch.tensor([1, 2, 3, 4, 0, 9], device=device)
    loss, l1, _ = box_losses(x, x, pred_index=pred_index, target_index=target_index)
    return loss + l1


def target_made_from_pred(x: Tensor) -> Tensor:
    index = torch.tensor([[4, 1, 1], [0, -1, 3]], device=x.device)
    target = 1.25 * x + torch.tensor([0.5, -1, 0.25, 2], device=x.device, dtype=DOUBLE)
    loss, l1, _ = box_losses(x, target, pred_index=index, target_index=index.flip(1))
    return loss + l1


def weight_made_from_pred(x: Tensor) -> Tensor:
    index = torch.tensor([4, 1, 1, 9, 0, 2], device=x.device)
    target = boxes((6,), x.device, DOUBLE, seed=9)
    loss, l1, _ = box_losses(x, target, weight=x.sum(-1), pred_index=index)
    return loss + l1


@pytest.mark.parametrize("function", [one_list, target_made_from_pred, weight_made_from_pred])
def test_inputs_that_depend_on_each_other(
    device: torch.device, function: Callable[[Tensor], Tensor]
) -> None:
    x = boxes((6,), device, DOUBLE, seed=8).requires_grad_()
    assert gradcheck(function, x)
    (gradient,) = torch.autograd.grad(function(x).sum(), x)
    (with_graph,) = torch.autograd.grad(function(x).sum(), x, create_graph=True)
    assert_same(gradient, with_graph.detach())
    assert gradgradcheck(function, x, fast_mode=True)


def test_a_box_with_itself(device: torch.device) -> None:
    x = boxes((6,), device, DOUBLE, seed=8).requires_grad_()
    index = torch.tensor([0, 5, 5], device=device)
    for creates_graph in (False, True):
        result = box_losses(x, x, "iou", pred_index=index, target_index=index, eps=0.0)
        # I times 1 / I is 1 but for two roundings.
        assert result.loss.abs().le(2 * UNIT_ROUNDOFF[DOUBLE]).all()
        assert (result.iou - 1).abs().le(2 * UNIT_ROUNDOFF[DOUBLE]).all()
        assert not result.l1.any()
        (gradient,) = torch.autograd.grad(result.l1, x, create_graph=creates_graph)
        assert not gradient.any()
