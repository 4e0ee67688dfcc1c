# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Jagged nested tensors, whose losses are those of their values."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from boxloss.torch import (
    BoxLoss,
    BoxLosses,
    box_loss,
    box_losses,
    ciou_loss,
    class_loss,
    distribution_loss,
    giou_loss,
    hungarian_match,
    linear_sum_assignment,
    matching_cost,
    pairwise_iou,
    rotated_box_loss,
)
from problems import REDUCTIONS, boxes
from torch import Tensor

COUNTS = (3, 0, 6, 1)
SLOTS = 5  # fewer than image 2 has boxes
FUNCTIONS = [box_loss, box_losses, giou_loss, ciou_loss, BoxLoss("siou")]


def nested(
    device: torch.device, seed: int, dtype: torch.dtype = torch.float32, counts: Any = COUNTS
) -> Tensor:
    images = [boxes((count,), device, dtype, seed=seed + i) for i, count in enumerate(counts)]
    return torch.nested.as_nested_tensor(images, layout=torch.jagged)


def each(results: Tensor | BoxLosses) -> tuple[Tensor, ...]:
    return tuple(results) if isinstance(results, BoxLosses) else (results,)


def assert_are(results: Any, values: Any, offsets: Tensor) -> None:
    """Those of the values, where there is one for each box in the images' structure."""
    for result, wanted in zip(each(results), each(values), strict=True):
        if wanted.dim():
            assert result.is_nested
            assert torch.equal(result.offsets(), offsets)
            result = result.values()
        assert torch.equal(result, wanted)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_values(device: torch.device, function: Any, reduction: str) -> None:
    """Of nested boxes pair by pair, and of predictions in slots."""
    options = {"reduction": reduction}
    if isinstance(function, BoxLoss):
        function, options = BoxLoss("siou", **options), {}
    target = nested(device, 9, torch.uint8)
    rows, offsets = target.values(), target.offsets()
    pred, slots = nested(device, 1), boxes((len(COUNTS), SLOTS), device, seed=1)
    of_pairs, of_slots = function(pred, target, **options), function(slots, target, **options)
    assert_are(of_pairs, function(pred.values(), rows, **options), offsets)
    assert_are(of_slots, function(slots, rows, offsets=offsets, **options), offsets)
    if reduction == "none":
        assert each(of_pairs)[0].shape == each(of_slots)[0].shape == target.shape[:2]


def test_rotated_boxes(device: torch.device) -> None:
    def with_angles(boxes: Tensor) -> Tensor:
        return torch.nested.nested_tensor_from_jagged(boxes.values()[:, [0, 1, 2, 3, 0]], offsets)

    offsets = nested(device, 9).offsets()
    pred, target = with_angles(nested(device, 1)), with_angles(nested(device, 9))
    options: Any = {"loss": "kld", "reduction": "none"}
    losses = rotated_box_loss(pred, target, **options)
    assert_are(losses, rotated_box_loss(pred.values(), target.values(), **options), offsets)
    with pytest.raises(ValueError, match=r"nested it must be \(images, boxes of each, 5\)$"):
        rotated_box_loss(pred, nested(device, 9), "iou")


@pytest.mark.parametrize("is_nested", [True, False])
@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_gradients_reach_the_leaves(device: torch.device, is_nested: bool, reduction: str) -> None:
    pred = nested(device, 1) if is_nested else boxes((len(COUNTS), SLOTS), device, seed=1)
    leaves = [pred, nested(device, 9), nested(device, 5)[..., 0] * 0.01]
    leaves = [leaf.detach().requires_grad_() for leaf in leaves]
    plain = [leaf.detach() if not leaf.is_nested else leaf.detach().values() for leaf in leaves]
    plain = [leaf.clone().requires_grad_() for leaf in plain]

    def total(loss: Tensor) -> Tensor:
        return (loss.values() if loss.is_nested else loss).sum()

    offsets = None if is_nested else leaves[1].offsets()
    total(box_loss(*leaves[:2], weight=leaves[2], reduction=reduction)).backward()
    total(box_loss(*plain[:2], weight=plain[2], offsets=offsets, reduction=reduction)).backward()
    for leaf, wanted in zip(leaves, plain, strict=True):
        assert leaf.grad.shape == leaf.shape
        gradient = leaf.grad.values() if leaf.is_nested else leaf.grad
        assert torch.equal(gradient, wanted.grad)


def test_weight_and_mask(device: torch.device) -> None:
    pred, target = nested(device, 1), nested(device, 9)
    weight, mask = target[..., 0], target[..., 1] > 20
    wanted = box_loss(pred.values(), target.values(), weight=weight.values(), mask=mask.values())
    assert not mask.values().all()
    assert torch.equal(box_loss(pred, target, weight=weight, mask=mask), wanted)
    flat = box_loss(pred, target, weight=weight.values(), mask=mask.values())
    assert torch.equal(flat, wanted)


