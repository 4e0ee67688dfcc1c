# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""torch.func and forward-mode AD against plain autograd."""

from collections.abc import Callable

import pytest
import torch
from boxloss.torch import GIoULoss, giou_loss
from comparison import UNIT_ROUNDOFF
from problems import PAIRINGS, Problem, boxes, problem
from torch import Tensor
from torch.autograd import forward_ad
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vmap

DOUBLE = torch.float64
# Values and derivatives here are below 2; some 200 roundings lie between two ways to get them.
TOLERANCE = 2 * 200 * UNIT_ROUNDOFF[DOUBLE]


def assert_same(actual: Tensor, expected: Tensor) -> None:
    assert actual.dtype == expected.dtype
    assert torch.allclose(actual, expected, rtol=0, atol=TOLERANCE)


def double_problem(pairing: str, device: torch.device, reduction: str = "mean") -> Problem:
    return problem(pairing, device, DOUBLE, DOUBLE, DOUBLE, reduction=reduction)


def by_autograd(values: Problem) -> Tensor:
    pred = values["pred"].detach().requires_grad_()
    return torch.autograd.grad(giou_loss(**{**values, "pred": pred}).sum(), pred)[0]


def of_pred(values: Problem) -> Callable[[Tensor], Tensor]:
    return lambda pred: giou_loss(**{**values, "pred": pred})


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_grad(device: torch.device, pairing: str) -> None:
    values = double_problem(pairing, device)
    function = of_pred(values)
    assert_same(grad(lambda pred: function(pred).sum())(values["pred"]), by_autograd(values))


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_jacobians(device: torch.device, pairing: str) -> None:
    values = double_problem(pairing, device, "none")
    function, pred = of_pred(values), values["pred"]
    by_rows = jacrev(function)(pred)
    assert_same(by_rows.sum(tuple(range(by_rows.dim() - 3))), by_autograd(values))
    assert_same(jacfwd(function)(pred), by_rows)


def test_hessian(device: torch.device) -> None:
    values = double_problem("mask", device)
    pred = values["pred"]
    assert_same(
        hessian(of_pred(values))(pred), torch.autograd.functional.hessian(of_pred(values), pred)
    )


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_forward_mode(device: torch.device, pairing: str) -> None:
    values = double_problem(pairing, device, "sum")
    pred = values["pred"]
    direction = torch.ones_like(pred)
    direction[..., 1::2] = -0.5
    wanted = (by_autograd(values) * direction).sum()
    loss, tangent = jvp(of_pred(values), (pred,), (direction,))
    assert_same(tangent.sum(), wanted)
    assert_same(loss, giou_loss(**values))
    with forward_ad.dual_level():
        dual = giou_loss(**{**values, "pred": forward_ad.make_dual(pred, direction)})
        assert_same(forward_ad.unpack_dual(dual).tangent, tangent)


@pytest.mark.parametrize("name", ["target", "weight"])
def test_forward_mode_through_another_input(device: torch.device, name: str) -> None:
    values = problem("dense", device, DOUBLE, DOUBLE, DOUBLE, reduction="sum")
    leaf = values[name].requires_grad_()
    (gradient,) = torch.autograd.grad(giou_loss(**values), leaf)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(leaf.detach(), torch.ones_like(leaf))
        result = forward_ad.unpack_dual(giou_loss(**{**values, name: dual}))
        assert_same(result.tangent, gradient.sum())


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_vmap(device: torch.device, reduction: str) -> None:
    pred, target = boxes((6, 5), device, DOUBLE, seed=1), boxes((6, 5), device, DOUBLE, seed=2)

    def function(p: Tensor, t: Tensor) -> Tensor:
        return giou_loss(p, t, reduction=reduction)

    one_by_one = torch.stack([function(p, t) for p, t in zip(pred, target, strict=True)])
    assert_same(vmap(function)(pred, target), one_by_one)
    against_first = torch.stack([function(p, target[0]) for p in pred])
    assert_same(vmap(function, in_dims=(0, None))(pred, target[0]), against_first)
    columns = vmap(function, in_dims=1)(pred.transpose(0, 1), target.transpose(0, 1))
    assert_same(columns, one_by_one)


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_vmap_over_every_pairing(device: torch.device, pairing: str) -> None:
    values = double_problem(pairing, device, "none")
    preds = torch.stack([values["pred"], values["pred"] + 1])
    one_by_one = torch.stack([of_pred(values)(pred) for pred in preds])
    assert_same(vmap(of_pred(values))(preds), one_by_one)


@pytest.mark.parametrize("pairing", ["lengths", "mask", "offsets"])
def test_vmap_over_the_pairing_itself(device: torch.device, pairing: str) -> None:
    values = double_problem(pairing, device, "mean")
    both = torch.stack([values[pairing], values[pairing].flip(0).sort(0).values])

    def function(indices: Tensor) -> Tensor:
        return giou_loss(**{**values, pairing: indices})

    assert_same(vmap(function)(both), torch.stack([function(each) for each in both]))


def test_vmap_of_grad(device: torch.device) -> None:
    pred, target = boxes((6, 5), device, DOUBLE, seed=1), boxes((6, 5), device, DOUBLE, seed=2)
    wanted = torch.stack(
        [by_autograd({"pred": p, "target": t}) for p, t in zip(pred, target, strict=True)]
    )
    assert_same(vmap(grad(giou_loss))(pred, target), wanted)


def test_the_module_in_a_functional_call(device: torch.device) -> None:
    pred, target = boxes((5,), device, DOUBLE, seed=1), boxes((5,), device, DOUBLE, seed=2)
    wanted = by_autograd({"pred": pred, "target": target})
    assert_same(grad(lambda p: functional_call(GIoULoss(), {}, (p, target)))(pred), wanted)
