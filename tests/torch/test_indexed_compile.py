# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Pairs by index and box_losses in compiled, exported and scripted programs."""

from collections.abc import Callable

import pytest
import torch
from boxloss.torch import BoxLosses, box_loss, box_losses, giou_loss
from functorch.compile import make_boxed_func
from problems import PAIRINGS, Problem, boxes, indexed, problem
from torch import Tensor
from torch._dynamo.backends.common import aot_autograd
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

Step = Callable[[Tensor, Problem], Tensor]


pytestmark = pytest.mark.usefixtures("fresh_compiler")


def step(raw: Tensor, values: Problem) -> Tensor:
    """Exact but for what boxloss does, so that compiled code may not change a bit."""
    result = box_losses(**{**values, "pred": 2 * raw})
    return result.loss.sum() + 0.5 * result.l1.sum() + result.iou.max()


def assert_as_eager(compiled: Step, values: Problem) -> None:
    results = []
    for function in (compiled, step):
        raw = (values["pred"] / 2).requires_grad_()
        total = function(raw, values)
        results.append((total.detach(), *torch.autograd.grad(total, raw)))
    for actual, expected in zip(*results, strict=True):
        assert torch.equal(actual, expected)


@pytest.mark.parametrize("reduction", ["none", "mean"])
@pytest.mark.parametrize("pairing", PAIRINGS)
def test_every_pairing_traces_whole(device: torch.device, pairing: str, reduction: str) -> None:
    values = problem(pairing, device, weight=torch.float32, reduction=reduction)
    assert_as_eager(torch.compile(step, fullgraph=True, backend="aot_eager"), values)


@pytest.mark.usefixtures("cpp_compiler")
def test_a_training_step(device: torch.device) -> None:
    # No row in two pairs: in 16 bits two gradients of one round as a GPU's threads come to it.
    options: Problem = {"most": 1, "target_list": (14,), "reduction": "sum"}
    values = indexed((2, 7), device, torch.bfloat16, torch.uint8, **options)
    assert_as_eager(torch.compile(step, fullgraph=True), values)


