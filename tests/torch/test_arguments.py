# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What the losses refuse: the type of the error, and its text, on real tensors and on meta ones.

Each check of the binding has its lines; what core checks besides is for tests/core.
"""

from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch
from boxloss.torch import (
    CIoULoss,
    box_loss,
    box_losses,
    giou_loss,
    hungarian_match,
    matching_cost,
    max_iou_match,
    pairwise_iou,
    siou_loss,
    task_aligned_match,
    use_implementation,
)
from problems import Problem, boxes, problem
from torch import Tensor

CPU = torch.device("cpu")


def zeros(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.zeros(shape, dtype=dtype)


def rows(*shape: int) -> Tensor:
    return torch.zeros(shape, dtype=torch.int64)


# A valid problem's name, what is changed in it, and the error's text. Grids are (3, 5), lists 12,
# indices 10, and sets (2, 7).
TOO_MANY = "give at most one of zero_padded, lengths, mask, offsets and indices; got "
BY_IMAGE = "with zero_padded, lengths or offsets it must be "
OTHER_INDEX = "the shape of the other index, with a 4 behind it$"
VALUE_ERRORS: list[tuple[str, dict[str, Any], str]] = [
    ("dense", {"pred_format": "yxyx"}, "pred_format is 'yxyx'; allowed: 'xyxy', 'xywh', 'cxcywh'"),
    ("dense", {"target_format": ""}, "target_format is ''; allowed: 'xyxy', 'xywh', 'cxcywh'"),
    ("dense", {"reduction": "Mean"}, "reduction is 'Mean'; allowed: 'none', 'sum', 'mean'"),
    ("dense", {"eps_mode": "max"}, "eps_mode is 'max'; allowed: 'add', 'clamp'"),
    ("dense", {"eps": -1.0}, "eps is -1; it must be finite and not negative"),
    ("dense", {"eps": float("nan")}, "eps is nan; it must be finite"),
    ("dense", {"eps": 1e39}, r"eps is 1e\+39; it must be finite and not negative, as a float32"),
    ("mask", {"zero_padded": True}, f"{TOO_MANY}zero_padded mask$"),
    ("lengths", {"offsets": rows(4)}, f"{TOO_MANY}lengths offsets$"),
    ("indices", {"mask": zeros(3, 5).bool()}, f"{TOO_MANY}mask pred_index target_index$"),
    ("dense", {"pred": zeros(3, 5, 5)}, r"pred has shape \[3, 5, 5\]; its last dimension must be"),
    ("dense", {"pred": zeros()}, r"pred has shape \[\]; its last dimension must be 4"),
    ("dense", {"target": zeros(3)}, r"target has shape \[3\]; its last dimension must be 4"),
    ("dense", {"target": zeros(1, 5, 4)}, r"pred .*, target has shape \[1, 5, 4\]; they must be"),
    ("zero_padded", {"pred": zeros(15, 4)}, rf"pred has shape \[15, 4\]; {BY_IMAGE}"),
    ("lengths", {"pred": zeros(1, 3, 5, 4)}, rf"pred has shape \[1, 3, 5, 4\]; {BY_IMAGE}"),
    ("offsets", {"pred": zeros(15, 4)}, rf"pred has shape \[15, 4\]; {BY_IMAGE}"),
    ("offsets", {"target": zeros(3, 5, 4)}, r"target has shape \[3, 5, 4\]; with offsets it must"),
    ("offsets", {"offsets": rows(3)}, r"offsets has shape \[3\]; it must be \[4\], one more than"),
    ("lengths", {"lengths": rows(3, 1)}, r"lengths has shape \[3, 1\]; it must be \[3\], one for"),
    ("mask", {"mask": zeros(5).bool()}, r"mask has shape \[5\]; it must be \[3, 5\], pred's"),
    ("dense", {"weight": zeros(3, 1)}, r"weight has shape \[3, 1\]; it must be \[3, 5\], the"),
    ("offsets", {"weight": zeros(3, 5)}, r"weight has shape \[3, 5\]; it must be \[12\], the"),
    ("sets", {"weight": zeros(2, 1)}, r"weight has shape \[2, 1\]; it must be \[2, 7\], the shape"),
    ("dense", {"normalizer": zeros(), "reduction": "sum"}, "normalizer needs reduction 'mean',"),
    ("dense", {"normalizer": zeros(1)}, r"normalizer has shape \[1\]; it must have no dimension"),
    ("indices", {"normalizer": zeros(10)}, r"normalizer has shape \[10\]; it must have no"),
    ("sets", {"normalizer": zeros(7)}, r"normalizer has shape \[7\]; it must have no dimension or"),
    ("sets", {"normalizer": zeros(2, 1)}, r"normalizer has shape \[2, 1\]; it must have no"),
    ("indices", {"pred_index": rows(1, 2, 5)}, r"pred_index .*; it must be \(pairs\) or \(sets,"),
    ("indices", {"target_index": rows()}, r"target_index .*; it must be \(pairs\) or \(sets,"),
    ("sets", {"target_index": rows(14)}, r"target_index .*; it must be \[2, 7\], pred_index's"),
    ("sets", {"pred_index": None}, rf"pred .*; it must be \[2, 7, 4\], {OTHER_INDEX}"),
    ("indices", {"target_index": None}, rf"target .*; it must be \[10, 4\], {OTHER_INDEX}"),
]

FLOATING = "it must be float64, float32, float16 or bfloat16$"
ANY_NUMBER = "it must be float64, float32, float16, bfloat16, uint8, int16, int32 or int64$"
INTEGER = "it must be int32 or int64$"
OF_NORMALIZER = "it must be float64, float32, int64 or int32$"
TYPE_ERRORS: list[tuple[str, dict[str, Any], str]] = [
    ("dense", {"pred": rows(3, 5, 4)}, f"pred is int64; {FLOATING}"),
    ("dense", {"pred": zeros(3, 5, 4, dtype=torch.complex64)}, f"pred is complex64; {FLOATING}"),
    ("dense", {"target": zeros(3, 5, 4).bool()}, f"target is bool; {ANY_NUMBER}"),
    ("dense", {"weight": rows(3, 5)}, f"weight is int64; {FLOATING}"),
    ("dense", {"weight": zeros(3, 5).bool()}, f"weight is bool; {FLOATING}"),
    ("lengths", {"lengths": zeros(3).bool()}, f"lengths is bool; {INTEGER}"),
    ("lengths", {"lengths": zeros(3)}, f"lengths is float32; {INTEGER}"),
    ("offsets", {"offsets": rows(4).byte()}, f"offsets is uint8; {INTEGER}"),
    ("mask", {"mask": rows(3, 5).byte()}, "mask is uint8; it must be bool"),
    ("indices", {"pred_index": zeros(10)}, f"pred_index is float32; {INTEGER}"),
    ("sets", {"target_index": rows(2, 7).short()}, f"target_index is int16; {INTEGER}"),
    ("sets", {"normalizer": zeros(2).bfloat16()}, f"normalizer is bfloat16; {OF_NORMALIZER}"),
]


def move(values: Problem, device: torch.device) -> Problem:
    return {n: v.to(device) if isinstance(v, Tensor) else v for n, v in values.items()}


@pytest.mark.parametrize(
    ("error", "pairing", "change", "text"),
    [
        *((ValueError, *each) for each in VALUE_ERRORS),
        *((TypeError, *each) for each in TYPE_ERRORS),
    ],
)
def test_errors(
    device: torch.device, error: type[Exception], pairing: str, change: Problem, text: str
) -> None:
    """With and without gradients, which take different ways; and on meta tensors."""
    for where in (device, torch.device("meta")):
        moved = move({**problem(pairing, device), **change}, where)
        for _ in range(2):
            with pytest.raises(error, match=f"^box_loss: {text}"):
                box_loss(**moved)
            if moved["pred"].is_floating_point() or moved["pred"].is_complex():
                moved["pred"] = moved["pred"].detach().requires_grad_()


NO_TENSORS: list[tuple[Callable[..., Any], str, str, Any]] = [
    (box_loss, "box_loss", "pred", [0.0]),
    (giou_loss, "box_loss", "target", None),
    (box_losses, "box_losses", "target", None),
    (siou_loss, "box_loss", "pred", zeros(3, 4).numpy()),
    (CIoULoss(), "box_loss", "target", zeros(3, 4).numpy()),
    (matching_cost, "matching_cost", "pred", None),
    (matching_cost, "matching_cost", "offsets", [0.0]),
    (pairwise_iou, "pairwise_iou", "target", zeros(3, 4).numpy()),
]


@pytest.mark.parametrize(("function", "name", "argument", "given"), NO_TENSORS)
def test_what_is_no_tensor(
    function: Callable[..., Any], name: str, argument: str, given: Any
) -> None:
    values = valid_arguments(function)
    function(**values)
    text = f"^{name}: {argument} is {type(given).__name__}; it must be a tensor$"
    with pytest.raises(TypeError, match=text):
        function(**{**values, argument: given})


WRONG_TYPES: list[tuple[Callable[..., Any], str, Any, str]] = [
    (giou_loss, "mask", [True], "a tensor"),
    (box_loss, "weight", 2.0, "a tensor"),
    (box_losses, "pred_index", (0,), "a tensor"),
    (box_loss, "lengths", 3, "a tensor"),
    (box_loss, "offsets", rows(2).numpy(), "a tensor"),
    (box_loss, "loss", None, "a string"),
    (box_loss, "eps", "1", "a number"),
    (box_loss, "zero_padded", "yes", "True or False"),
    (CIoULoss(), "weight", "sum", "a tensor"),
    (matching_cost, "labels", [0], "a tensor"),
    (matching_cost, "nonfinite", "0", "a number"),
    (pairwise_iou, "pred_format", 5, "a string"),
    (hungarian_match, "groups", 1.5, "an integer"),
    (max_iou_match, "high", "0.7", "a number"),
    (max_iou_match, "low_quality", None, "a string"),
    (task_aligned_match, "topk2", "3", "an integer"),
    (task_aligned_match, "labels", [0], "a tensor"),
    (box_loss, "zero_padded", zeros(2), "True or False"),
    (matching_cost, "nonfinite", zeros(2), "a number"),
    (hungarian_match, "groups", zeros(2), "an integer"),
]


def valid_arguments(function: Callable[..., Any]) -> Problem:
    pred, target = zeros(1, 3, 4), zeros(2, 4)
    offsets, labels = torch.tensor([0, 2]), rows(2)
    if function in (matching_cost, pairwise_iou):
        return {"pred": pred, "target": target, "offsets": offsets}
    if function is hungarian_match:
        return {"cost": zeros(3, 2), "offsets": offsets}
    if function is max_iou_match:
        return {"anchors": pred, "target": target, "offsets": offsets, "high": 0.5, "low": 0.4}
    if function is task_aligned_match:
        points = {"scores": zeros(1, 3, 5), "pred": pred, "points": zeros(3, 2)}
        return {**points, "target": target, "offsets": offsets, "labels": labels}
    return {"pred": pred, "target": pred}


@pytest.mark.parametrize(("function", "argument", "given", "words"), WRONG_TYPES)
def test_options_of_a_wrong_type(
    function: Callable[..., Any], argument: str, given: Any, words: str
) -> None:
    values = valid_arguments(function)
    function(**values)
    name = "box_loss" if function is giou_loss else getattr(function, "__name__", "box_loss")
    text = f"^{name}: {argument} is {type(given).__name__}; it must be {words}$"
    with pytest.raises(TypeError, match=text) as raised:
        function(**{**values, argument: given})
    assert raised.value.__suppress_context__  # which has all of the operator's schema


@pytest.mark.parametrize(
    ("function", "argument", "given", "bits"),
    [(hungarian_match, "groups", 2**63, 63), (matching_cost, "eps", 10**400, 1024)],
)
def test_integers_that_are_too_large(
    function: Callable[..., Any], argument: str, given: int, bits: int
) -> None:
    text = rf"^{function.__name__}: {argument} is \d+.*; it must be less than 2\^{bits} in"
    with pytest.raises(ValueError, match=text):
        function(**valid_arguments(function), **{argument: given})


def test_a_module_of_a_wrong_type() -> None:
    with pytest.raises(TypeError, match=r"^box_loss: eps is str; it must be a number$"):
        CIoULoss(eps="1")
    with pytest.raises(TypeError, match=r"^use_implementation: name is int; it must be a string$"):
        use_implementation(5)  # type: ignore[arg-type]


def test_a_right_type_is_not_blamed_for_another_error() -> None:
    """What torch takes besides, as numpy's scalars."""
    values: Problem = {"eps": torch.tensor(1.0), "zero_padded": None, "target": zeros(1, 3, 4)}
    for eps in (torch.tensor(1.0), numpy.float32(1), numpy.int64(1), True):
        values["eps"] = eps
        box_loss(zeros(1, 3, 4), **values)
        with pytest.raises(RuntimeError, match="target is on cpu, pred is on meta"):
            box_loss(zeros(1, 3, 4).to("meta"), **values)


