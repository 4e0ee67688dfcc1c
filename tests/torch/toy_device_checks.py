# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Tensors on a device that only a backend from outside serves. test_backends.py runs this in a
process of its own, with the path of the backend in TOY_BACKEND."""

import os
from pathlib import Path

import boxloss
import boxloss.torch
import pytest
import torch
from boxloss.torch import (
    box_loss,
    box_losses,
    class_loss,
    distribution_loss,
    hungarian_match,
    implementations,
    linear_sum_assignment,
    matching_cost,
    use_implementation,
)
from comparison import BOX_GRADIENT, LOSS, assert_within, run
from layouts import Arrange, contiguous, in_planes, slot_gaps
from losses_of_logits import class_problem
from problems import Problem, boxes, problem
from torch import Tensor
from torch_device import toy_device as toy_device  # gives torch the device

CPU = torch.device("cpu")
BACKEND = Path(os.environ["TOY_BACKEND"])


@pytest.fixture(autouse=True, scope="module")
def loaded() -> None:
    pred = boxes((1, 3), CPU).to("toy")
    for name, given in (
        ("box_loss", (pred, pred)),
        ("box_loss", (pred.requires_grad_(), pred)),
        ("box_losses", (pred, pred)),
        ("matching_cost", (pred, pred[0], torch.tensor([0, 3]).to("toy"))),
    ):
        text = rf"^{name}: no implementation computes on toy:0; this boxloss holds .*'aten'\)"
        with pytest.raises(RuntimeError, match=text):
            getattr(boxloss.torch, name)(*given)
    boxloss.load_backend(BACKEND)
    assert "toy/example" in implementations()


def on_toy(values: Problem) -> Problem:
    return {n: each.to("toy") if isinstance(each, Tensor) else each for n, each in values.items()}


def assert_same(actual: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    """The same formula in the same arithmetic, but for products and sums that may be fused."""
    for name, result in actual.items():
        assert result.device.type == "toy"
        wanted = expected[name].cpu().double()
        bound = BOX_GRADIENT if name in ("pred", "target") else LOSS
        largest = wanted.abs().amax() if wanted.numel() else 0.0
        assert_within(result, wanted, 2 * bound * 2.0**-24 * largest, name)


@pytest.mark.parametrize("layout", [contiguous, in_planes, slot_gaps])
@pytest.mark.parametrize("pairing", ["dense", "lengths", "mask", "offsets"])
def test_it_computes_as_the_cpu_does(pairing: str, layout: Arrange) -> None:
    values = problem(pairing, CPU, weight=torch.float32, reduction="none")
    values["pred"] = layout(values["pred"])
    results = run(on_toy(values))
    assert_same(results, run(values))
    assert results["pred"].stride() == torch.empty_like(values["pred"]).stride()


def test_nothing_on_it() -> None:
    none = {"pred": boxes((0,), CPU), "target": boxes((0,), CPU)}
    assert_same(run(on_toy(none)), run(none))


def test_a_meta_tensor_of_its_loss_is_on_it() -> None:
    with torch._subclasses.FakeTensorMode():
        fake = torch.empty(3, 4, device="toy")
        assert box_loss(fake, fake).device.type == "toy"


def test_compiled_code_keeps_its_operators() -> None:
    values = on_toy(problem("dense", CPU))
    compiled = torch.compile(box_loss, backend="aot_eager", fullgraph=True)
    pred = values["pred"].requires_grad_()
    loss = compiled(**values)
    (gradient,) = torch.autograd.grad(loss, pred)
    right = run(values, torch.ones(()))
    assert torch.equal(loss.cpu(), right["loss"].cpu())
    assert torch.equal(gradient.cpu(), right["pred"].cpu())


def test_double_backward_is_in_its_own_operators() -> None:
    def second(values: Problem) -> Tensor:
        pred = values["pred"].detach().requires_grad_()
        loss = box_loss(**{**values, "pred": pred})
        (first,) = torch.autograd.grad(loss, pred, create_graph=True)
        return torch.autograd.grad((first * first).sum(), pred)[0]

    values = problem("dense", CPU)
    result = second(on_toy(values))
    assert result.device.type == "toy"
    torch.testing.assert_close(result.cpu(), second(values))


def test_aten_serves_it_by_name_only() -> None:
    values = problem("mask", CPU)
    fused = run(on_toy(values))
    with use_implementation("aten"):
        assert_same(run(on_toy(values)), {name: each.cpu() for name, each in fused.items()})


@pytest.mark.parametrize("name", ["toy/example", "toy"])
def test_it_is_chosen_by_name(name: str) -> None:
    values = problem("dense", CPU)
    with use_implementation(name):
        run(on_toy(values))
        run(values)  # its own device's choice only


def test_what_it_does_not_serve_is_refused() -> None:
    pred = boxes((3,), CPU).to("toy")
    index = torch.tensor([2, 0]).to("toy")
    with pytest.raises(TypeError, match="toy/example does not serve the pairing indexed"):
        box_loss(pred, pred, pred_index=index, target_index=index)
    with pytest.raises(TypeError, match="toy/example does not serve the output l1"):
        box_losses(pred, pred)
    offsets = torch.tensor([0, 3]).to("toy")
    with pytest.raises(TypeError, match="toy/example does not serve matching_cost"):
        matching_cost(pred[None], pred, offsets)
    with pytest.raises(TypeError, match="toy/example does not serve class_loss"):
        class_loss(pred, index[[0, 0, 1]], index, mode="focal")
    teacher = {"teacher": pred, "confidence": pred[:, 0]}
    with pytest.raises(TypeError, match="toy/example does not serve distribution_loss"):
        distribution_loss(pred, index[[0, 0, 1]], mode="ddf", **teacher)


def test_aten_has_a_class_loss_of_it_with_its_gradient() -> None:
    values = class_problem("mal", CPU)
    results = []
    with use_implementation("aten"):
        for given in (values, on_toy(values)):
            logits = given["logits"].detach().requires_grad_()
            loss = class_loss(**{**given, "logits": logits})
            results += [loss.detach(), *torch.autograd.grad(loss.sum(), logits)]
    for result, wanted in zip(results[2:], results[:2], strict=True):
        assert result.device.type == "toy"
        torch.testing.assert_close(result.cpu(), wanted)


@pytest.mark.parametrize("is_on_device", [True, False])
def test_assignments_are_solved_on_the_host(is_on_device: bool) -> None:
    """Nobody looks at offsets and lengths that lead outside."""
    cost = torch.rand(3, 5, 6, generator=torch.Generator().manual_seed(0))
    offsets, lengths = torch.tensor([0, 2, 6]), torch.tensor([[5, 6], [2, 3], [5, 7]])
    of_lengths = linear_sum_assignment(cost, lengths=lengths.clamp(max=6), cost_limit=0.5)
    for each in of_lengths:
        each[2] = -1
    given, there = cost.to("toy"), "toy" if is_on_device else "cpu"
    found = linear_sum_assignment(given, lengths=lengths.to(there), cost_limit=0.5)
    matches = hungarian_match(given, offsets.to(there))
    results = *found, *linear_sum_assignment(given), *matches
    wanted = *of_lengths, *linear_sum_assignment(cost), *hungarian_match(cost, offsets)
    for result, each in zip(results, wanted, strict=True):
        assert result.device.type == "toy"
        assert torch.equal(result.cpu(), each)
    for result in hungarian_match(given, offsets + 1):
        assert (result.cpu() == -1).all()


def test_it_is_loaded_once() -> None:
    before = implementations()
    with pytest.raises(ImportError, match="there is an implementation 'toy/example' already"):
        boxloss.load_backend(BACKEND)
    assert implementations() == before
