# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Compiled and exported programs hold the operator whole, without graph breaks."""

from collections.abc import Callable

import pytest
import torch
from boxloss.torch import GIoULoss, giou_loss
from functorch.compile import make_boxed_func
from problems import PAIRINGS, Problem, boxes, problem
from torch import Tensor
from torch._dynamo.backends.common import aot_autograd

Step = Callable[[Tensor, Problem], Tensor]


pytestmark = pytest.mark.usefixtures("fresh_compiler")


def step(raw: Tensor, values: Problem) -> Tensor:
    """A head's output in steps that are exact, so that compiled code may not change a bit."""
    return giou_loss(**{**values, "pred": 2 * raw[..., :4]})


def head_output(values: Problem) -> Tensor:
    raw = torch.cat((values["pred"] / 2, torch.ones_like(values["pred"])), -1)
    return raw.requires_grad_()


def loss_and_gradient(function: Step, values: Problem) -> tuple[Tensor, Tensor]:
    raw = head_output(values)
    loss = function(raw, values)
    (gradient,) = torch.autograd.grad(loss.sum(), raw)
    return loss.detach(), gradient


def assert_as_eager(compiled: Step, values: Problem) -> None:
    actual, expected = loss_and_gradient(compiled, values), loss_and_gradient(step, values)
    for a, e in zip(actual, expected, strict=True):
        assert torch.equal(a, e)


@pytest.mark.usefixtures("cpp_compiler")
def test_a_training_step(device: torch.device) -> None:
    compiled = torch.compile(step, fullgraph=True)
    assert_as_eager(compiled, problem("offsets", device, torch.bfloat16, torch.uint8))


@pytest.mark.usefixtures("cpp_compiler")
def test_a_training_step_without_python(device: torch.device) -> None:
    with torch._inductor.config.patch(cpp_wrapper=True):
        compiled = torch.compile(step, fullgraph=True)
        assert_as_eager(compiled, problem("offsets", device, torch.bfloat16, torch.uint8))
        assert_as_eager(compiled, problem("sets", device, weight=torch.float32, reduction="none"))


@pytest.mark.parametrize("reduction", ["none", "mean"])
@pytest.mark.parametrize("pairing", PAIRINGS)
def test_every_pairing_traces_whole(device: torch.device, pairing: str, reduction: str) -> None:
    values = problem(pairing, device, weight=torch.float32, reduction=reduction)
    assert_as_eager(torch.compile(step, fullgraph=True, backend="aot_eager"), values)


def test_shapes_that_change_compile_once(device: torch.device) -> None:
    graphs = 0

    def counting(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> torch.fx.GraphModule:
        nonlocal graphs
        graphs += 1
        return graph

    compiled = torch.compile(giou_loss, fullgraph=True, dynamic=True, backend=counting)
    for images, slots in ((3, 5), (4, 6), (2, 9)):
        pred = boxes((images, slots), device, seed=1)
        target = boxes((images, slots), device, seed=2)
        lengths = torch.full((images,), slots - 1, device=device)
        loss = compiled(pred, target, lengths=lengths)
        assert torch.equal(loss, giou_loss(pred, target, lengths=lengths))
    assert graphs == 1


def test_gradients_for_shapes_that_change(device: torch.device) -> None:
    compiled = torch.compile(step, fullgraph=True, dynamic=True, backend="aot_eager")
    for rows in (12, 17, 30):
        values = problem("offsets", device)
        values["target"] = boxes((rows,), device, seed=rows)
        assert_as_eager(compiled, values)


def test_no_graph_breaks(device: torch.device) -> None:
    values = problem("mask", device)
    explanation = torch._dynamo.explain(step)(head_output(values), values)
    assert explanation.graph_count == 1
    assert explanation.graph_break_count == 0


def test_the_compiled_gradient_runs_the_fused_operators(device: torch.device) -> None:
    seen: list[str] = []

    def noting(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Callable[..., object]:
        seen.extend(str(n.target) for n in graph.graph.nodes if "boxloss" in str(n.target))
        return make_boxed_func(graph)

    compiled = torch.compile(step, fullgraph=True, backend=aot_autograd(fw_compiler=noting))
    assert_as_eager(compiled, problem("lengths", device))
    assert seen == ["boxloss._box_loss_forward.default", "boxloss._box_loss_backward.default"]


def masked(pred: Tensor, target: Tensor, mask: Tensor) -> Tensor:
    """As detectors write it: how many boxes there are is not known while compiling."""
    return giou_loss(pred[mask], target[mask], reduction="sum")


def masked_inputs(device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    values = problem("mask", device)
    return values["pred"], values["target"], values["mask"]


def test_masked_boxes_compile_whole(device: torch.device) -> None:
    pred, target, mask = masked_inputs(device)
    compiled = torch.compile(masked, fullgraph=True, backend="aot_eager")
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        for some in (mask, ~mask, torch.zeros_like(mask)):
            results = []
            for function in (compiled, masked):
                leaf = pred.clone().requires_grad_()
                loss = function(leaf, target, some)
                results.append((loss.detach(), *torch.autograd.grad(loss, leaf)))
            for actual, expected in zip(*results, strict=True):
                assert torch.equal(actual, expected)


def test_masked_boxes_export(device: torch.device) -> None:
    class Masked(torch.nn.Module):
        def forward(self, pred: Tensor, target: Tensor, mask: Tensor) -> Tensor:
            return masked(pred, target, mask)

    pred, target, mask = masked_inputs(device)
    program = torch.export.export(Masked(), (pred, target, mask), strict=True)
    for some in (mask, ~mask):
        assert torch.equal(program.module()(pred, target, some), masked(pred, target, some))


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_masked_boxes_under_a_transform(device: torch.device, reduction: str) -> None:
    """The composite formula knows as little of their number."""

    def gradient(pred: Tensor, target: Tensor, mask: Tensor) -> Tensor:
        def loss(pred: Tensor) -> Tensor:
            return giou_loss(pred, target[mask], reduction=reduction).sum()

        return torch.func.grad(loss)(pred[mask])

    inputs = masked_inputs(device)
    compiled = torch.compile(gradient, fullgraph=True, backend="aot_eager")
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        assert torch.allclose(compiled(*inputs), gradient(*inputs), rtol=1e-5, atol=0)


def test_export(device: torch.device) -> None:
    values = problem("offsets", device)
    arguments = (values["pred"], values["target"], None, None, None, None, values["offsets"])
    rows = torch.export.Dim("rows")
    program = torch.export.export(
        GIoULoss(reduction="none"),
        arguments,
        dynamic_shapes=(None, {0: rows}, None, None, None, None, None),
        strict=True,
    )
    targets = [str(node.target) for node in program.graph.nodes]
    assert "boxloss.box_loss.default" in targets
    longer = boxes((20,), device, seed=7)
    arguments = (arguments[0], longer, *arguments[2:])
    assert torch.equal(program.module()(*arguments), GIoULoss(reduction="none")(*arguments))
