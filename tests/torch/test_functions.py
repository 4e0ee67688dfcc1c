# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Functions and modules named after their loss, torchvision's names, normalizers as numbers."""

import ast
import copy
import inspect
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import boxloss.torch
import numpy
import pytest
import torch
from boxloss.torch import (
    BoxLoss,
    box_loss,
    box_losses,
    giou_loss,
    losses,
    modules,
    siou_loss,
)
from boxloss.torch.compat import MMDetLoss
from boxloss.torch.losses import NamedLoss
from combinations import pairwise
from comparison import assert_same_in_double
from formulas import LOSSES
from problems import PAIRINGS, REDUCTIONS, boxes, problem, with_overlaps
from torch import Tensor

from benchmarks.common.losses import UnavailableError, torchvision_file

NAMED = [loss for loss in LOSSES if f"{loss}_loss" in boxloss.torch.__all__]
MODULES = {
    name.removesuffix("Loss").lower(): name
    for name in boxloss.torch.__all__
    if name.endswith("Loss") and name != "BoxLoss"
}
PARAMETERS = inspect.signature(box_loss).parameters
FIXED = [
    name
    for name, each in PARAMETERS.items()
    if each.kind is each.KEYWORD_ONLY and each.default is not None
]
OPTIONS: dict[str, Any] = {
    "zero_padded": True,
    "pred_format": "xywh",
    "target_format": "cxcywh",
    "reduction": "sum",
    "eps": 1e-3,
    "eps_mode": "clamp",
}
FUNCTIONS = [box_loss, box_losses, giou_loss, siou_loss, BoxLoss("ciou")]
TOLD = ", ".join(f"{name}={value!r}" for name, value in OPTIONS.items())


def function_of(loss: str) -> Any:
    return getattr(boxloss.torch, f"{loss}_loss")


def module_of(loss: str) -> Any:
    return getattr(boxloss.torch, MODULES[loss])


@pytest.mark.parametrize("case", pairwise(loss=LOSSES, pairing=PAIRINGS))
def test_functions_and_modules_are_box_loss(device: torch.device, case: dict[str, Any]) -> None:
    loss = case["loss"]
    tensors = with_overlaps(problem(case["pairing"], device, weight=torch.float32))
    changed = OPTIONS | {"zero_padded": case["pairing"] in ("dense", "zero_padded")}
    for options in ({}, changed):
        wanted = box_loss(**tensors | options, loss=loss)
        assert torch.equal(BoxLoss(loss, **options)(**tensors), wanted)
        assert torch.equal(BoxLoss(loss)(**tensors | options), wanted)
        if loss in NAMED:
            assert torch.equal(function_of(loss)(**tensors | options), wanted)
        if loss in MODULES:
            assert torch.equal(module_of(loss)(**options)(**tensors), wanted)


def test_these_are_the_options_that_a_module_fixes() -> None:
    missing = [name for name in FIXED if OPTIONS.get(name) in (None, PARAMETERS[name].default)]
    assert not missing, f"options without another value in OPTIONS: {missing}"


def test_what_a_call_of_a_module_gives_replaces_what_is_fixed(device: torch.device) -> None:
    tensors = problem("lengths", device)
    wanted = box_loss(**tensors, loss="ciou", reduction="none")
    actual = BoxLoss("ciou", zero_padded=True)(**tensors, zero_padded=False, reduction="none")
    assert torch.equal(actual, wanted)


WITHOUT_LOSS = [name for name in PARAMETERS if name not in ("loss", "parameters")]


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (box_losses, [*PARAMETERS]),
        (partial(NamedLoss.__call__, None), WITHOUT_LOSS),
        *((function_of(loss), WITHOUT_LOSS) for loss in NAMED),
        (BoxLoss, ["loss", *FIXED, "parameters"]),
        *((module_of(loss), FIXED) for loss in MODULES),
        (BoxLoss().forward, WITHOUT_LOSS),
    ],
)
def test_signatures_are_box_losss(function: Callable[..., Any], names: list[str]) -> None:
    ours = inspect.signature(function).parameters
    missing = [name for name in names if name not in ours]
    assert not missing, f"parameters that {function} does not show: {missing}"
    assert list(ours) == names
    for name in names:
        assert ours[name].default == PARAMETERS[name].default, name
        assert ours[name].annotation == PARAMETERS[name].annotation, name


