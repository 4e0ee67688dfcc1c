# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Compiled, exported and scripted programs hold the operators whole, without graph breaks."""

import importlib
import io
from collections.abc import Callable
from typing import Any

import boxloss.torch
import numpy
import pytest
import torch
from boxloss.torch import (
    BoxLosses,
    GIoULoss,
    MatchResult,
    box_loss,
    box_losses,
    class_loss,
    distribution_loss,
    giou_loss,
    hungarian_match,
    matching_cost,
    max_iou_match,
    pairwise_iou,
    task_aligned_match,
)
from combinations import every_other_long, pairwise
from comparison import differentiable, outputs_of
from functorch.compile import make_boxed_func
from problems import (
    ANGLE_UNITS,
    INDICES,
    PAIRINGS,
    Problem,
    boxes,
    indexed,
    problem,
    random_weight,
    with_overlaps,
)
from torch import Tensor
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.testing import CompileCounterWithBackend
from torch._dynamo.utils import counters
from torch._inductor.utils import fresh_cache
from torch.utils._pytree import tree_structure, treespec_dumps

BOTH = ("loss", "l1")
Step = Callable[..., tuple[Tensor, ...]]

pytestmark = pytest.mark.usefixtures("fresh_compiler")


def step(raw: Tensor, values: Problem, by: tuple[str, ...] = BOTH) -> tuple[Tensor, ...]:
    """Exact but for what boxloss does, so that compiled code may not change a bit."""
    return tuple(
        outputs_of({**values, "pred": 2 * raw[..., : values["target"].shape[-1]]}, by).values()
    )


def assert_as_eager(compiled: Step, eager: Step, raw: Tensor, *arguments: Any) -> None:
    results = []
    for function in (compiled, eager):
        leaf = raw.detach().requires_grad_()
        outputs = function(leaf, *arguments)
        total = sum(output.sum() for output in outputs[:2])
        results.append((*(o.detach() for o in outputs), *torch.autograd.grad(total, leaf)))
    for actual, expected in zip(*results, strict=True):
        assert torch.equal(actual, expected)
        assert actual.stride() == expected.stride()