@pytest.mark.parametrize(("is_nested", "reduction"), [(True, "none"), (False, "sum")])
@pytest.mark.filterwarnings("ignore:.*_stable_hash_for_caching:UserWarning")
def test_compiled_whole(
    device: torch.device, fresh_compiler: None, is_nested: bool, reduction: str
) -> None:
    # torch cannot give a view with two dimensions out of a graph if it is nested.
    def values(pred: Tensor, target: Tensor) -> Tensor:
        loss = box_loss(pred, target, reduction=reduction)
        return loss.values() if loss.is_nested else loss

    compiled = torch.compile(values, fullgraph=True, backend="aot_eager")
    for counts in (COUNTS, (2, 4)):
        target = nested(device, 9, counts=counts)
        dense = boxes((len(counts), SLOTS), device, seed=1)
        pred = nested(device, 1, counts=counts) if is_nested else dense
        results = []
        for function in (compiled, values):
            leaf = pred.detach().clone().requires_grad_()
            loss = function(leaf, target)
            loss.sum().backward()
            results.append((loss, leaf.grad.values() if is_nested else leaf.grad))
        assert all(torch.equal(*pair) for pair in zip(*results, strict=True))


def test_gaps(device: torch.device) -> None:
    starts = torch.tensor([0, 1, 2, 0], device=device)
    padded = boxes((4, 6), device, seed=9)
    counts = torch.tensor(COUNTS, device=device).clamp(max=4)
    target = torch.nested.narrow(padded, 1, starts, counts, layout=torch.jagged)
    pred = boxes((4, 6), device, seed=1)
    with pytest.raises(ValueError, match=r"^box_loss: target is nested and has gaps, as "):
        box_loss(pred, target)
    rows = torch.cat(
        [padded[b, s : s + n] for b, (s, n) in enumerate(zip(starts, counts, strict=True))]
    )
    wanted = box_loss(pred, rows, offsets=target.contiguous().offsets())
    assert torch.equal(box_loss(pred, target.contiguous()), wanted)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype stage")
@pytest.mark.parametrize("function", [box_loss, box_losses])
def test_errors(device: torch.device, function: Callable[..., Any]) -> None:
    target = nested(device, 9)
    name = function.__name__

    def raises(error: type[Exception], text: str, *given: Any, **options: Any) -> None:
        with pytest.raises(error, match=f"^{name}: {text}"):
            function(*given, **options)

    plain = boxes((10,), device)
    raises(ValueError, "pred is nested, target is not; it must be nested as well$", target, plain)
    ragged = torch.nested.as_nested_tensor([boxes((2,), device)], layout=torch.strided)
    raises(TypeError, "target has layout torch.strided; it must be torch.jagged$", target, ragged)
    for bad in (target[..., :3], target.transpose(1, 2), target[..., None, :]):
        raises(ValueError, r"target has shape \[4, .*; nested it must be \(images, ", target, bad)
    index = torch.zeros(3, dtype=torch.int64, device=device)
    slots = boxes((4, SLOTS), device)
    for argument in ("lengths", "offsets", "zero_padded", "pred_index", "target_index"):
        text = f"{argument} cannot be given with nested boxes$"
        for pred in (target, slots):
            given = True if argument == "zero_padded" else index
            raises(ValueError, text, pred, target, **{argument: given})
    mask = torch.ones(4, SLOTS, dtype=torch.bool, device=device)
    text = "mask cannot be given where target alone is nested$"
    raises(ValueError, text, slots, target, mask=mask)
    for pred in (slots, ragged):
        raises(TypeError, "target has layout torch.strided; it must be torch.jagged$", pred, ragged)
    raises(TypeError, "normalizer is nested; it must be dense$", target, target, normalizer=target)
    for argument in ("weight", "mask"):
        text = f"{argument} is nested; it must be dense$"
        raises(TypeError, text, plain, plain, **{argument: target[..., 0] > 0})
    fewer = nested(device, 1, counts=(3, 0, 5, 1))
    raises(ValueError, r"pred has shape \[9, 4\], target has shape \[10, 4\]; they", fewer, target)
    slots = boxes((3, SLOTS), device)
    raises(ValueError, r"offsets has shape \[5\]; it must be \[4\], one more than", slots, target)


@pytest.mark.parametrize("layout", [torch.jagged, torch.strided])
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype stage")
def test_other_functions_take_none(layout: torch.layout) -> None:
    images = [torch.ones(count, 4) for count in COUNTS]
    target = torch.nested.as_nested_tensor(images, layout=layout)
    offsets = torch.tensor([0, 3, 3, 9, 10])
    calls: dict[str, Callable[[], Any]] = {
        "matching_cost: target": lambda: matching_cost(torch.ones(4, SLOTS, 4), target, offsets),
        "pairwise_iou: pred": lambda: pairwise_iou(target, torch.ones(10, 4), offsets),
        "hungarian_match: cost": lambda: hungarian_match(target, offsets),
        "linear_sum_assignment: cost": lambda: linear_sum_assignment(target),
        "class_loss: logits": lambda: class_loss(target, offsets, offsets, mode="focal"),
        "distribution_loss: logits": lambda: distribution_loss(target, offsets, mode="fgl"),
    }
    for name, call in calls.items():
        with pytest.raises(TypeError, match=f"^{name} is nested; it must be dense$"):
            call()
