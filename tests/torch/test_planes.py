# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Boxes as convolutions give them, coordinate after coordinate: read where they are, and their
gradients written in the same memory format."""

from collections.abc import Callable

import pytest
import torch
from boxloss.torch import box_loss, box_losses, giou_loss, matching_cost, pairwise_iou
from comparison import check, differentiable, run
from devices import Implementation
from matching import classes, cost_problem
from problems import PAIRINGS, Problem, boxes, problem
from torch import Tensor

pytestmark = pytest.mark.asan

Arrange = Callable[[Tensor], Tensor]


def in_planes(values: Tensor) -> Tensor:
    """The same boxes, coordinate after coordinate of each image."""
    return values.mT.contiguous().mT


def coordinates_first(values: Tensor) -> Tensor:
    """The same boxes, coordinate after coordinate of all images."""
    return values.movedim(-1, 0).contiguous().movedim(0, -1)


def scattered(values: Tensor) -> Tensor:
    """The same boxes with something else between any two of their numbers."""
    wide = values.new_full((*values.shape, 2), float("nan") if values.is_floating_point() else 99)
    wide[..., 0] = values
    return wide[..., 0]


def head_output(device: torch.device, shape: tuple[int, ...] = (2, 3, 5)) -> Tensor:
    """(images, 4, height, width)"""
    return boxes(shape, device, seed=1).movedim(-1, 1).contiguous()


def permuted(head: Tensor) -> Tensor:
    return head.permute(0, 2, 3, 1)


def flattened(head: Tensor) -> Tensor:
    return head.flatten(2).transpose(1, 2)


@pytest.mark.parametrize("reduction", ["none", "mean"])
@pytest.mark.parametrize("laid", [in_planes, coordinates_first, scattered])
@pytest.mark.parametrize("pairing", PAIRINGS)
def test_agrees_with_the_formula(
    implementation: Implementation, pairing: str, laid: Arrange, reduction: str
) -> None:
    for operands in (("pred",), ("target",), ("pred", "target")):
        values = problem(pairing, implementation.device, weight=torch.float32, reduction=reduction)
        values.update({name: laid(values[name]) for name in operands})
        assert all(values[name].stride(-1) != 1 for name in operands)
        check(values)


@pytest.mark.parametrize(
    ("pred", "target"),
    [
        (torch.float32, torch.float32),
        (torch.bfloat16, torch.uint8),
        (torch.float16, torch.float16),
        (torch.float64, torch.int32),
    ],
    ids=str,
)
@pytest.mark.parametrize("box_format", ["xyxy", "cxcywh"])
@pytest.mark.parametrize("pairing", PAIRINGS)
def test_the_same_bits_as_of_contiguous_boxes(
    pairing: str, box_format: str, pred: torch.dtype, target: torch.dtype
) -> None:
    formats = {"pred_format": box_format, "target_format": box_format}
    values = problem(pairing, torch.device("cpu"), pred, target, **formats)
    for laid in (in_planes, coordinates_first, scattered):
        planes = {**values, **{name: laid(values[name]) for name in ("pred", "target")}}
        for by in ((), ("loss",), ("l1",), ("loss", "l1")):
            actual, expected = run(planes, by=by), run(values, by=by)
            for name in expected:
                assert torch.equal(actual[name], expected[name]), name


def gradients_of(values: Problem) -> dict[str, Tensor]:
    leaves = differentiable(values)
    loss = giou_loss(**{**values, **leaves})
    return dict(zip(leaves, torch.autograd.grad(loss.sum(), tuple(leaves.values())), strict=True))


@pytest.mark.parametrize("laid", [in_planes, coordinates_first])
@pytest.mark.parametrize("pairing", PAIRINGS)
def test_gradients_have_the_strides_of_what_they_belong_to(
    implementation: Implementation, pairing: str, laid: Arrange
) -> None:
    values = problem(pairing, implementation.device, reduction="none")
    values.update({name: laid(values[name]) for name in ("pred", "target")})
    for name, gradient in gradients_of(values).items():
        if pairing in ("indices", "sets"):
            assert gradient.is_contiguous()
        else:
            assert gradient.stride() == values[name].stride()


def test_gradients_of_boxes_with_gaps_or_overlaps_are_contiguous(device: torch.device) -> None:
    target = boxes((3, 5), device, seed=2)
    for pred in (
        scattered(boxes((3, 5), device)),
        head_output(device, (3, 5, 7)).permute(0, 2, 3, 1)[:, :, 0],
        in_planes(boxes((5,), device)).expand(3, 5, 4),
        in_planes(boxes((3, 9), device))[:, :5],
    ):
        values = {"pred": pred, "target": target}
        assert gradients_of(values)["pred"].is_contiguous()
        check(values)


def test_transposed_images_and_slots_keep_their_strides(implementation: Implementation) -> None:
    values = problem("lengths", implementation.device)
    values["pred"] = values["pred"].transpose(0, 1).contiguous().transpose(0, 1)
    assert gradients_of(values)["pred"].stride() == values["pred"].stride()
    check(values)


def test_boxes_that_have_to_be_copied_have_gradients_of_their_strides(
    implementation: Implementation,
) -> None:
    anchors = boxes((2, 7, 5, 3), implementation.device, seed=1)  # images, height, width, anchors
    head = anchors.permute(0, 3, 4, 1, 2).contiguous()
    pred = head.permute(0, 3, 4, 1, 2)
    assert torch.equal(pred, anchors)
    values = {"pred": pred, "target": boxes(pred.shape[:-1], pred.device, seed=2)}
    gradient = gradients_of(values)["pred"]
    assert gradient.stride() == pred.stride()
    assert torch.equal(gradient, gradients_of({**values, "pred": anchors})["pred"])


@pytest.mark.parametrize("view", [permuted, flattened])
def test_a_head_gets_its_gradient_without_a_copy(
    implementation: Implementation, view: Arrange
) -> None:
    head = head_output(implementation.device)
    target = torch.zeros_like(view(head))
    target[..., 2:] = 32
    loss = box_loss(view(head), target)
    leaf = head.clone().requires_grad_()
    with torch.profiler.profile() as profile:
        box_loss(view(leaf), target).backward()
    copies = [e.name for e in profile.events() if e.name in ("aten::clone", "aten::copy_")]
    assert copies == []
    assert leaf.grad is not None
    assert leaf.grad.is_contiguous()
    other = head.clone().requires_grad_()
    contiguous = box_loss(view(other).contiguous(), target)
    contiguous.backward()
    torch.testing.assert_close(loss, contiguous.detach())
    torch.testing.assert_close(leaf.grad, other.grad)


def test_channels_last_is_contiguous_to_begin_with(device: torch.device) -> None:
    head = head_output(device).to(memory_format=torch.channels_last).requires_grad_()
    assert permuted(head).is_contiguous()
    (gradient,) = torch.autograd.grad(
        box_loss(permuted(head), torch.ones(2, 3, 5, 4).to(head)), head
    )
    assert gradient.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("shape", [(0, 3, 5), (2, 0, 5), (1, 1, 1), (3, 1, 1), (1, 3, 5)])
def test_sizes(implementation: Implementation, shape: tuple[int, int, int], reduction: str) -> None:
    pred = permuted(head_output(implementation.device, shape))
    target = boxes(shape, pred.device, seed=2)
    values = {"pred": pred, "target": target, "reduction": reduction}
    gradient = gradients_of(values)["pred"]
    assert gradient.shape == pred.shape
    torch.testing.assert_close(
        gradient, gradients_of({**values, "pred": pred.contiguous()})["pred"]
    )
    if target.numel() > 0:
        check(values)


def test_matching_costs(implementation: Implementation) -> None:
    values = classes(cost_problem(implementation.device, layers=(2,)))
    planes = {name: in_planes(values[name]) for name in ("pred", "target")}
    assert torch.equal(matching_cost(**{**values, **planes}), matching_cost(**values))
    pairs = [{**values, **some} for some in (planes, {})]
    ious = [pairwise_iou(v["pred"], v["target"], v["offsets"]) for v in pairs]
    assert torch.equal(*ious)


@pytest.mark.parametrize("pairing", ["dense", "mask", "offsets", "sets"])
def test_derivatives_of_both_orders(device: torch.device, pairing: str) -> None:
    double = torch.float64
    values = problem(pairing, device, double, double, reduction="none")
    leaves = [in_planes(values.pop(name)).requires_grad_() for name in ("pred", "target")]

    def losses(pred: Tensor, target: Tensor) -> tuple[Tensor, ...]:
        return box_losses(pred, target, **values)[:2]

    torch.autograd.gradcheck(losses, leaves)
    torch.autograd.gradgradcheck(losses, leaves)


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("view", [permuted, flattened])
def test_compiled_as_in_eager_code(
    device: torch.device,
    view: Arrange,
    dynamic: bool,
    backend: str,
    request: pytest.FixtureRequest,
) -> None:
    if backend == "inductor":
        request.getfixturevalue("cpp_compiler")

    def step(head: Tensor, target: Tensor) -> Tensor:
        return box_loss(view(2 * head), target, "ciou")

    compiled = torch.compile(step, fullgraph=True, dynamic=dynamic, backend=backend)
    for shape in ((2, 3, 5), (4, 7, 2)):
        head = (head_output(device, shape) / 2).requires_grad_()
        target = boxes(shape, device, seed=2).view(view(head).shape)
        actual, expected = compiled(head, target), step(head, target)
        assert torch.equal(actual, expected)
        gradients = [torch.autograd.grad(loss, head)[0] for loss in (actual, expected)]
        assert torch.equal(*gradients)
        assert gradients[0].stride() == gradients[1].stride() == head.stride()