def noting(seen: list[str]) -> Any:
    """A backend that notes the operators of boxloss in what it compiles."""

    def note(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Callable[..., object]:
        seen.extend(str(n.target) for n in graph.graph.nodes if "boxloss" in str(n.target))
        return make_boxed_func(graph)

    return aot_autograd(fw_compiler=note)


def head_output(values: Problem) -> Tensor:
    return torch.cat((values["pred"] / 2, torch.ones_like(values["pred"])), -1)


@pytest.mark.parametrize(
    "case",
    every_other_long(
        pairwise(
            pairing=PAIRINGS,
            loss=("giou", "siou", "mpdiou"),
            reduction=("none", "mean"),
            by=[(), BOTH],
        )
        + pairwise(
            pairing=PAIRINGS,
            loss=("giou", "kld"),
            reduction=("none", "mean"),
            by=[()],
            angle_unit=ANGLE_UNITS,
        )
    ),
)
def test_a_step_compiles_whole(device: torch.device, case: dict[str, Any]) -> None:
    options = {name: case[name] for name in ("reduction", "loss", "angle_unit") if name in case}
    values = problem(case["pairing"], device, weight=torch.float32, **options)
    values = with_overlaps(values)
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    assert_as_eager(compiled, step, head_output(values), values, case["by"])


# What torch.compile generates is slow to build, so that each of these shows something of its own.
@pytest.mark.long
@pytest.mark.usefixtures("cpp_compiler")
@pytest.mark.parametrize(("pairing", "without_python"), [("sets", False), ("offsets", True)])
def test_a_training_step(device: torch.device, pairing: str, without_python: bool) -> None:
    # No row in two pairs: in 16 bits two gradients of one round as a GPU's threads come to it.
    options: Problem = {"most": 1, "target_list": (14,)} if pairing == "sets" else {}
    values = problem(pairing, device, torch.bfloat16, torch.uint8, reduction="sum", **options)
    with torch._inductor.config.patch(cpp_wrapper=without_python):
        compiled = torch.compile(step, fullgraph=True)
        by = BOTH if pairing == "sets" else ()
        assert_as_eager(compiled, step, head_output(values), values, by)


@pytest.mark.long
@pytest.mark.usefixtures("cpp_compiler")
def test_graphs_on_disk_are_of_one_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """Private operators, which they call, may differ in the next."""

    def is_found() -> bool:
        torch._dynamo.reset()
        counters.clear()
        torch.compile(giou_loss)(torch.ones(3, 4).requires_grad_(), torch.ones(3, 4)).backward()
        return bool(counters["aot_autograd"]["autograd_cache_hit"])

    config = torch.compiler.config
    with fresh_cache(), config.patch(cache_key_tag=config.cache_key_tag):
        assert not is_found()
        assert is_found()
        monkeypatch.setattr(boxloss, "__version__", "0.0")
        importlib.reload(boxloss.torch._library)
        assert not is_found()


@pytest.mark.long
@pytest.mark.usefixtures("cpp_compiler")
def test_boxes_as_convolutions_give_them(device: torch.device) -> None:
    def of_head(head: Tensor, target: Tensor) -> tuple[Tensor]:
        return (box_loss((2 * head).permute(0, 2, 3, 1), target, "ciou"),)

    compiled = torch.compile(of_head, fullgraph=True, dynamic=True)
    for shape in ((2, 3, 5), (4, 7, 2)):
        head = boxes(shape, device, seed=1).movedim(-1, 1).contiguous() / 2
        assert_as_eager(compiled, of_head, head, boxes(shape, device, seed=2))


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


@pytest.mark.parametrize(("pairing", "by"), [("dense", ()), ("offsets", ("l1",)), ("sets", BOTH)])
def test_a_backward_pass_alone_compiles(
    device: torch.device, pairing: str, by: tuple[str, ...]
) -> None:
    """Compiled autograd, of a criterion that runs eagerly beside a compiled network."""
    values = problem(pairing, device, weight=torch.float32, reduction="sum")
    gradients: list[dict[str, Tensor]] = []
    for backend in ("eager", "aot_eager"):
        leaves = differentiable(values)
        outputs = outputs_of({**values, **leaves}, by)
        total = torch.stack([outputs[name].sum() for name in by or ("loss",)]).sum()
        with torch._dynamo.config.patch(compiled_autograd=backend != "eager"):
            torch.compile(lambda loss: loss.backward(), backend=backend)(total)
        gradients.append({name: leaf.grad for name, leaf in leaves.items()})
    eager, compiled = gradients
    assert all(torch.equal(compiled[name], eager[name]) for name in eager)


# --- Shapes that change ---

# Numbers of pairs or images, of rows of pred or slots, of ground-truth boxes.
SIZES = [(7, 15, 12), (9, 20, 14), (4, 33, 6), (12, 18, 30)]


def sized(pairing: str, device: torch.device, pairs: int, rows: int, true_boxes: int) -> Problem:
    if pairing == "sets":
        lists = {"pred_list": (rows,), "target_list": (true_boxes,)}
        return indexed((2 + rows % 2, pairs), device, **lists)
    values = {"pred": boxes((pairs, rows), device, seed=1)}
    if pairing == "lengths":
        lengths = torch.full((pairs,), rows - 1, device=device)
        return {**values, "target": boxes((pairs, rows), device, seed=2), "lengths": lengths}
    offsets = torch.arange(pairs + 1, device=device).clamp(max=true_boxes)
    return {**values, "target": boxes((true_boxes,), device, seed=2), "offsets": offsets}


@pytest.mark.parametrize(
    ("pairing", "dynamic"), [("lengths", True), ("offsets", True), ("sets", True), ("sets", None)]
)
def test_changing_sizes_compile_once_more_at_most(
    device: torch.device, pairing: str, dynamic: bool | None
) -> None:
    seen: list[str] = []
    compiled = torch.compile(step, fullgraph=True, dynamic=dynamic, backend=noting(seen))
    for sizes in SIZES:
        values = sized(pairing, device, *sizes)
        values |= random_weight(values, torch.float16)
        if pairing == "sets":
            values["normalizer"] = torch.arange(3.0, 3 + len(values["weight"]), device=device)
        assert_as_eager(compiled, step, values["pred"] / 2, values)
    fused = [f"boxloss._box_losses_{way}.default" for way in ("forward", "backward")]
    assert seen == fused * (1 if dynamic else 2)


NORMALIZERS: dict[str, Callable[[float], Any]] = {
    "a number": lambda number: number,
    "numpy's": numpy.float32,
    "of data": torch.tensor,
}


@pytest.mark.parametrize("kind", NORMALIZERS)
def test_changing_normalizers_compile_once_more_at_most(device: torch.device, kind: str) -> None:
    def normalized(pred: Tensor, target: Tensor, given: Any) -> tuple[Tensor]:
        number = given.item() if isinstance(given, Tensor) else given
        return (
            box_loss(pred, target, normalizer=number),
        )  # torch 2.11 makes constants of its half

    pred, target = boxes((6,), device, seed=1), boxes((6,), device, seed=2)
    seen = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(normalized, fullgraph=True, backend=seen)
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        for number in (2.5, 3.5, 0.1, 1e4, 7.0):
            assert_as_eager(compiled, normalized, pred, target, NORMALIZERS[kind](number))
    assert seen.frame_count <= 2


def masked(pred: Tensor, target: Tensor, good: Tensor) -> tuple[Tensor]:
    """As detectors write it: how many boxes there are is not known while compiling."""
    pred_index, target_index = good.nonzero().unbind(-1)
    return (giou_loss(pred[pred_index], target[target_index], reduction="sum"),)


def matched(pred: Tensor, target: Tensor, good: Tensor) -> tuple[Tensor, ...]:
    pred_index, target_index = good.nonzero().unbind(-1)
    return box_losses(pred, target, pred_index=pred_index, target_index=target_index)[:2]


@pytest.mark.parametrize("function", [masked, matched])
def test_a_number_of_pairs_that_only_data_tells(device: torch.device, function: Step) -> None:
    pred, target = boxes((6,), device, seed=1), boxes((5,), device, seed=2)
    some = torch.rand(6, 5, generator=torch.Generator().manual_seed(0)).to(device) < 0.3
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        for good in (some, ~some, torch.zeros_like(some)):
            assert_as_eager(compiled, function, pred, target, good)


def of_some_images(of: dict[str, Tensor], images: Tensor, rows: Tensor) -> list[Tensor]:
    """How many images and boxes are kept is not known, either."""
    pred, logits, labels = of["pred"][images], of["logits"][images], of["labels"][rows]
    target = of["target"][rows]
    offsets = of["offsets"][torch.cat((images.new_ones(1), images))]  # a number of its own
    boxes = {"target": target, "offsets": offsets}
    cost = matching_cost(pred, logits=logits, labels=labels, **boxes)
    scores, points, limits = logits.sigmoid(), of["pred"][0, :, :2], {"high": 0.5, "low": 0.3}
    given = of["class_cost"][:, rows.clone()]  # likewise
    matches = hungarian_match(cost, offsets)
    sides = torch.cat((pred, scores.new_zeros(1).expand_as(pred)), -1)  # of two bins
    teacher = {"teacher": sides.flip(-1), "confidence": scores[..., 0]}
    return [
        cost,
        matching_cost(pred, class_cost=given, **boxes),
        pairwise_iou(pred, **boxes),
        *matches,
        class_loss(logits, matches.target_of_query, labels, mode="focal"),
        distribution_loss(sides, matches.target_of_query, mode="ddf", **teacher),
        *max_iou_match(of["pred"][0], **boxes, **limits),
        *max_iou_match(pred, **boxes, **limits),
        *task_aligned_match(scores, pred, points, labels=labels, **boxes),
        *box_losses(pred, reduction="sum", **boxes),
    ]


def test_a_number_of_images_that_only_data_tells(device: torch.device) -> None:
    of = {"pred": boxes((6, 7), device, seed=1), "target": boxes((12,), device, seed=2)}
    of["logits"] = torch.rand(6, 7, 3, generator=torch.Generator().manual_seed(0)).to(device)
    of["labels"] = torch.arange(12, device=device) % 3
    of["class_cost"] = torch.rand(7, 12, generator=torch.Generator().manual_seed(1)).to(device)
    of["offsets"] = torch.arange(7, device=device)
    compiled = torch.compile(of_some_images, fullgraph=True, backend="aot_eager")
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        for every in (1, 2, 3, 7):
            images = torch.arange(6, device=device) % every == every - 1
            rows = torch.arange(12, device=device) < 12 - every
            actual, expected = (call(of, images, rows) for call in (compiled, of_some_images))
            assert all(map(torch.equal, actual, expected))


# --- Exported and scripted ---


class Named(torch.nn.Module):
    def forward(
        self, pred: Tensor, target: Tensor, cost: Tensor, offsets: Tensor
    ) -> tuple[BoxLosses, MatchResult]:
        return box_losses(pred, target), hungarian_match(cost, offsets)


def test_named_results_are_stored(device: torch.device) -> None:
    given = (boxes((5,), device, seed=1), boxes((5,), device, seed=2))
    given += (torch.rand(3, 4, device=device), torch.tensor([0, 4], device=device))
    stored = io.BytesIO()
    torch.export.save(torch.export.export(Named(), given), stored)
    stored.seek(0)
    results = torch.export.load(stored).module()(*given)
    for result, wanted in zip(results, Named()(*given), strict=True):
        assert type(result) is type(wanted)
        assert all(map(torch.equal, result, wanted))


def test_all_named_tuples_have_names_to_be_stored_by() -> None:
    each = [getattr(boxloss.torch, name) for name in boxloss.torch.__all__]
    kinds = [kind for kind in each if hasattr(kind, "_fields")]
    assert kinds
    for kind in kinds:
        text = treespec_dumps(tree_structure(kind(*kind._fields)))
        assert f"boxloss.torch.{kind.__name__}" in text


class Matched(torch.nn.Module):
    def forward(
        self, pred: Tensor, target: Tensor, pred_index: Tensor, target_index: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        loss, l1, iou = box_losses(
            pred, target, pred_index=pred_index, target_index=target_index, reduction="sum"
        )
        return loss, l1, iou


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("pairing", ["offsets", "sets"])
def test_export(device: torch.device, pairing: str, strict: bool) -> None:
    rows, true_boxes, sets, pairs = map(torch.export.Dim, ("rows", "true_boxes", "sets", "pairs"))
    if pairing == "sets":
        module, operator = Matched(), "boxloss.box_losses.default"
        index = {name: {0: sets, 1: pairs} for name in INDICES}
        shapes = {"pred": {0: rows}, "target": {0: true_boxes}, **index}
    else:
        module, operator = GIoULoss(reduction="none"), "boxloss.box_loss.default"
        shapes = {"pred": {1: rows}, "target": {0: true_boxes}, "offsets": None}
    sizes = [(7, *others) for _, *others in SIZES] if pairing == "offsets" else SIZES
    values = sized(pairing, device, *sizes[0])
    program = torch.export.export(module, (), values, dynamic_shapes=shapes, strict=strict)
    assert operator in [str(node.target) for node in program.graph.nodes]
    for each in sizes:
        values = sized(pairing, device, *each)
        for actual, expected in zip(program.module()(**values), module(**values), strict=True):
            assert torch.equal(actual, expected)
