# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Functions and modules named after their loss, numbers for tensors, torchvision's names."""

import copy
import inspect
import pickle
from collections.abc import Callable
from typing import Any, get_type_hints

import boxloss.torch
import numpy
import pytest
import torch
from boxloss._options import LOSS_PARAMETERS
from boxloss.torch import (
    BoxLoss,
    RotatedBoxLoss,
    box_loss,
    box_losses,
    giou_loss,
    matching_cost,
    pairwise_iou,
    rotated_box_loss,
)
from boxloss.torch.compat import MMDetLoss
from boxloss.torch.losses import BoxLossOptions
from boxloss.torch.rotated_box_loss import RotatedBoxLossOptions
from problems import LOSSES, PARAMETERS, REDUCTIONS, ROTATED_LOSSES, boxes, problem, with_overlaps
from torch import Tensor

NAMED = [loss for loss in LOSSES if f"{loss}_loss" in boxloss.torch.__all__]
MODULES = {
    name.removesuffix("Loss").lower(): name
    for name in boxloss.torch.__all__
    if name.endswith("Loss") and not name.endswith("BoxLoss")
}
REDUCED = {"reduction": "sum", "eps": 1e-3, "eps_mode": "clamp"}
FORMATS = {"pred_format": "xywh", "target_format": "cxcywh"}
OPTIONS: dict[Any, dict[str, Any]] = {  # in the signatures' order
    BoxLoss: {"zero_padded": True, **FORMATS, **REDUCED},
    RotatedBoxLoss: {"zero_padded": True, "angle_unit": "degrees", **REDUCED},
}
FUNCTIONS: dict[Any, Any] = {BoxLoss: box_loss, RotatedBoxLoss: rotated_box_loss}
SIGNATURES = {make: inspect.signature(each).parameters for make, each in FUNCTIONS.items()}
FIXED = {
    make: [
        n for n, each in of.items() if each.kind is each.KEYWORD_ONLY and each.default is not None
    ]
    for make, of in SIGNATURES.items()
}
WITHOUT_LOSS = {
    make: [name for name in of if name not in ("loss", "parameters")]
    for make, of in SIGNATURES.items()
}
each_loss = pytest.mark.parametrize(
    ("make", "loss"),
    [*((BoxLoss, each) for each in LOSSES), *((RotatedBoxLoss, each) for each in ROTATED_LOSSES)],
)


def function_of(loss: str) -> Any:
    return getattr(boxloss.torch, f"{loss}_loss")