def test_what_stands_for_a_tensor_is_no_error() -> None:
    def losses(pred: Tensor, target: Tensor) -> Tensor:
        return giou_loss(pred, target) + box_loss(pred, target, "ciou")

    given = boxes((5,), CPU, seed=1), boxes((5,), CPU, seed=2)
    assert torch.equal(torch.fx.symbolic_trace(losses)(*given), losses(*given))


def test_an_unknown_loss() -> None:
    with pytest.raises(ValueError, match=r"^box_loss: loss is 'GIoU'; allowed: 'iou', .*'giou'"):
        box_loss(zeros(5, 4), zeros(5, 4), "GIoU")  # type: ignore[arg-type]


@pytest.mark.parametrize("where", ["device", "meta", "gradient", "transform"])
@pytest.mark.parametrize("function", [box_loss, box_losses])
def test_errors_name_the_function_that_was_called(
    device: torch.device, function: Callable[..., Any], where: str
) -> None:
    bad = {**problem("sets", device), "eps": -1.0}
    if where == "meta":
        bad = move(bad, torch.device("meta"))
    bad["pred"].requires_grad_(where == "gradient")
    call = function
    if where == "transform":
        bad["pred"] = bad["pred"][None]
        call = torch.func.vmap(function, in_dims=(0, None))
    pred, target = bad.pop("pred"), bad.pop("target")
    with pytest.raises(ValueError, match=f"^{function.__name__}: eps is -1"):
        call(pred, target, **bad)


