# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The dispatcher's rules, by torch's own checks: schema, autograd, fake tensors, traced graphs."""

import inspect
import re
from collections.abc import Callable
from typing import Any

import boxloss
import pytest
import torch
from boxloss.torch import BoxLoss, RotatedBoxLoss
from problems import LOSSES, PAIRINGS, Problem, boxes, problem
from torch.overrides import TorchFunctionMode

OPERATORS = torch.ops.boxloss


def positional(values: Problem) -> tuple[Any, ...]:
    """What the private operators want."""
    arguments = OPERATORS.box_loss.default._schema.arguments
    return tuple(values.get(each.name, each.default_value) for each in arguments)


def varied_problems(device: torch.device) -> dict[str, Problem]:
    half, double = torch.float16, torch.float64
    number = torch.tensor(3.0, device=device)
    wide = torch.ones(3, 5, 9, device=device)
    formats = {"pred_format": "cxcywh", "target_format": "cxcywh"}
    one_index = problem("sets", device, reduction="sum")
    one_index["target"] = boxes(one_index.pop("target_index").shape, device, seed=2)
    degrees = {"angle_unit": "degrees"}
    numbers = torch.tensor([3.0, 2.0], device=device)
    weighted = {"weight": torch.float32, "reduction": "none"}
    return {
        **{pairing: problem(pairing, device) for pairing in PAIRINGS[::2]},
        **{f"{pairing}, none": problem(pairing, device, **weighted) for pairing in PAIRINGS[1::2]},
        "sets, none": problem("sets", device, **weighted),
        "half and uint8": problem("dense", device, half, torch.uint8, half, reduction="sum"),
        "double": problem("mask", device, double, double, double, **formats),
        "normalizer": problem("offsets", device, normalizer=number, eps_mode="clamp"),
        "planes": {**problem("dense", device), "pred": boxes((3, 5), device).mT.contiguous().mT},
        "wider rows in sets": {**problem("sets", device), "pred": wide[..., :4]},
        "pred_index in sets": one_index,
        "a normalizer for each of the sets": problem("sets", device, normalizer=numbers),
        "rotated": problem("offsets", device, half, torch.uint8, half, loss="kld", **degrees),
        "rotated in sets": problem("sets", device, loss="giou", **degrees, **weighted),
    }


NAMES = list(varied_problems(torch.device("cpu")))


OTHER_LOSSES = ("rotated_box_loss", "class_loss", "distribution_loss")
ASSIGNERS = ("hungarian_match", "linear_sum_assignment", "max_iou_match", "task_aligned_match")


@pytest.mark.parametrize(
    "name", ["box_loss", "box_losses", "matching_cost", "pairwise_iou", *OTHER_LOSSES, *ASSIGNERS]
)
def test_an_operators_parameters_are_the_functions(name: str) -> None:
    """The same names and defaults, in one order."""
    parameters = inspect.signature(getattr(boxloss.torch, name)).parameters.values()
    operator_name = "assign" if name == "hungarian_match" else name
    arguments = getattr(OPERATORS, operator_name).default._schema.arguments
    function = {p.name: None if p.default is p.empty else p.default for p in parameters}
    if "parameters" in function:  # by name, which are a list to the operator
        function["parameters"] = []
    operator = {each.name: each.default_value for each in arguments}
    lacks = {
        "the function": [each for each in operator if each not in function],
        "the operator": [each for each in function if each not in operator],
    }
    assert not any(lacks.values()), f"parameters of {name} that are missing: {lacks}"
    other = {each: (function[each], operator[each]) for each in operator}
    other = {each: defaults for each, defaults in other.items() if defaults[0] != defaults[1]}
    assert not other, f"defaults of {name} and of its operator: {other}"
    assert list(function) == list(operator)


@pytest.mark.parametrize("name", ["box_loss", "matching_cost", *OTHER_LOSSES, *ASSIGNERS])
def test_a_docstring_tells_every_parameter(name: str) -> None:
    function = getattr(boxloss.torch, name)
    told = re.findall(r"\w+", function.__doc__)
    missing = [each for each in inspect.signature(function).parameters if each not in told]
    assert not missing, f"parameters that {name}'s docstring does not tell: {missing}"