def both(device: torch.device, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    return boxes((5,), device, dtype, seed=1), boxes((5,), device, seed=2)


def module_of(loss: str) -> Any:
    return getattr(boxloss.torch, MODULES[loss])


@each_loss
def test_functions_and_modules_are_box_loss(device: torch.device, make: Any, loss: str) -> None:
    of_kind = {"angle_unit": "radians"} if make is RotatedBoxLoss else {}
    tensors = with_overlaps(problem("dense", device, weight=torch.float32, **of_kind))
    tensors.pop("angle_unit", None)
    numbers = PARAMETERS.get(loss, {})
    for options in ({}, OPTIONS[make]):
        wanted = FUNCTIONS[make](**tensors | options, loss=loss, **numbers)
        assert torch.equal(make(loss, **options, **numbers)(**tensors), wanted)
        # What a call gives replaces what is fixed.
        fixed = make(loss, **{n: 1.125 * each for n, each in numbers.items()}, zero_padded=True)
        assert torch.equal(fixed(**tensors, **numbers, **{"zero_padded": False} | options), wanted)
        if make is BoxLoss and loss in NAMED:
            assert torch.equal(function_of(loss)(**tensors | options), wanted)
        if make is BoxLoss and loss in MODULES:
            assert torch.equal(module_of(loss)(**options)(**tensors), wanted)


@pytest.mark.parametrize("make", FUNCTIONS)
def test_these_are_the_options_that_a_module_fixes(make: Any) -> None:
    options, wanted = OPTIONS[make], SIGNATURES[make]
    missing = [name for name in FIXED[make] if options.get(name) in (None, wanted[name].default)]
    assert not missing, f"options without another value in OPTIONS: {missing}"


@pytest.mark.parametrize(
    ("make", "function", "names"),
    [
        (BoxLoss, box_losses, [*SIGNATURES[BoxLoss]]),
        *((BoxLoss, function_of(loss), WITHOUT_LOSS[BoxLoss]) for loss in NAMED),
        *((make, make, ["loss", *FIXED[make], "parameters"]) for make in FUNCTIONS),
        *((BoxLoss, module_of(loss), FIXED[BoxLoss]) for loss in MODULES),
        *((make, make("iou").forward, WITHOUT_LOSS[make]) for make in FUNCTIONS),
    ],
)
def test_signatures_are_the_functions(make: Any, function: Any, names: list[str]) -> None:
    ours, wanted = inspect.signature(function).parameters, SIGNATURES[make]
    missing = [name for name in names if name not in ours]
    assert not missing, f"parameters that {function} does not show: {missing}"
    assert list(ours) == names
    for name in names:
        assert ours[name].default == wanted[name].default, name
        assert ours[name].annotation == wanted[name].annotation, name


@pytest.mark.parametrize(
    ("options", "make"), [(BoxLossOptions, BoxLoss), (RotatedBoxLossOptions, RotatedBoxLoss)]
)
def test_editors_and_type_checkers_see_what_a_call_takes(options: type, make: type) -> None:
    parameters = SIGNATURES[make].items()
    wanted = {name: each.annotation for name, each in parameters if each.kind is each.KEYWORD_ONLY}
    assert {"weight": wanted["weight"], **get_type_hints(options)} == wanted


def test_options_are_told_by_name(device: torch.device) -> None:
    values = problem("dense", device, weight=torch.float32)
    pred, target, weight = (values[name] for name in ("pred", "target", "weight"))
    assert torch.equal(BoxLoss()(pred, target, weight), box_loss(pred, target, weight=weight))
    for function, given in ((giou_loss, ()), (box_losses, ("siou",)), (BoxLoss(), (weight,))):
        with pytest.raises(TypeError, match="positional argument"):
            function(pred, target, *given, weight)
        with pytest.raises(TypeError, match=r"\(\) got an unexpected keyword argument 'wieght'"):
            function(pred, target, wieght=0)
    for make in (BoxLoss, module_of("giou")):
        with pytest.raises(TypeError, match=r"\(\) got an unexpected keyword argument 'wieght'"):
            make(wieght=0)


@each_loss
def test_modules_tell_their_options_and_can_be_copied_and_stored(make: Any, loss: str) -> None:
    numbers, options = PARAMETERS.get(loss, {}), OPTIONS[make]
    told = ", ".join(f"{name}={value!r}" for name, value in (numbers | options).items())
    modules = {f"{make.__name__}('{loss}', {told})": make(loss, **options, **numbers)}
    if make is BoxLoss and loss in MODULES:
        modules[f"{MODULES[loss]}({told})"] = module_of(loss)(**options)
    for text, module in modules.items():
        for each in (module, copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
            assert type(each) is type(module)
            assert repr(each) == text
        assert not module.state_dict()
        older = copy.deepcopy(module)
        del older.zero_padded, older.loss_parameters
        newer = copy.deepcopy(older)
        assert (newer.zero_padded, newer.loss_parameters) == (False, {})  # their defaults


@pytest.mark.parametrize("make", [BoxLoss, module_of("ciou"), MMDetLoss])
def test_a_bad_option_is_an_error_when_the_module_is_made(make: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match=r"^box_loss: eps is -1; it must be finite"):
        make(eps=-1)
    with pytest.raises(ValueError, match=r"^box_loss: loss is 'IoU'; allowed: 'iou', "):
        BoxLoss("IoU")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^rotated_box_loss: angle_unit is 'turns'; allowed: "):
        RotatedBoxLoss("iou", angle_unit="turns")  # type: ignore[arg-type]


# --- Numbers of a loss' own ---


@pytest.mark.parametrize("loss", LOSS_PARAMETERS)
def test_names_are_cores(loss: str) -> None:
    names = LOSS_PARAMETERS[loss]
    with pytest.raises(ValueError, match=f"'{loss}' has {len(names)}: {', '.join(names)}$"):
        torch.ops.boxloss.box_loss(*both(torch.device("cpu")), loss, parameters=[1.0] * 3)


def test_those_of_other_losses_are_refused(device: torch.device) -> None:
    pred, target = both(device)
    images, offsets = pred[None], torch.tensor([0, 5], device=device)
    for function, given in (
        *((function, (pred, target)) for function in (box_loss, box_losses)),
        *((function, (images, target, offsets)) for function in (matching_cost, pairwise_iou)),
    ):
        for loss, has in (("giou", "no numbers of its own"), ("nwd", "constant")):
            text = f"^{function.__name__}.*'alpha'; loss '{loss}' has {has}$"
            with pytest.raises(TypeError, match=text):
                function(*given, loss=loss, alpha=3.0)
    with pytest.raises(TypeError, match=r"'alpha'; loss 'giou' has no numbers of its own$"):
        BoxLoss("giou", alpha=3.0)


# --- A normalizer that is a number ---


@pytest.mark.parametrize("function", [box_loss, box_losses])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_a_number_is_its_tensor(
    device: torch.device, function: Callable[..., Any], dtype: torch.dtype
) -> None:
    pred, target = both(device, dtype)
    compute = torch.float64 if dtype == torch.float64 else torch.float32
    problems = [{"pred": pred, "target": target}, problem("sets", device, dtype)]
    if dtype == torch.float64:  # which target alone makes it, too
        problems.append({"pred": pred.float(), "target": target.double()})
    for number in (3, 0.1, 2**40, numpy.float16(3), numpy.float64(3), numpy.uint8(3)):
        tensor = torch.tensor(float(number), dtype=compute, device=device)
        for values in problems:
            results = (function(**values, normalizer=each) for each in (number, tensor))
            for result, wanted in (
                zip(*results, strict=True) if function is box_losses else [results]
            ):
                assert torch.equal(result, wanted)


# --- torchvision's functions by their names here ---

TORCHVISIONS = {
    "giou": boxloss.torch.generalized_box_iou_loss,
    "diou": boxloss.torch.distance_box_iou_loss,
    "ciou": boxloss.torch.complete_box_iou_loss,
}
of_torchvision = pytest.mark.parametrize("loss", TORCHVISIONS)
# torch warns of scripting itself.
scripting = pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")


def pred_and_target(device: torch.device) -> tuple[Tensor, Tensor]:
    """Some overlap, one pair is equal."""
    target = boxes((8,), device, seed=2)
    pred = torch.cat((boxes((3,), device, seed=1), 1.125 * target[3:7] - 1, target[7:]))
    return pred, target


@of_torchvision
def test_torchvisions_defaults(device: torch.device, loss: str) -> None:
    pred, target = pred_and_target(device)
    function = TORCHVISIONS[loss]
    assert torch.equal(function(pred, target), box_loss(pred, target, loss, reduction="none"))
    assert function(pred[0], target[0]).shape == ()
    assert function(pred.half(), target.half()).dtype == torch.float32
    assert function(pred, target.double()).dtype == torch.float64
    for reduction in REDUCTIONS:
        assert function(pred[:0], target[:0], reduction).sum() == 0


@scripting
@of_torchvision
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_torchvisions_by_position(device: torch.device, loss: str, reduction: str) -> None:
    pred, target = pred_and_target(device)
    pred.requires_grad_()
    expected = box_loss(pred, target, loss, reduction=reduction, eps=1e-3)
    (gradient,) = torch.autograd.grad(expected.sum(), pred)
    for function in (TORCHVISIONS[loss], torch.jit.script(TORCHVISIONS[loss])):
        actual = function(pred, target, reduction, 1e-3)
        assert torch.equal(actual, expected)
        assert torch.equal(torch.autograd.grad(actual.sum(), pred)[0], gradient)


@of_torchvision
def test_torchvisions_error(device: torch.device, loss: str) -> None:
    with pytest.raises(ValueError, match=r"^Invalid Value for arg 'reduction': 'avg \n"):
        TORCHVISIONS[loss](*pred_and_target(device), "avg")