def test_editors_and_type_checkers_see_what_a_call_of_a_module_takes() -> None:
    """Nobody else does, so that it is in the source alone."""
    parameters, wanted = (
        {
            each.arg: ast.unparse(each.annotation)
            for each in (*node.args.args, *node.args.kwonlyargs)
            if each.annotation
        }
        for module, name in ((modules, "__call__"), (losses, "box_loss"))
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.FunctionDef) and node.name == name
    )
    assert parameters == {name: wanted[name] for name in WITHOUT_LOSS}


def test_options_are_told_by_name(device: torch.device) -> None:
    values = problem("dense", device, weight=torch.float32)
    pred, target, weight = (values[name] for name in ("pred", "target", "weight"))
    calls: list[Callable[[], Any]] = [
        *(partial(each, pred, target, weight) for each in (giou_loss, siou_loss)),
        *(partial(each, pred, target, "siou", weight) for each in (box_loss, box_losses)),
        partial(BoxLoss, "siou", "xyxy"),
        partial(module_of("giou"), "xyxy"),
        partial(BoxLoss(), pred, target, weight, weight),
    ]
    for call in calls:
        with pytest.raises(TypeError, match="positional argument"):
            call()
    assert torch.equal(BoxLoss()(pred, target, weight), box_loss(pred, target, weight=weight))
    calls = [partial(each, pred, target, wieght=0) for each in FUNCTIONS]
    for call in (*calls, partial(BoxLoss, wieght=0), partial(module_of("giou"), weight=weight)):
        with pytest.raises(TypeError, match=r"\(\) got an unexpected keyword argument 'w\w+ght'"):
            call()


