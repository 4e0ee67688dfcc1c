# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Losses with numbers of their own: values, gradients of every order, and where they are given."""

import copy
import math
import pickle
import re
from typing import Any

import pytest
import torch
from boxloss._options import LOSS_PARAMETERS
from boxloss.torch import BoxLoss, box_loss, box_losses, matching_cost, pairwise_iou
from devices import Implementation
from problems import PARAMETERS, boxes
from torch import Tensor

CPU = torch.device("cpu")
OFFSETS = torch.tensor([0, 3, 8])
# Of some hundred roundings in float64 of numbers of the order of 1.
CLOSE: dict[str, Any] = {"rtol": 0.0, "atol": 1e-13}


def iou(pred: Tensor, target: Tensor) -> Tensor:
    begin = torch.maximum(pred[:, :2], target[:, :2])
    inter = (torch.minimum(pred[:, 2:], target[:, 2:]) - begin).clamp(min=0).prod(1)
    area = (pred[:, 2:] - pred[:, :2]).prod(1) + (target[:, 2:] - target[:, :2]).prod(1)
    return inter / (area - inter)


def inner(boxes: Tensor, ratio: float) -> Tensor:
    centre, side = (boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]
    return torch.cat([centre - ratio / 2 * side, centre + ratio / 2 * side], 1)


def nwd(pred: Tensor, target: Tensor, constant: float) -> Tensor:
    """As its authors write it: of centres, and of half the sides."""
    centres = (pred[:, :2] + pred[:, 2:] - target[:, :2] - target[:, 2:]) / 2
    sides = (pred[:, 2:] - pred[:, :2] - target[:, 2:] + target[:, :2]) / 2
    distance = (centres.square().sum(1) + sides.square().sum(1)).sqrt()
    return 1 - torch.exp(-distance / constant)


def mpdiou(pred: Tensor, target: Tensor, image_width: float, image_height: float) -> Tensor:
    distance = (pred - target).square().sum(1)
    return 1 - iou(pred, target) + distance / (image_width**2 + image_height**2)


FORMULAS = {
    "alpha_iou": lambda pred, target, alpha: 1 - iou(pred, target) ** alpha,
    "nwd": nwd,
    "mpdiou": mpdiou,
    "inner_iou": lambda pred, target, ratio: 1 - iou(inner(pred, ratio), inner(target, ratio)),
}
every_loss = pytest.mark.parametrize("loss", FORMULAS)


def pairs(device: torch.device = CPU) -> tuple[Tensor, Tensor]:
    """Of overlapping boxes."""
    pred = boxes((8,), device, torch.float64, seed=1).requires_grad_()
    shift = torch.tensor([1.0, -0.5, 2.0, 0.25], dtype=torch.float64, device=device)
    return pred, (pred.detach() + shift).requires_grad_()


