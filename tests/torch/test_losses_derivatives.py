# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""First and second derivatives of every loss, as autograd and torch.func see them."""

from collections.abc import Callable

import formula
import pytest
import torch
from boxloss.torch import box_loss
from comparison import UNIT_ROUNDOFF, differentiable
from formulas import LOSSES
from problems import PAIRINGS, Problem, boxes, on_cpu, problem, with_overlaps
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.func import grad, jacfwd, jacrev, jvp, vmap

DOUBLE = torch.float64
EPS_MODES = ("add", "clamp")
# alpha is a constant to the gradient, which numerical differences do not know.
WITHOUT_CONSTANTS = [loss for loss in LOSSES if loss not in ("ciou", "ciou_gated")]


def assert_same(actual: Tensor, expected: Tensor) -> None:
    """Two ways in double, some 1000 roundings of the largest value apart."""
    expected = expected.to(actual.device)
    largest = max(float(expected.abs().max()), 1.0)
    error = 1000 * UNIT_ROUNDOFF[DOUBLE] * largest
    assert actual.dtype == expected.dtype
    assert torch.allclose(actual, expected, rtol=0, atol=error)


def double_problem(loss: str, device: torch.device, pairing: str = "mask") -> Problem:
    options = {"loss": loss, "reduction": "none"}
    return with_overlaps(problem(pairing, device, DOUBLE, DOUBLE, DOUBLE, **options))


@pytest.mark.parametrize("eps_mode", EPS_MODES)
@pytest.mark.parametrize("loss", WITHOUT_CONSTANTS)
def test_gradcheck(device: torch.device, loss: str, eps_mode: str) -> None:
    values = {**double_problem(loss, device), "eps_mode": eps_mode, "pred_format": "cxcywh"}
    leaves = differentiable(values)

    def function(*tensors: Tensor) -> Tensor:
        return box_loss(**{**values, **dict(zip(leaves, tensors, strict=True))})

    assert gradcheck(function, tuple(leaves.values()), fast_mode=True)
    assert gradgradcheck(function, tuple(leaves.values()), fast_mode=True)


def derivatives(function: Callable[..., Tensor], values: Problem) -> list[Tensor]:
    """The first, and second ones through all of them."""
    leaves = tuple(differentiable(values).values())
    named = dict(zip(differentiable(values), leaves, strict=True))
    loss = function(**{**values, **named})
    factors = torch.linspace(-1, 1, loss.numel(), dtype=DOUBLE, device=loss.device)
    first = torch.autograd.grad(loss, leaves, factors.reshape(loss.shape), create_graph=True)
    mixed = sum((g.square() * (1 + index)).sum() for index, g in enumerate(first))
    return [g.detach() for g in (*first, *torch.autograd.grad(mixed, leaves))]


@pytest.mark.parametrize("eps_mode", EPS_MODES)
@pytest.mark.parametrize("pairing", PAIRINGS)
@pytest.mark.parametrize("loss", LOSSES)
def test_second_derivatives_are_the_formulas(
    device: torch.device, loss: str, pairing: str, eps_mode: str
) -> None:
    values = {**double_problem(loss, device, pairing), "eps_mode": eps_mode}
    actual = derivatives(box_loss, values)
    expected = derivatives(formula.box_loss, on_cpu(values))
    for a, e in zip(actual, expected, strict=True):
        assert_same(a, e)


@pytest.mark.parametrize("loss", LOSSES)
def test_transforms_are_autograd(device: torch.device, loss: str) -> None:
    values = double_problem(loss, device)
    pred = values["pred"]

    def function(pred: Tensor) -> Tensor:
        return box_loss(**{**values, "pred": pred})

    leaf = pred.detach().requires_grad_()
    (wanted,) = torch.autograd.grad(function(leaf).sum(), leaf)
    by_rows = jacrev(function)(pred)
    assert_same(by_rows.sum((0, 1)), wanted)
    assert_same(jacfwd(function)(pred), by_rows)
    assert_same(grad(lambda p: function(p).sum())(pred), wanted)
    direction = torch.linspace(-1, 1, pred.numel(), dtype=DOUBLE, device=device).reshape(pred.shape)
    value, tangent = jvp(function, (pred,), (direction,))
    assert_same(value, function(pred))
    assert_same(tangent, (wanted * direction).sum(-1))


@pytest.mark.parametrize("loss", LOSSES)
def test_vmap(device: torch.device, loss: str) -> None:
    pred, target = boxes((4, 5), device, DOUBLE, seed=1), boxes((4, 5), device, DOUBLE, seed=2)

    def function(p: Tensor, t: Tensor) -> Tensor:
        return box_loss(p, t, loss, reduction="none")

    one_by_one = torch.stack([function(p, t) for p, t in zip(pred, target, strict=True)])
    assert_same(vmap(function)(pred, target), one_by_one)
    against_first = torch.stack([function(p, target[0]) for p in pred])
    assert_same(vmap(function, in_dims=(0, None))(pred, target[0]), against_first)


@pytest.mark.parametrize("loss", LOSSES)
def test_equal_boxes_and_boxes_without_area_twice(device: torch.device, loss: str) -> None:
    # Where quotients are set to constants, no NaN reaches a second derivative.
    pred = torch.tensor(
        [[1.0, 2.0, 5.0, 4.0], [1.0, 1.0, 1.0, 1.0], [0.0, 2.0, 4.0, 2.0], [4.0, 5.0, 2.0, 1.0]],
        device=device,
        dtype=DOUBLE,
    )
    target = pred.clone()
    values = {"pred": pred, "target": target, "loss": loss, "reduction": "none", "eps": 0.5}
    actual = derivatives(box_loss, values)
    expected = derivatives(formula.box_loss, on_cpu(values))
    for a, e in zip(actual, expected, strict=True):
        assert torch.isfinite(a).all()
        assert_same(a, e)
