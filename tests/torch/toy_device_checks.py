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
    hungarian_match,
    implementations,
    matching_cost,
    use_implementation,
)
from torch import Tensor
from torch_device import toy_device as toy_device  # gives torch the device

BACKEND = Path(os.environ["TOY_BACKEND"])


@pytest.fixture(autouse=True, scope="module")
def loaded() -> None:
    boxes = torch.rand(1, 3, 4).to("toy")
    for name, given in (
        ("box_loss", (boxes, boxes)),
        ("box_loss", (boxes.requires_grad_(), boxes)),
        ("box_losses", (boxes, boxes)),
        ("matching_cost", (boxes, boxes[0], torch.tensor([0, 3]).to("toy"))),
    ):
        text = rf"^{name}: no implementation computes on toy:0; this boxloss holds .*'aten'\)"
        with pytest.raises(RuntimeError, match=text):
            getattr(boxloss.torch, name)(*given)
    boxloss.load_backend(BACKEND)
    assert "toy/example" in implementations()


def boxes_of(*shape: int, seed: int = 0) -> Tensor:
    corners = torch.rand(*shape, 2, 2, generator=torch.Generator().manual_seed(seed))
    return torch.cat([corners.amin(-2), corners.amax(-2) + 0.01], dim=-1)


def loss_and_gradients(
    device: str, pred: Tensor, target: Tensor, **options: object
) -> list[Tensor]:
    pred = pred.to(device).detach().requires_grad_()
    target = target.to(device)
    tensors = {
        name: value.to(device) if isinstance(value, Tensor) else value
        for name, value in options.items()
    }
    loss = box_loss(pred, target, **tensors)
    assert loss.device.type == device
    loss.sum().backward()
    assert pred.grad is not None
    assert pred.grad.stride() == torch.empty_like(pred).stride()
    return [loss.detach().cpu(), pred.grad.cpu()]


# The same formula in the same arithmetic, but for products and sums that a compiler may fuse: some
# 40 roundings of float32 in values of at most 1 for a loss, twice over; gradients are divided by
# sides of at least 0.01.
LOSS_BOUND = 80 * 2.0**-24
GRADIENT_BOUND = 100 * LOSS_BOUND

PROBLEMS = {
    "dense": (boxes_of(2, 5), boxes_of(2, 5, seed=1), {}),
    "weighted": (boxes_of(7), boxes_of(7, seed=1), {"weight": torch.linspace(0, 1, 7)}),
    "mask": (boxes_of(4), boxes_of(4, seed=1), {"mask": torch.tensor([True, False, True, True])}),
    "planes": (boxes_of(2, 5).permute(0, 2, 1).contiguous().permute(0, 2, 1), boxes_of(2, 5), {}),
    "every other": (boxes_of(2, 10)[:, ::2], boxes_of(2, 5, seed=1), {}),
    "nothing": (boxes_of(0), boxes_of(0), {}),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_it_computes_as_the_cpu_does(name: str) -> None:
    pred, target, options = PROBLEMS[name]
    loss, gradient = loss_and_gradients("toy", pred, target, **options)
    right_loss, right_gradient = loss_and_gradients("cpu", pred, target, **options)
    torch.testing.assert_close(loss, right_loss, rtol=0, atol=LOSS_BOUND)
    torch.testing.assert_close(gradient, right_gradient, rtol=0, atol=GRADIENT_BOUND)


def test_a_meta_tensor_of_its_loss_is_on_it() -> None:
    with torch._subclasses.FakeTensorMode():
        fake = torch.empty(3, 4, device="toy")
        assert box_loss(fake, fake).device.type == "toy"


def test_compiled_code_keeps_its_operators() -> None:
    pred, target = boxes_of(5).to("toy").requires_grad_(), boxes_of(5, seed=1).to("toy")
    compiled = torch.compile(box_loss, backend="aot_eager", fullgraph=True)
    loss = compiled(pred, target)
    (gradient,) = torch.autograd.grad(loss, pred)
    right = box_loss(pred, target)
    assert torch.equal(loss.cpu(), right.cpu())
    assert torch.equal(gradient.cpu(), torch.autograd.grad(right, pred)[0].cpu())


def test_double_backward_is_in_its_own_operators() -> None:
    def second(device: str) -> Tensor:
        pred = boxes_of(5).to(device).requires_grad_()
        loss = box_loss(pred, boxes_of(5, seed=1).to(device))
        (first,) = torch.autograd.grad(loss, pred, create_graph=True)
        (gradient,) = torch.autograd.grad((first * first).sum(), pred)
        assert gradient.device.type == device
        return gradient.cpu()

    torch.testing.assert_close(second("toy"), second("cpu"))


def test_aten_serves_it_by_name_only() -> None:
    pred, target = boxes_of(5), boxes_of(5, seed=1)
    fused = loss_and_gradients("toy", pred, target)
    with use_implementation("aten"):
        composed = loss_and_gradients("toy", pred, target)
    torch.testing.assert_close(fused, composed)


def test_it_is_chosen_by_name() -> None:
    with use_implementation("toy/example"):
        loss_and_gradients("toy", boxes_of(3), boxes_of(3))
        loss_and_gradients("cpu", boxes_of(3), boxes_of(3))  # its own device's choice only
    with use_implementation("toy"):
        loss_and_gradients("toy", boxes_of(3), boxes_of(3))


def test_what_it_does_not_serve_is_refused() -> None:
    boxes = boxes_of(3).to("toy")
    index = torch.tensor([2, 0]).to("toy")
    with pytest.raises(TypeError, match="toy/example does not serve the pairing indexed"):
        box_loss(boxes, boxes, pred_index=index, target_index=index)
    with pytest.raises(TypeError, match="toy/example does not serve the output l1"):
        box_losses(boxes, boxes)
    offsets = torch.tensor([0, 3]).to("toy")
    with pytest.raises(TypeError, match="toy/example does not serve matching_cost"):
        matching_cost(boxes[None], boxes, offsets)


@pytest.mark.parametrize("is_on_device", [True, False])
def test_the_assignment_is_solved_on_the_host(is_on_device: bool) -> None:
    cost = torch.rand(2, 5, 6, generator=torch.Generator().manual_seed(0))
    offsets = torch.tensor([0, 2, 6])
    wanted = hungarian_match(cost, offsets)
    results = hungarian_match(cost.to("toy"), offsets.to("toy") if is_on_device else offsets)
    for result, each in zip(results, wanted, strict=True):
        assert result.device.type == "toy"
        assert torch.equal(result.cpu(), each)
    for result in hungarian_match(cost.to("toy"), offsets + 1):  # nobody looks
        assert torch.equal(result.cpu(), torch.full(result.shape, -1))


def test_devices_are_not_mixed() -> None:
    with pytest.raises(RuntimeError, match="target is on cpu, pred is on toy:0"):
        box_loss(boxes_of(3).to("toy"), boxes_of(3))


def test_it_is_loaded_once() -> None:
    before = implementations()
    with pytest.raises(ImportError, match="there is an implementation 'toy/example' already"):
        boxloss.load_backend(BACKEND)
    assert implementations() == before