@every_loss
def test_losses_and_gradients_are_the_formulas(
    loss: Any, implementation_or_aten: Implementation
) -> None:
    inputs = pairs(implementation_or_aten.device)
    expected = FORMULAS[loss](*inputs, **PARAMETERS[loss])
    got = box_loss(*inputs, loss, eps=0.0, reduction="none", **PARAMETERS[loss])
    torch.testing.assert_close(got, expected, **CLOSE)
    for of_got, of_expected in zip(
        torch.autograd.grad(got.sum(), inputs),
        torch.autograd.grad(expected.sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(of_got, of_expected, **CLOSE)


@every_loss
def test_equal_boxes_have_no_loss_and_no_gradient_of_a_distance(loss: Any) -> None:
    pred = boxes((8,), CPU, torch.float64).requires_grad_()
    losses = box_loss(pred, pred.detach(), loss, eps=0.0, reduction="none", **PARAMETERS[loss])
    torch.testing.assert_close(losses, torch.zeros_like(losses), **CLOSE)
    (gradient,) = torch.autograd.grad(losses.sum(), pred)
    assert gradient.isfinite().all()
    assert loss != "nwd" or not gradient.any()


@every_loss
def test_second_derivatives_are_of_the_same_formula(loss: Any) -> None:
    pred, target = pairs()
    assert torch.autograd.gradgradcheck(
        lambda pred, target: box_loss(pred, target, loss, **PARAMETERS[loss]), (pred, target)
    )


@every_loss
def test_all_functions_take_them(loss: Any) -> None:
    pred, target = (each.detach() for each in pairs())
    corners = {"pred_format": "xyxy", "target_format": "xyxy"}
    options: Any = {"eps": 0.0, **corners, **PARAMETERS[loss]}
    expected = FORMULAS[loss](pred, target, **PARAMETERS[loss])
    images = pred.expand(2, -1, -1)
    losses = box_losses(pred, target, loss, reduction="none", **options)
    torch.testing.assert_close(losses.loss, expected, **CLOSE)
    torch.testing.assert_close(BoxLoss(loss, **options)(pred, target), expected.mean(), **CLOSE)
    overlaps = pairwise_iou(images, target, OFFSETS, loss, **options)
    torch.testing.assert_close(1 - overlaps.diagonal(), expected.float())
    cost = matching_cost(
        images, target, OFFSETS, loss=loss, iou_weight=1.0, l1_weight=0.0, **options
    )
    torch.testing.assert_close(1 + cost.diagonal(), expected.float())


@every_loss
def test_a_compiled_function_has_the_same_bits(loss: Any, fresh_compiler: None) -> None:
    pred, target = pairs()

    def function(pred: Tensor, target: Tensor) -> Tensor:
        return box_loss(pred, target, loss, **PARAMETERS[loss])

    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    got, expected = compiled(pred, target), function(pred, target)
    assert torch.equal(got, expected)
    for one, other in zip(
        torch.autograd.grad(got, (pred, target)),
        torch.autograd.grad(expected, (pred, target)),
        strict=True,
    ):
        assert torch.equal(one, other)


def test_a_standard_value_is_the_papers() -> None:
    pred, target = (each.detach() for each in pairs())
    assert torch.equal(
        box_loss(pred, target, "alpha_iou"), box_loss(pred, target, "alpha_iou", alpha=3)
    )


def test_a_module_shows_its_parameters_and_keeps_them() -> None:
    module = BoxLoss("mpdiou", image_width=64, image_height=48)
    assert "image_width=64, image_height=48" in repr(module)
    pred, target = pairs()
    for each in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert torch.equal(each(pred, target), module(pred, target))
    other = module(pred, target, image_width=640, image_height=480)
    assert torch.equal(other, box_loss(pred, target, "mpdiou", image_width=640, image_height=480))


def test_a_module_of_an_older_version_has_none() -> None:
    module = BoxLoss("giou")
    state = {name: value for name, value in vars(module).items() if name != "loss_parameters"}
    older = BoxLoss.__new__(BoxLoss)
    older.__setstate__(state)
    assert older.loss_parameters == {}


@pytest.mark.parametrize(
    ("loss", "parameters", "error", "message"),
    [
        ("giou", {"alpha": 3.0}, TypeError, "'alpha'; loss 'giou' has no numbers of its own"),
        ("nwd", {"alpha": 3.0}, TypeError, "'alpha'; loss 'nwd' has constant"),
        ("alpha_iou", {"alpha": "3"}, TypeError, "alpha is str; it must be a number"),
        ("alpha_iou", {"alpha": math.nan}, ValueError, "alpha is nan; it must be from 1e-6"),
        ("alpha_iou", {"alpha": 10**400}, ValueError, "alpha is 1"),
        ("nwd", {}, ValueError, "constant is missing; 'nwd' needs constant"),
        ("mpdiou", {"image_width": 8}, ValueError, "image_height is missing; 'mpdiou' needs"),
        ("inner_iou", {"ratio": 0}, ValueError, "ratio is 0; it must be from 1e-6 to 1e6"),
    ],
)
def test_bad_parameters_are_refused_by_name(
    loss: Any, parameters: Any, error: type[Exception], message: str
) -> None:
    pred, target = (each.detach() for each in pairs())
    images = pred.expand(2, -1, -1)
    with pytest.raises(error, match=re.escape(message)):
        BoxLoss(loss, **parameters)
    calls = {
        "box_loss": lambda: box_loss(pred, target, loss, **parameters),
        "box_losses": lambda: box_losses(pred, target, loss, **parameters),
        "matching_cost": lambda: matching_cost(images, target, OFFSETS, loss=loss, **parameters),
        "pairwise_iou": lambda: pairwise_iou(images, target, OFFSETS, loss, **parameters),
    }
    for function, call in calls.items():
        with pytest.raises(error) as raised:
            call()
        assert message in str(raised.value)
        assert str(raised.value).startswith(function)


@every_loss
def test_names_are_cores(loss: str) -> None:
    pred, target = pairs()
    names = LOSS_PARAMETERS[loss]
    with pytest.raises(ValueError, match=f"'{loss}' has {len(names)}: {', '.join(names)}$"):
        torch.ops.boxloss.box_loss(pred, target, loss, parameters=[1.0] * 3)
