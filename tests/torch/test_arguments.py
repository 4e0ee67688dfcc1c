# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Bad arguments: the type of the error, and its text, on real tensors and on meta ones."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from boxloss.torch import (
    CIoULoss,
    box_loss,
    box_losses,
    giou_loss,
    matching_cost,
    pairwise_iou,
    siou_loss,
)
from problems import Problem, boxes, problem


def zeros(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.zeros(shape, dtype=dtype)


# A valid problem's name, what is changed in it, and the error's text. Grids are (3, 5), lists 12,
# indices 10, and sets (2, 7).
VALUE_ERRORS: list[tuple[str, dict[str, Any], str]] = [
    ("dense", {"pred_format": "yxyx"}, "pred_format is 'yxyx'; allowed: 'xyxy', 'xywh', 'cxcywh'"),
    ("dense", {"target_format": ""}, "target_format is ''; allowed: 'xyxy', 'xywh', 'cxcywh'"),
    ("dense", {"reduction": "Mean"}, "reduction is 'Mean'; allowed: 'none', 'sum', 'mean'"),
    ("dense", {"eps_mode": "max"}, "eps_mode is 'max'; allowed: 'add', 'clamp'"),
    ("dense", {"eps": -1.0}, "eps is -1; it must be finite and not negative"),
    ("dense", {"eps": float("nan")}, "eps is nan; it must be finite"),
    ("dense", {"eps": float("inf")}, "eps is inf; it must be finite"),
    ("dense", {"eps": 1e39}, r"eps is 1e\+39; it must be finite and not negative, as a Float"),
    (
        "mask",
        {"zero_padded": True},
        "give at most one of zero_padded, lengths, mask, offsets and indices; "
        "got zero_padded mask$",
    ),
    (
        "lengths",
        {"offsets": zeros(4, dtype=torch.int64)},
        "give at most one of zero_padded, lengths, mask, offsets and indices; got lengths offsets$",
    ),
    (
        "dense",
        {"pred": zeros(3, 5, 5)},
        r"pred has shape \[3, 5, 5\]; its last dimension must be",
    ),
    ("dense", {"pred": zeros()}, r"pred has shape \[\]; its last dimension must be 4"),
    ("dense", {"target": zeros(3)}, r"target has shape \[3\]; its last dimension must be 4"),
    (
        "dense",
        {"target": zeros(1, 5, 4)},
        r"pred has shape \[3, 5, 4\], target has shape \[1, 5, 4\]; they must be equal",
    ),
    (
        "zero_padded",
        {"pred": zeros(15, 4), "target": zeros(15, 4)},
        r"pred has shape \[15, 4\]; with zero_padded, lengths or offsets it must be \(images,",
    ),
    (
        "lengths",
        {"pred": zeros(1, 3, 5, 4)},
        r"pred has shape \[1, 3, 5, 4\]; with zero_padded",
    ),
    (
        "offsets",
        {"pred": zeros(15, 4)},
        r"pred has shape \[15, 4\]; with zero_padded",
    ),
    (
        "offsets",
        {"target": zeros(3, 5, 4)},
        r"target has shape \[3, 5, 4\]; with offsets it must be \(boxes of all images, 4\)",
    ),
    (
        "offsets",
        {"offsets": zeros(3, dtype=torch.int64)},
        r"offsets has shape \[3\]; it must be \[4\], one more than pred has images",
    ),
    (
        "lengths",
        {"lengths": zeros(3, 1, dtype=torch.int64)},
        r"lengths has shape \[3, 1\]; it must be \[3\], one for each image of pred",
    ),
    (
        "mask",
        {"mask": zeros(5, dtype=torch.bool)},
        r"mask has shape \[5\]; it must be \[3, 5\], pred's without the 4",
    ),
    (
        "dense",
        {"weight": zeros(3, 1)},
        r"weight has shape \[3, 1\]; it must be \[3, 5\], the shape of the unreduced loss",
    ),
    ("dense", {"weight": zeros()}, r"weight has shape \[\]; it must be \[3, 5\], the shape of the"),
    (
        "offsets",
        {"weight": zeros(3, 5)},
        r"weight has shape \[3, 5\]; it must be \[12\], the",
    ),
    (
        "dense",
        {"normalizer": zeros(), "reduction": "sum"},
        "normalizer needs reduction 'mean', which it redefines",
    ),
    ("dense", {"normalizer": zeros(), "reduction": "none"}, "normalizer needs reduction 'mean'"),
    ("dense", {"normalizer": zeros(1)}, r"normalizer has shape \[1\]; it must have no dimension"),
    (
        "indices",
        {"mask": zeros(3, 5, dtype=torch.bool)},
        "give at most one of zero_padded, lengths, mask, offsets and indices; "
        "got mask pred_index target_index$",
    ),
    (
        "indices",
        {"target_index": None, "zero_padded": True},
        "give at most one of .*; got zero_padded pred_index$",
    ),
    (
        "lengths",
        {"target_index": zeros(3, 5, dtype=torch.int64)},
        "give at most one of .*; got lengths target_index$",
    ),
    (
        "offsets",
        {"pred_index": zeros(12, dtype=torch.int64)},
        "give at most one of .*; got offsets pred_index$",
    ),
    (
        "indices",
        {"pred_index": zeros(1, 2, 5, dtype=torch.int64)},
        r"pred_index has shape \[1, 2, 5\]; it must be \(pairs\) or \(sets, pairs\)$",
    ),
    (
        "indices",
        {"target_index": zeros(dtype=torch.int64)},
        r"target_index has shape \[\]; it must be \(pairs\) or \(sets, pairs\)$",
    ),
    (
        "indices",
        {"target_index": zeros(9, dtype=torch.int64)},
        r"target_index has shape \[9\]; it must be \[10\], pred_index's shape$",
    ),
    (
        "sets",
        {"target_index": zeros(14, dtype=torch.int64)},
        r"target_index has shape \[14\]; it must be \[2, 7\], pred_index's shape$",
    ),
    (
        "sets",
        {"pred_index": zeros(1, 7, dtype=torch.int64)},
        r"target_index has shape \[2, 7\]; it must be \[1, 7\], pred_index's shape$",
    ),
    (
        "indices",
        {"target_index": None},
        r"target has shape \[12, 4\]; it must be \[10, 4\], the shape of the other index, with a 4",
    ),
    (
        "sets",
        {"pred_index": None},
        r"pred has shape \[3, 5, 4\]; it must be \[2, 7, 4\], the shape of the other index, with a",
    ),
    (
        "sets",
        {"target_index": None, "target": zeros(14, 4)},
        r"target has shape \[14, 4\]; it must be \[2, 7, 4\], the shape of the other index",
    ),
    ("indices", {"pred": zeros(15, 3)}, r"pred has shape \[15, 3\]; its last dimension must be 4"),
    ("sets", {"target": zeros()}, r"target has shape \[\]; its last dimension must be 4"),
    (
        "indices",
        {"weight": zeros(12)},
        r"weight has shape \[12\]; it must be \[10\], the shape of the unreduced loss$",
    ),
    (
        "sets",
        {"weight": zeros(2, 1)},
        r"weight has shape \[2, 1\]; it must be \[2, 7\], the shape of the unreduced loss$",
    ),
    (
        "sets",
        {"normalizer": zeros(7)},
        r"normalizer has shape \[7\]; it must have no dimension or, with indices",
    ),
    (
        "sets",
        {"normalizer": zeros(1)},
        r"normalizer has shape \[1\]; it must have no dimension or, with indices",
    ),
    (
        "sets",
        {"normalizer": zeros(2, 1)},
        r"normalizer has shape \[2, 1\]; it must have no dimension",
    ),
    (
        "indices",
        {"normalizer": zeros(10)},
        r"normalizer has shape \[10\]; it must have no dimension",
    ),
    ("sets", {"normalizer": zeros(2), "reduction": "sum"}, "normalizer needs reduction 'mean'"),
]

FLOATING = "it must be float64, float32, float16 or bfloat16"
ANY_NUMBER = "it must be float64, float32, float16, bfloat16, uint8, int16, int32 or int64"
INTEGER = "it must be int32 or int64"
TYPE_ERRORS: list[tuple[str, dict[str, Any], str]] = [
    ("dense", {"pred": zeros(3, 5, 4, dtype=torch.int64)}, f"pred is Long; {FLOATING}$"),
    (
        "dense",
        {"pred": zeros(3, 5, 4, dtype=torch.complex64)},
        "pred is ComplexFloat; it must be",
    ),
    (
        "dense",
        {"pred": zeros(3, 5, 4, dtype=torch.float8_e5m2)},
        "pred is Float8_e5m2; it must be",
    ),
    (
        "dense",
        {"target": zeros(3, 5, 4, dtype=torch.bool)},
        f"target is Bool; {ANY_NUMBER}$",
    ),
    ("dense", {"target": zeros(3, 5, 4, dtype=torch.int8)}, f"target is Char; {ANY_NUMBER}$"),
    ("dense", {"weight": zeros(3, 5, dtype=torch.int32)}, f"weight is Int; {FLOATING}"),
    ("lengths", {"lengths": zeros(3)}, f"lengths is Float; {INTEGER}"),
    ("lengths", {"lengths": zeros(3, dtype=torch.int16)}, f"lengths is Short; {INTEGER}"),
    ("offsets", {"offsets": zeros(4, dtype=torch.uint8)}, f"offsets is Byte; {INTEGER}"),
    ("mask", {"mask": zeros(3, 5, dtype=torch.uint8)}, "mask is Byte; it must be bool"),
    ("indices", {"pred_index": zeros(10)}, f"pred_index is Float; {INTEGER}$"),
    ("sets", {"target_index": zeros(2, 7, dtype=torch.bool)}, f"target_index is Bool; {INTEGER}$"),
    ("sets", {"pred_index": zeros(2, 7, dtype=torch.int16)}, f"pred_index is Short; {INTEGER}$"),
    ("sets", {"pred": zeros(3, 5, 4, dtype=torch.uint8)}, f"pred is Byte; {FLOATING}$"),
    ("indices", {"target": zeros(12, 4, dtype=torch.int8)}, f"target is Char; {ANY_NUMBER}$"),
    ("indices", {"weight": zeros(10, dtype=torch.int64)}, f"weight is Long; {FLOATING}$"),
    (
        "sets",
        {"normalizer": zeros(2, dtype=torch.bfloat16)},
        "normalizer is BFloat16; it must be float64, float32, int64 or int32",
    ),
    (
        "dense",
        {"normalizer": zeros(dtype=torch.float16)},
        "normalizer is Half; it must be float64, float32, int64 or int32",
    ),
]


def move(values: Problem, device: torch.device) -> Problem:
    return {n: v.to(device) if isinstance(v, torch.Tensor) else v for n, v in values.items()}


def assert_raises(kind: type[Exception], text: str, values: Problem, device: torch.device) -> None:
    """With and without gradients, which take different ways; and on meta tensors."""
    for where in (device, torch.device("meta")):
        moved = move(values, where)
        with pytest.raises(kind, match=f"^giou_loss: {text}"):
            giou_loss(**moved)
        if moved["pred"].is_floating_point() or moved["pred"].is_complex():
            moved["pred"] = moved["pred"].detach().requires_grad_()
            with pytest.raises(kind, match=f"^giou_loss: {text}"):
                giou_loss(**moved)


@pytest.mark.parametrize(("pairing", "change", "text"), VALUE_ERRORS)
def test_value_errors(device: torch.device, pairing: str, change: Problem, text: str) -> None:
    assert_raises(ValueError, text, {**problem(pairing, device), **change}, device)


@pytest.mark.parametrize(("argument", "place"), [("pred", 0), ("target", 1), ("offsets", 2)])
@pytest.mark.parametrize("kind", ["NoneType", "list", "ndarray"])
@pytest.mark.parametrize(
    "function",
    [giou_loss, box_loss, box_losses, siou_loss, CIoULoss(), matching_cost, pairwise_iou],
    ids=lambda function: getattr(function, "__name__", "module"),
)
def test_what_is_no_tensor(
    function: Callable[..., Any], kind: str, argument: str, place: int
) -> None:
    is_matcher = function in (matching_cost, pairwise_iou)
    if argument == "offsets" and not is_matcher:
        pytest.skip("the losses have offsets that may be None")
    name = getattr(function, "__name__", "")
    asked = name if is_matcher or function in (giou_loss, box_losses) else "box_loss"
    given: list[Any] = [zeros(1, 3, 4), zeros(1, 3, 4)]
    if is_matcher:
        given = [zeros(1, 3, 4), zeros(2, 4), torch.tensor([0, 2])]
    function(*given)
    given[place] = {"NoneType": None, "list": [0.0], "ndarray": given[place].numpy()}[kind]
    text = f"^{asked}: {argument} is {kind}; it must be a tensor$"
    with pytest.raises(TypeError, match=text):
        function(*given)


def test_what_stands_for_a_tensor_is_no_error() -> None:
    def losses(pred: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return giou_loss(pred, target) + box_loss(pred, target, "ciou")

    given = boxes((5,), torch.device("cpu"), seed=1), boxes((5,), torch.device("cpu"), seed=2)
    assert torch.equal(torch.fx.symbolic_trace(losses)(*given), losses(*given))


def test_an_unknown_loss() -> None:
    with pytest.raises(ValueError, match=r"^box_loss: loss is 'GIoU'; allowed: 'iou', .*'giou'"):
        box_loss(zeros(5, 4), zeros(5, 4), "GIoU")  # type: ignore[arg-type]


@pytest.mark.parametrize("where", ["device", "meta", "gradient", "transform"])
@pytest.mark.parametrize("function", [giou_loss, box_loss, box_losses])
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
    text = (
        "box_losses: l1 is of values in one format, but pred_format is 'cxcywh' and "
        "target_format is 'xywh'$"
    )
    for where in (device, torch.device("meta")):
        moved = move(values, where)
        for _ in range(2):
            with pytest.raises(ValueError, match=f"^{text}"):
                box_losses(**moved)
            moved["pred"] = moved["pred"].detach().requires_grad_()
    with pytest.raises(ValueError, match=text):
        torch.func.grad(lambda pred: box_losses(**{**values, "pred": pred}).l1.sum())(
            values["pred"]
        )


def test_a_target_that_does_not_lie_on_its_elements() -> None:
    shifted = torch.frombuffer(bytearray(33), dtype=torch.int16, count=16, offset=1).view(4, 4)
    with pytest.raises(ValueError, match="target does not lie on a multiple of the 2 bytes of a"):
        giou_loss(zeros(4, 4), shifted)
    giou_loss(zeros(4, 4), shifted.clone())


@pytest.mark.parametrize(("pairing", "change", "text"), TYPE_ERRORS)
def test_type_errors(device: torch.device, pairing: str, change: Problem, text: str) -> None:
    assert_raises(TypeError, text, {**problem(pairing, device), **change}, device)


@pytest.mark.parametrize("other", ["cpu", "meta"])
@pytest.mark.parametrize(
    ("pairing", "argument"),
    [
        ("dense", "target"),
        ("dense", "weight"),
        ("dense", "normalizer"),
        ("lengths", "lengths"),
        ("mask", "mask"),
        ("offsets", "offsets"),
        ("indices", "pred_index"),
        ("sets", "target_index"),
    ],
)
def test_mixed_devices(device: torch.device, pairing: str, argument: str, other: str) -> None:
    if device.type == other:
        pytest.skip("one device, not two")
    values = problem(pairing, device, weight=torch.float32)
    values["normalizer"] = torch.tensor(2.0, device=device)
    where = str(values["pred"].device)
    values[argument] = values[argument].to(other)
    text = f"giou_loss: {argument} is on {other}, pred is on {where}; all must be on one device"
    with pytest.raises(RuntimeError, match=text):
        giou_loss(**values)
    values["pred"].requires_grad_()
    with pytest.raises(RuntimeError, match=text):
        giou_loss(**values)


def test_a_meta_pred_with_real_targets(device: torch.device) -> None:
    target = boxes((3,), device)
    with pytest.raises(RuntimeError, match="pred is on meta; all must be on one device"):
        giou_loss(boxes((3,), torch.device("meta")), target)


def test_broadcasting_is_not_done(device: torch.device) -> None:
    with pytest.raises(ValueError, match="they must be equal"):
        giou_loss(boxes((5,), device), boxes((), device))