@pytest.mark.parametrize("pairing", ["dense", "offsets", "sets"])
def test_l1_is_of_values_in_one_format(device: torch.device, pairing: str) -> None:
    values = {**problem(pairing, device), "pred_format": "cxcywh", "target_format": "xywh"}
    text = "box_losses: l1 is of values in one format, but pred is cxcywh and target xywh"
    for where in (device, torch.device("meta")):
        moved = move(values, where)
        for _ in range(2):
            with pytest.raises(ValueError, match=f"^{text}"):
                box_losses(**moved)
            moved["pred"] = moved["pred"].detach().requires_grad_()
    pred = values.pop("pred")
    with pytest.raises(ValueError, match=text):
        torch.func.grad(lambda pred: box_losses(pred, **values).l1.sum())(pred)


def test_a_target_that_does_not_lie_on_its_elements() -> None:
    shifted = torch.frombuffer(bytearray(33), dtype=torch.int16, count=16, offset=1).view(4, 4)
    with pytest.raises(ValueError, match="target does not lie on a multiple of the 2 bytes of a"):
        giou_loss(zeros(4, 4), shifted)
    giou_loss(zeros(4, 4), shifted.clone())


PAIRING_OF = {
    **dict.fromkeys(("target", "weight", "normalizer"), "dense"),
    **{name: name for name in ("lengths", "mask", "offsets")},
    **{"pred_index": "indices", "target_index": "sets"},
}


@pytest.mark.parametrize("other", ["cpu", "meta"])
@pytest.mark.parametrize(("argument", "pairing"), PAIRING_OF.items())
def test_mixed_devices(device: torch.device, pairing: str, argument: str, other: str) -> None:
    if device.type == other:
        pytest.skip("one device, not two")
    values = problem(pairing, device, weight=torch.float32)
    values["normalizer"] = torch.tensor(2.0, device=device)
    where = str(values["pred"].device)
    values[argument] = values[argument].to(other)
    text = f"box_loss: {argument} is on {other}, pred is on {where}; all must be on one device"
    for _ in range(2):
        with pytest.raises(RuntimeError, match=text):
            box_loss(**values)
        values["pred"].requires_grad_()


def test_a_meta_pred_with_real_targets(device: torch.device) -> None:
    target = boxes((3,), device)
    with pytest.raises(RuntimeError, match="pred is on meta; all must be on one device"):
        giou_loss(boxes((3,), torch.device("meta")), target)
