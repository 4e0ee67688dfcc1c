# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""First and second derivatives as autograd sees them."""

from collections.abc import Callable

import pytest
import torch
from boxloss.torch import giou_loss
from comparison import BOX_GRADIENT, differentiable, roundoff
from problems import FORMATS, PAIRINGS, REDUCTIONS, Problem, boxes, problem
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

DOUBLE = torch.float64


def as_function(values: Problem) -> tuple[Callable[..., Tensor], tuple[Tensor, ...]]:
    """The loss as a function of the differentiable tensors alone, and those tensors."""
    leaves = differentiable(values)

    def function(*tensors: Tensor) -> Tensor:
        return giou_loss(**{**values, **dict(zip(leaves, tensors, strict=True))})

    return function, tuple(leaves.values())


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("pairing", PAIRINGS)
def test_gradcheck_pairings(device: torch.device, pairing: str, reduction: str) -> None:
    # A padded target is told by its zeros, so it cannot be moved to see what changes.
    target = torch.int64 if pairing == "zero_padded" else DOUBLE
    values = problem(pairing, device, DOUBLE, target, DOUBLE, reduction=reduction)
    assert gradcheck(*as_function(values))
    assert gradgradcheck(*as_function(values), fast_mode=True)


@pytest.mark.parametrize("eps_mode", ["add", "clamp"])
@pytest.mark.parametrize("target_format", FORMATS)
@pytest.mark.parametrize("pred_format", FORMATS)
def test_gradcheck_formats(
    device: torch.device, pred_format: str, target_format: str, eps_mode: str
) -> None:
    values = problem(
        "mask",
        device,
        DOUBLE,
        DOUBLE,
        pred_format=pred_format,
        target_format=target_format,
        eps_mode=eps_mode,
    )
    assert gradcheck(*as_function(values))
    assert gradgradcheck(*as_function(values), fast_mode=True)


def test_gradcheck_with_a_normalizer(device: torch.device) -> None:
    values = problem("offsets", device, DOUBLE, DOUBLE, DOUBLE)
    values["normalizer"] = torch.tensor(1.5, device=device)
    assert gradcheck(*as_function(values))
    assert gradgradcheck(*as_function(values), fast_mode=True)


def test_a_normalizer_has_no_gradient(device: torch.device) -> None:
    values = problem("dense", device)
    values["pred"].requires_grad_()
    normalizer = torch.tensor(2.0, device=device, requires_grad=True)
    giou_loss(**values, normalizer=normalizer).backward()
    assert values["pred"].grad is not None
    loss = giou_loss(**values, normalizer=normalizer)
    (gradient,) = torch.autograd.grad(loss, values["pred"], create_graph=True)
    gradient.sum().backward()
    assert normalizer.grad is None


@pytest.mark.parametrize("wanted", ["pred", "target", "weight"])
@pytest.mark.parametrize("pairing", PAIRINGS)
def test_only_what_is_asked_for(device: torch.device, pairing: str, wanted: str) -> None:
    values = problem(pairing, device, DOUBLE, DOUBLE, DOUBLE)
    everything = differentiable(values)
    giou_loss(**{**values, **everything}).sum().backward()
    values[wanted] = values[wanted].detach().requires_grad_()
    giou_loss(**values).sum().backward()
    for name, tensor in everything.items():
        if name == wanted:
            # Boxes are longer than 4 and weights below 2.
            apart = 2 * 2 * BOX_GRADIENT / 4 * roundoff(DOUBLE)
            assert torch.allclose(values[name].grad, tensor.grad, rtol=0, atol=apart)
        else:
            assert values[name].grad is None


def test_an_integer_target_has_no_gradient(device: torch.device) -> None:
    values = problem("dense", device, target_dtype=torch.uint8)
    values["pred"].requires_grad_()
    giou_loss(**values).backward()
    assert values["pred"].grad is not None
    assert values["target"].grad is None


def test_backward_twice_through_one_graph(device: torch.device) -> None:
    values = problem("mask", device)
    values["pred"].requires_grad_()
    loss = giou_loss(**values)
    (first,) = torch.autograd.grad(loss, values["pred"], retain_graph=True)
    (again,) = torch.autograd.grad(loss, values["pred"])
    assert torch.equal(first, again)


def test_inputs_changed_before_backward_are_noticed(device: torch.device) -> None:
    values = problem("dense", device)
    values["pred"].requires_grad_()
    loss = giou_loss(**values)
    values["target"].mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def target_is_pred_reordered(x: Tensor) -> Tensor:
    return giou_loss(x, x.flip(0) + 1)


def target_made_from_pred(x: Tensor) -> Tensor:
    return giou_loss(x, 1.25 * x + torch.tensor([0.5, -1, 0.25, 2], device=x.device).double())


def pred_made_from_target(x: Tensor) -> Tensor:
    return giou_loss(1.25 * x + torch.tensor([0.5, -1, 0.25, 2], device=x.device).double(), x)


def weight_made_from_pred(x: Tensor) -> Tensor:
    target = boxes((6,), x.device, DOUBLE, seed=9)
    return giou_loss(x, target, weight=x.sum(-1), reduction="sum")


@pytest.mark.parametrize(
    "function",
    [
        target_is_pred_reordered,
        target_made_from_pred,
        pred_made_from_target,
        weight_made_from_pred,
    ],
)
def test_inputs_that_depend_on_each_other(
    device: torch.device, function: Callable[[Tensor], Tensor]
) -> None:
    x = boxes((6,), device, DOUBLE, seed=8).requires_grad_()
    assert gradcheck(function, x)
    (gradient,) = torch.autograd.grad(function(x), x)
    (with_graph,) = torch.autograd.grad(function(x), x, create_graph=True)
    # Two ways to the same derivatives, below 10, some 100 roundings apart.
    assert torch.allclose(gradient, with_graph, rtol=0, atol=10 * 100 * 2.0**-53)
    assert gradgradcheck(function, x, fast_mode=True)


def test_the_same_tensor_twice(device: torch.device) -> None:
    # At the ties of identical boxes of area A everything cancels but the areas over eps:
    # loss = 1 - A / (A + eps), the mean of six.
    x = boxes((6,), device, DOUBLE, seed=8).requires_grad_()
    sides = (x[:, 2:] - x[:, :2]).detach()
    by_area = -4 / (sides.prod(-1, keepdim=True) + 4) ** 2 / 6
    by_x2_y2 = by_area * sides.flip(-1)
    for creates_graph in (False, True):
        loss = giou_loss(x, x, eps=4.0)
        (gradient,) = torch.autograd.grad(loss, x, create_graph=creates_graph)
        wanted = torch.cat((-by_x2_y2, by_x2_y2), -1)
        # Some 50 roundings of terms below 1.
        assert torch.allclose(gradient, wanted, rtol=0, atol=1e-14)