@pytest.mark.parametrize("loss", LOSSES)
def test_modules_tell_their_options_and_can_be_copied_and_stored(loss: str) -> None:
    told = {f"BoxLoss('{loss}', {TOLD})": BoxLoss(loss, **OPTIONS)}
    if loss in MODULES:
        told[f"{MODULES[loss]}({TOLD})"] = module_of(loss)(**OPTIONS)
    for text, module in told.items():
        for each in (module, copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
            assert type(each) is type(module)
            assert repr(each) == text
        assert not module.state_dict()
        older = copy.deepcopy(module)
        del older.zero_padded
        assert not copy.deepcopy(older).zero_padded  # its default


@pytest.mark.parametrize("make", [BoxLoss, *map(module_of, MODULES)])
@pytest.mark.parametrize(
    ("option", "text"),
    [
        ({"reduction": "typo"}, "reduction is 'typo'; allowed: 'none', 'sum', 'mean'$"),
        ({"pred_format": "yxyx"}, "pred_format is 'yxyx'; allowed: 'xyxy', 'xywh', 'cxcywh'$"),
        ({"target_format": ""}, "target_format is ''; allowed: 'xyxy', 'xywh', 'cxcywh'$"),
        ({"eps": -1}, "eps is -1; it must be finite and not negative"),
        ({"eps_mode": "max"}, "eps_mode is 'max'; allowed: 'add', 'clamp'$"),
    ],
)
def test_a_bad_option_is_an_error_when_the_module_is_made(
    make: Callable[..., BoxLoss], option: dict[str, Any], text: str
) -> None:
    with pytest.raises(ValueError, match=f"^box_loss: {text}"):
        make(**option)


def test_an_unknown_loss_is_an_error_when_the_module_is_made() -> None:
    for unknown in ("IoU", "", "ciou "):
        with pytest.raises(ValueError, match=f"^box_loss: loss is '{unknown}'; allowed: 'iou', "):
            BoxLoss(unknown)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^box_loss: eps is nan; it must be finite"):
        MMDetLoss(eps=float("nan"))


# --- A normalizer that is a number ---


def both(device: torch.device, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    return boxes((5,), device, dtype, seed=1), boxes((5,), device, seed=2)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_a_number_is_its_tensor(
    device: torch.device, function: Callable[..., Any], dtype: torch.dtype
) -> None:
    pred, target = both(device, dtype)
    compute = torch.float64 if dtype == torch.float64 else torch.float32
    for number in (3, 0.1, 2**40, numpy.float16(3), numpy.float64(3), numpy.uint8(3)):
        tensor = torch.tensor(float(number), dtype=compute, device=device)
        pairs = [(pred, target)]
        if dtype == torch.float64:  # which target alone makes it, too
            pairs.append((pred.float(), target.double()))
        for operands in pairs:
            results = function(*operands, normalizer=number)
            wanted = function(*operands, normalizer=tensor)
            for result, each in zip(
                results if function is box_losses else [results],
                wanted if function is box_losses else [wanted],
                strict=True,
            ):
                assert torch.equal(result, each)
    of_sets = problem("sets", device, dtype)
    seven = torch.tensor(7.0, dtype=compute, device=device)
    both_ways = (function(**of_sets, normalizer=each) for each in (7, seven))
    for result, each in zip(*both_ways, strict=True):
        assert torch.equal(result, each)


@pytest.mark.parametrize("number", [True, "3", [3]])
def test_what_is_no_number(device: torch.device, number: Any) -> None:
    kind = type(number).__name__
    for function in (box_loss, box_losses):
        text = f"^{function.__name__}: normalizer is {kind}; it must be a tensor or a number$"
        with pytest.raises(TypeError, match=text):
            function(*both(device), normalizer=number)


def test_numbers_that_the_dtype_does_not_hold(device: torch.device) -> None:
    for dtype, number, shown in [
        (torch.float32, 1e39, r"1e\+39"),
        (torch.bfloat16, -1e39, r"-1e\+39"),
        (torch.float32, 10**40, "1000"),
        (torch.float64, 10**400, "1000"),
    ]:
        text = f"^box_loss: normalizer is {shown}.*; it must be less than .* in magnitude, as torch"
        with pytest.raises(ValueError, match=text):
            box_loss(*both(device, dtype), normalizer=number)
    large, same = (
        box_loss(*both(device, torch.float64), normalizer=number) for number in (10**40, 1e40)
    )
    assert torch.equal(large, same)
    assert box_loss(*both(device), normalizer=float("inf")) == 0


# --- torchvision's functions by their names here ---

TORCHVISIONS = {
    "giou": boxloss.torch.generalized_box_iou_loss,
    "diou": boxloss.torch.distance_box_iou_loss,
    "ciou": boxloss.torch.complete_box_iou_loss,
}
of_torchvision = pytest.mark.parametrize("loss", TORCHVISIONS)
# torch warns of scripting itself.
scripting = pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")


def pred_and_target(
    device: torch.device, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, Tensor]:
    """Some overlap, one pair is equal."""
    target = boxes((8,), device, dtype, seed=2)
    pred = torch.cat((boxes((3,), device, dtype, seed=1), 1.125 * target[3:7] - 1, target[7:]))
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
@pytest.mark.parametrize("reduction", ["avg", "", None])
def test_torchvisions_error(device: torch.device, loss: str, reduction: str | None) -> None:
    pred, target = pred_and_target(device)
    with pytest.raises(ValueError, match=f"^Invalid Value for arg 'reduction': '{reduction} \n"):
        TORCHVISIONS[loss](pred, target, reduction)  # type: ignore[arg-type]


@of_torchvision
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_beside_torchvision(device: torch.device, loss: str, reduction: str) -> None:
    try:
        theirs = getattr(torchvision_file(f"{loss}_loss"), TORCHVISIONS[loss].__name__)
    except UnavailableError as reason:
        pytest.skip(str(reason))
    pred, target = pred_and_target(device, torch.float64)
    results = []
    for function in (TORCHVISIONS[loss], theirs):
        p, t = pred.detach().requires_grad_(), target.detach().requires_grad_()
        result = function(p, t, reduction)
        gradients = torch.autograd.grad(result.sum(), (p, t))
        results.append([result.detach(), *gradients])
    for actual, expected in zip(*results, strict=True):
        assert_same_in_double(actual, expected)