class Handed(TorchFunctionMode):
    """What operators of boxloss are called with, by name, in place of the call."""

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[str, Any] = {}

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if getattr(function, "namespace", "") != "boxloss":
            return function(*args, **(kwargs or {}))
        names = [each.name for each in function._schema.arguments]
        self.values = dict(zip(names, args, strict=False))  # which one lacks, the test tells
        return args[: len(function._schema.returns)]


HANDING = [
    *("box_loss", "box_losses", "matching_cost", "pairwise_iou", *OTHER_LOSSES, *ASSIGNERS),
    *(f"{loss}_loss" for loss in LOSSES if f"{loss}_loss" in boxloss.torch.__all__),
]


@pytest.mark.parametrize(
    "function",
    [
        *(getattr(boxloss.torch, name) for name in HANDING),
        *(BoxLoss("ciou").forward, RotatedBoxLoss("iou").forward),
    ],
    ids=[*HANDING, "BoxLoss", "RotatedBoxLoss"],
)
def test_every_parameter_is_handed_to_the_operator(function: Callable[..., Any]) -> None:
    names = {*inspect.signature(function).parameters} - {"parameters"}  # by their own names
    given = {name: torch.zeros(()) for name in names}
    with Handed() as handed:
        function(**given)
    lost = [name for name in given if handed.values.get(name) is not given[name]]
    assert not lost, f"parameters that {function.__qualname__} does not hand over: {lost}"


@pytest.mark.parametrize("name", NAMES)
def test_the_public_operators(device: torch.device, name: str) -> None:
    values = varied_problems(device)[name]
    # box_loss is a part of box_losses.
    names = ("box_loss", "box_losses") if name == "dense" else ("box_losses",)
    names = ("rotated_box_loss",) if "angle_unit" in values else names
    pred, target = values.pop("pred").requires_grad_(), values.pop("target")
    own = [values.pop(each) for each in ("tau", "floor") if each in values]
    if own:
        values["parameters"] = own
    for operator in names:
        torch.library.opcheck(getattr(OPERATORS, operator).default, (pred, target), values)


def test_the_private_backward_cannot_be_differentiated_in_silence(device: torch.device) -> None:
    values = problem("dense", device)
    arguments = positional(values)
    loss, scale = OPERATORS._box_loss_forward(*arguments)
    values["pred"].requires_grad_()
    wanted = (True, False, False)
    gradient, _, _ = OPERATORS._box_loss_backward(loss, scale, *wanted, *arguments)
    with pytest.raises(RuntimeError, match="boxloss::_box_loss_backward"):
        gradient.sum().backward()


def test_the_private_backward_refuses_what_forward_did_not_give(device: torch.device) -> None:
    values = problem("sets", device)
    arguments = positional(values)
    loss, scale, l1, _ = OPERATORS._box_losses_forward(*arguments)
    mixed = positional({**values, "pred_format": "xywh"})
    wanted = (True, False, False)
    given = (*wanted, *arguments)
    for gradient, text in (
        ((None, None, scale, *given), "grad_loss and grad_l1 are both None"),
        ((loss[:1], None, scale, *given), r"grad_loss has shape \[1\]; it must be \[2\], the"),
        ((None, l1.sum(), scale, *given), r"grad_l1 has shape \[\]; it must be \[2\], the"),
        ((loss, None, scale.sum(), *given), r"scale has shape \[\]; it must be \[2\], as"),
        ((loss, l1, scale, *wanted, *mixed), "l1 is of values in one format"),
    ):
        for where in (device, torch.device("meta")):
            moved = [a.to(where) if isinstance(a, torch.Tensor) else a for a in gradient]
            with pytest.raises(ValueError, match=text):
                OPERATORS._box_losses_backward(*moved)
    with pytest.raises(RuntimeError, match=f"grad_l1 is on meta, pred is on {device.type}"):
        OPERATORS._box_losses_backward(loss, l1.to("meta"), scale, *given)
    with pytest.raises(ValueError, match="wants_weight is True, but weight is not given"):
        OPERATORS._box_losses_backward(loss, l1, scale, True, False, True, *arguments)