def test_the_compiled_gradient_runs_the_fused_operators(device: torch.device) -> None:
    seen: list[str] = []

    def noting(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Callable[..., object]:
        seen.extend(str(n.target) for n in graph.graph.nodes if "boxloss" in str(n.target))
        return make_boxed_func(graph)

    compiled = torch.compile(step, fullgraph=True, backend=aot_autograd(fw_compiler=noting))
    assert_as_eager(compiled, problem("sets", device))
    assert seen == ["boxloss._box_loss_forward.default", "boxloss._box_loss_backward.default"]


def test_one_output_alone_does_not_see_the_others_nan(device: torch.device) -> None:
    """Without eps a point has a loss of 0 / 0."""

    @torch.compile(fullgraph=True, backend="aot_eager")
    def only_l1(pred: Tensor, target: Tensor, index: Tensor) -> Tensor:
        return box_losses(pred, target, pred_index=index, eps=0.0).l1

    pred = torch.ones(5, 4, device=device).requires_grad_()
    target = torch.zeros(2, 4, device=device)
    l1 = only_l1(pred, target, torch.tensor([3, 1], device=device))
    (gradient,) = torch.autograd.grad(l1, pred)
    assert gradient.sum(-1).tolist() == [0, 2, 0, 2, 0]


# --- Shapes that change ---

# Numbers of pairs, of rows of pred, of true boxes.
SIZES = [(7, 15, 12), (9, 20, 14), (4, 33, 6), (12, 18, 30)]


def sized(device: torch.device, pairs: int, rows: int, true_boxes: int, *sets: int) -> Problem:
    lists = {"pred_list": (rows,), "target_list": (true_boxes,)}
    return indexed((*sets, pairs), device, **lists)


@pytest.mark.parametrize("sets", [(), (2,)])
@pytest.mark.parametrize("dynamic", [True, None])
def test_changing_sizes_compile_once_more_at_most(
    device: torch.device, dynamic: bool | None, sets: tuple[int, ...]
) -> None:
    graphs = 0

    def counting(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> torch.fx.GraphModule:
        nonlocal graphs
        graphs += 1
        return graph

    compiled = torch.compile(box_losses, fullgraph=True, dynamic=dynamic, backend=counting)
    for sizes in SIZES:
        values = sized(device, *sizes, *sets)
        actual = compiled(**values)
        assert isinstance(actual, BoxLosses)
        for a, e in zip(actual, box_losses(**values), strict=True):
            assert torch.equal(a, e)
    assert graphs == (1 if dynamic else 2)


@pytest.mark.parametrize("sets", [(), (2,)])
def test_gradients_for_sizes_that_change(device: torch.device, sets: tuple[int, ...]) -> None:
    compiled = torch.compile(step, fullgraph=True, dynamic=True, backend="aot_eager")
    for sizes in SIZES:
        assert_as_eager(compiled, sized(device, *sizes, *sets))


def matched(pred: Tensor, target: Tensor, good: Tensor) -> Tensor:
    """How many pairs there are is not known while compiling."""
    pred_index, target_index = good.nonzero().unbind(-1)
    result = box_losses(pred, target, pred_index=pred_index, target_index=target_index)
    return result.loss + result.l1


def goods(device: torch.device) -> list[Tensor]:
    some = torch.rand(6, 5, generator=torch.Generator().manual_seed(0)).to(device) < 0.3
    return [some, ~some, torch.zeros_like(some)]


def test_a_number_of_pairs_that_only_data_tells(device: torch.device) -> None:
    pred, target = boxes((6,), device, seed=1), boxes((5,), device, seed=2)
    compiled = torch.compile(matched, fullgraph=True, backend="aot_eager")
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        for good in goods(device):
            results = []
            for function in (compiled, matched):
                leaf = pred.clone().requires_grad_()
                total = function(leaf, target, good)
                results.append((total.detach(), *torch.autograd.grad(total, leaf)))
            for actual, expected in zip(*results, strict=True):
                assert torch.equal(actual, expected)


def test_such_a_number_under_a_transform(device: torch.device) -> None:
    """The composite formula knows as little of it."""
    pred, target = boxes((6,), device, seed=1), boxes((5,), device, seed=2)

    def gradient(pred: Tensor, good: Tensor) -> Tensor:
        index = good.nonzero().unbind(-1)
        return torch.func.grad(
            lambda pred: giou_loss(pred, target, pred_index=index[0], target_index=index[1])
        )(pred)

    compiled = torch.compile(gradient, fullgraph=True, backend="aot_eager")
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        for good in goods(device):
            actual, expected = compiled(pred, good), gradient(pred, good)
            assert torch.allclose(actual, expected, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_fake_tensors_of_unknown_sizes(device: torch.device, reduction: str) -> None:
    values = indexed((3, 7), device, torch.float16, weight=torch.float32, reduction=reduction)
    values["normalizer" if reduction == "mean" else "eps"] = (
        torch.ones(3, device=device) if reduction == "mean" else 1e-3
    )
    with FakeTensorMode(shape_env=ShapeEnv()) as mode:
        fake = {
            name: mode.from_tensor(v, static_shapes=False) if isinstance(v, Tensor) else v
            for name, v in values.items()
        }
        fake["pred"].requires_grad_()
        result = box_losses(**fake)
        (result.loss.sum() + result.l1.sum()).backward()
    sets, pairs = fake["pred_index"].shape
    assert isinstance(pairs, torch.SymInt)
    assert result.loss.shape == ((sets, pairs) if reduction == "none" else (sets,))
    assert result.l1.shape == result.loss.shape
    assert result.iou.shape == (sets, pairs)
    assert result.iou.device == values["pred"].device
    assert fake["pred"].grad.shape == fake["pred"].shape
    assert fake["pred"].grad.dtype == torch.float16


# --- Exported and scripted ---


class Matched(torch.nn.Module):
    def forward(
        self, pred: Tensor, target: Tensor, pred_index: Tensor, target_index: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        loss, l1, iou = box_losses(
            pred, target, pred_index=pred_index, target_index=target_index, reduction="sum"
        )
        return loss, l1, iou


@pytest.mark.parametrize("strict", [False, True])
def test_export(device: torch.device, strict: bool) -> None:
    rows, true_boxes, sets, pairs = map(torch.export.Dim, ("rows", "true_boxes", "sets", "pairs"))
    by_set = {0: sets, 1: pairs}
    shapes = {"pred": {0: rows}, "target": {0: true_boxes}}
    shapes |= {"pred_index": by_set, "target_index": by_set}
    values = sized(device, *SIZES[0], 2)
    program = torch.export.export(Matched(), (), values, dynamic_shapes=shapes, strict=strict)
    assert "boxloss.box_losses.default" in [str(node.target) for node in program.graph.nodes]
    for sizes in SIZES:
        values = sized(device, *sizes, 3)
        for actual, expected in zip(program.module()(**values), Matched()(**values), strict=True):
            assert torch.equal(actual, expected)


# torch warns of scripting itself.
@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
def test_script(device: torch.device) -> None:
    @torch.jit.script
    def scripted(
        pred: Tensor, target: Tensor, pred_index: Tensor, target_index: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        loss, l1, iou = torch.ops.boxloss.box_losses(
            pred, target, "ciou", pred_index=pred_index, target_index=target_index
        )
        return loss, l1, iou

    values = problem("sets", device)
    results = []
    for function in (scripted, lambda **values: box_losses(**values, loss="ciou")):
        pred = values["pred"].detach().requires_grad_()
        loss, l1, iou = function(**{**values, "pred": pred})
        results.append((loss, l1, iou, *torch.autograd.grad((loss + l1).sum(), pred)))
    for actual, expected in zip(*results, strict=True):
        assert torch.equal(actual, expected)


def test_dtypes_and_losses_of_one_graph(device: torch.device) -> None:
    """Words are constants of the graph, so that a new one compiles anew and is not the old."""
    compiled = torch.compile(box_loss, fullgraph=True, backend="aot_eager")
    values = problem("indices", device)
    for loss in ("giou", "siou"):
        for dtype in (torch.int32, torch.int64):
            typed = {**values, "loss": loss, "pred_index": values["pred_index"].to(dtype)}
            assert torch.equal(compiled(**typed), box_loss(**typed))
