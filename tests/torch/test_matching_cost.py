# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""matching_cost and pairwise_iou: aten's beside cpu/reference's, and as torch's tensors reach core.

What cpu/reference gives tests/core works out by hand, what kernels make of it is for
tests/conformance.
"""

import inspect
import math
from typing import Any

import pytest
import torch
from boxloss._options import LOSS_PARAMETERS, ROTATED_LOSS_PARAMETERS
from boxloss.torch import matching_cost, pairwise_iou, use_implementation
from combinations import pairwise_cases
from comparison import UNIT_ROUNDOFF, assert_within
from devices import Implementation
from matching import classes, cost_problem
from problems import FLOATING, FORMATS, LOSSES, PARAMETERS, ROTATED_LOSSES, TARGETS, Problem, boxes
from test_matchers import LAYOUTS
from torch import Tensor

CPU = torch.device("cpu")
DOUBLE = torch.float64
MODES = ("softmax", "sigmoid", "focal")
OWN = {**LOSS_PARAMETERS, **ROTATED_LOSS_PARAMETERS}  # names of a loss' own numbers


def with_term(values: Problem, term: str | None, scores: torch.dtype = torch.float32) -> Problem:
    if term in MODES:
        return {**classes(values, dtype=scores), "class_mode": term}
    if term == "given":
        random = torch.Generator().manual_seed(8)
        given = torch.randn(3, 9, generator=random)
        return {**values, "class_cost": given.to(values["pred"].device, scores)}
    return values


def only_ious(values: Problem) -> Problem:
    names = {*inspect.signature(pairwise_iou).parameters}
    names |= PARAMETERS.get(values.get("loss", ""), {}).keys()
    return {name: each for name, each in values.items() if name in names}


def by_both(values: Problem, function: Any = matching_cost) -> tuple[Tensor, Tensor]:
    """The operator by aten, which is given all by name, and the function by cpu/reference."""
    with use_implementation("cpu/reference"):
        wanted = function(**values)
    own = OWN.get(values.get("loss", ""), ())
    given = {name: each for name, each in values.items() if name not in own}
    given |= {"parameters": [values[name] for name in own]} if own else {}
    with use_implementation("aten"):
        found = getattr(torch.ops.boxloss, function.__name__)(**given)
    assert (found.dtype, found.shape) == (torch.float32, wanted.shape)
    return found, wanted


def check(values: Problem, function: Any = matching_cost, roundings: float = 100) -> None:
    """In double, some 100 roundings lie between an entry and the other, of which a logarithm has
    four; both are stored in float32. Columns of no image are 0.
    """
    found, wanted = by_both(values, function)
    assert wanted.isfinite().all()
    columns = wanted.shape[-1]
    first, last = values["offsets"][[0, -1]].clamp(0, columns).tolist()
    assert not wanted[..., :first].any()
    assert not wanted[..., last:].any()
    wanted = wanted.double()
    largest = wanted.abs().amax() if wanted.numel() else 0.0
    error = (
        roundings * UNIT_ROUNDOFF[DOUBLE] * largest + UNIT_ROUNDOFF[torch.float32] * wanted.abs()
    )
    assert_within(found, wanted, error, "cost")


OFFSETS = (
    [1, 3, 3, 6, 7],
    [-(2**63), 2, 2, 12, 2**63 - 1],  # which are clamped
    [10, 11, 12, 13, 14],
)
# cost_problem's arguments, and others.
OPTIONS = {
    "layers": ((), (1,), (2, 3)),
    "loss": LOSSES,
    "eps": (1e-7, 0.25),
    "eps_mode": ("add", "clamp"),
}
# A term that is left out would leave out what it depends on.
OTHERS: dict[str, Any] = {
    # Of pred and target, and the weight of l1, which wants one format.
    "formats": [(p, t, 0.0 if p != t else 5.0) for p in FORMATS for t in FORMATS],
    "weights": ((2.0, 1.0), (-1.5, -3.0)),
    "term": (*MODES, "given"),
    "focal": ((0.25, 2.0), (0.25, 0.0), (0.6, 1.5), (0.0, 2.0), (1.0, 3.0)),
    "scale_of_scores": (1, 30),  # logits of 180
    "offsets": OFFSETS,
}


@pytest.mark.parametrize("case", pairwise_cases({**OPTIONS, **OTHERS}))
def test_options(case: dict[str, Any]) -> None:
    options = {name: case[name] for name in OPTIONS}
    names = ("pred_format", "target_format", "l1_weight", "iou_weight", "class_weight")
    options |= dict(zip(names, (*case["formats"], *case["weights"]), strict=True))
    options |= dict(zip(("focal_alpha", "focal_gamma"), case["focal"], strict=True))
    values = with_term(cost_problem(CPU, DOUBLE, DOUBLE, **options), case["term"], DOUBLE)
    values["offsets"] = torch.tensor(case["offsets"])
    for name in {"logits", "class_cost"} & values.keys():
        values[name] = case["scale_of_scores"] * values[name]
    check(values)
    check(only_ious(values), pairwise_iou)


@pytest.mark.parametrize(
    "shape", [(2, 3, 3, 9), (3, 9), (3, 3, 9), (1, 3, 9), (2, 1, 3, 9), (1, 1, 3, 9)]
)
def test_shapes_of_a_class_cost(shape: tuple[int, ...]) -> None:
    values = cost_problem(CPU, DOUBLE, layers=(2, 3), class_weight=1.5)
    given = torch.randn(shape, generator=torch.Generator().manual_seed(8))
    values["class_cost"] = given
    check(values)


@pytest.mark.parametrize("term", [*MODES, "given", None])
def test_a_weight_of_0_leaves_its_term_out(term: str | None) -> None:
    for name, left_out in (("pred", ("iou_weight", "l1_weight")), ("scores", ("class_weight",))):
        values = with_term(cost_problem(CPU, DOUBLE), term)
        for each in ("logits", "class_cost") if name == "scores" else ("pred",):
            if each in values:
                values[each] = torch.full_like(values[each], math.nan)
        values |= dict.fromkeys(left_out, 0.0)
        check(values)
    formats = {"pred_format": "xyxy", "target_format": "xyxy"}
    values = cost_problem(CPU, DOUBLE, loss="iou_log", iou_weight=0.0, **formats)
    values["pred"] += 1000  # which overlaps nothing: its loss is infinite
    check(values)


@pytest.mark.parametrize("mode", MODES)
def test_no_class_at_all(implementation_or_aten: Implementation, mode: str) -> None:
    values = classes(cost_problem(implementation_or_aten.device, class_mode=mode))
    wanted = matching_cost(**values, class_weight=0.0)
    values["labels"].fill_(-1)
    assert torch.equal(matching_cost(**values), wanted)
    values["logits"] = values["logits"][..., :0]
    assert torch.equal(matching_cost(**values), wanted)


# --- As torch's tensors reach core ---

HANDED_OVER: dict[str, Any] = {
    "pred_dtype": FLOATING,
    "target_dtype": TARGETS,
    "layers": ((), (1,), (2, 3)),
    "term": (*MODES, "given"),
    "scores": FLOATING,
    "integers": ((torch.int32, torch.int64), (torch.int64, torch.int32)),
    "layout": ("columns", "wider rows"),
}


@pytest.mark.asan
@pytest.mark.parametrize("case", pairwise_cases(HANDED_OVER))
def test_tensors_are_handed_over(
    implementation_or_aten: Implementation, case: dict[str, Any]
) -> None:
    """The bits are those of contiguous tensors with the same numbers.

    But a GPU's softmax, which adds as it likes: within ten roundings of a probability.
    """
    dtypes = {name: case[name] for name in ("pred_dtype", "target_dtype", "layers")}
    compute = DOUBLE if DOUBLE in (case["pred_dtype"], case["target_dtype"]) else torch.float32
    device = implementation_or_aten.device
    values = with_term(cost_problem(device, **dtypes), case["term"], case["scores"])
    for name in {"pred", "target", "logits", "class_cost"} & values.keys():
        values[name] = LAYOUTS[case["layout"]](values[name])
    for name, dtype in zip(("offsets", "labels"), case["integers"], strict=True):
        if name in values:
            values[name] = values[name].to(dtype).repeat_interleave(2)[::2]
    plain = {
        name: (each.to(compute) if each.is_floating_point() else each.long()).contiguous()
        if isinstance(each, Tensor)
        else each
        for name, each in values.items()
    }
    cost, wanted = matching_cost(**values), matching_cost(**plain)
    if case["term"] == "softmax" and device.type == "cuda":
        torch.testing.assert_close(cost, wanted, rtol=2 * 2.0**-24, atol=10 * 2.0**-24)
    else:
        assert torch.equal(cost, wanted)
    assert torch.equal(pairwise_iou(**only_ious(values)), pairwise_iou(**only_ious(plain)))


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    ("name", "where"),
    [("pred", (1, 2, 1, 2)), ("target", (4, 2)), ("logits", (1, 2, 1, 1)), ("class_cost", (1, 4))],
)
def test_nan_stays_visible_and_may_be_replaced(
    name: str, where: tuple[int, ...], number: float
) -> None:
    """By aten where it does by cpu/reference."""
    values = cost_problem(CPU, DOUBLE)
    values = with_term(values, "given" if name == "class_cost" else "softmax")
    # What is nobody's, and queries of an image without boxes, are not read.
    values["target"][[0, 7, 8]], values["pred"][:, 1] = math.nan, math.nan
    values[name] = values[name].clone()
    values[name][where] = number
    found, wanted = by_both(values)
    assert name == "logits" or not wanted.isfinite().all()  # others have a softmax of 0
    torch.testing.assert_close(found, wanted, rtol=1e-6, atol=1e-6, equal_nan=True)
    for replacement in (1e5, -2.5, 0.0, torch.finfo(torch.float32).max):
        replaced, _ = by_both(values | {"nonfinite": replacement})
        assert torch.equal(replaced, found.where(found.isfinite(), replacement))


@pytest.mark.parametrize("gap", [0, 1])
def test_the_stride_of_one_image_means_nothing(
    implementation_or_aten: Implementation, gap: int
) -> None:
    """Without gaps such a tensor is contiguous to torch, whatever that stride is."""
    device, generator = implementation_or_aten.device, torch.Generator().manual_seed(0)

    def layers(last: int, size: int = 5) -> Tensor:
        row = last + gap
        values = torch.rand(3 * size * row, generator=generator).to(device)
        return values.as_strided((3, 1, size, last), (size * row, 7, row, 1))

    pred, logits, given = layers(4), layers(6), layers(4)[:, 0]
    assert pred.is_contiguous() == (gap == 0)
    target = torch.rand(4, 4, generator=generator).to(device)
    offsets, labels = torch.tensor([0, 4], device=device), torch.arange(4, device=device)
    for scores in ({"logits": logits, "labels": labels}, {"class_cost": given}):
        by_layer = [
            {name: each if name == "labels" else each[i].clone() for name, each in scores.items()}
            for i in range(3)
        ]
        cost = matching_cost(pred, target, offsets, **scores)
        for i, of_layer in enumerate(by_layer):
            wanted = matching_cost(pred[i].clone(), target, offsets, **of_layer)
            assert torch.equal(cost[i], wanted)


def rotated_problem(device: torch.device, loss: str, unit: Any = "radians") -> Problem:
    values = cost_problem(device, loss=loss, angle_unit=unit)
    values["pred"] = boxes((2, 4, 3), device, DOUBLE, unit, seed=1)
    values["target"] = boxes((9,), device, DOUBLE, unit, seed=2)
    return values


@pytest.mark.parametrize("unit", ["radians", "degrees"])
@pytest.mark.parametrize("loss", ROTATED_LOSSES)
def test_rotated_boxes(loss: str, unit: str) -> None:
    """As many roundings as test_losses.py allows the losses."""
    values = rotated_problem(CPU, loss, unit)
    weights = {"iou_weight": -1.5, "l1_weight": 0.5, "class_weight": 3.0, "angle_weight": 7.0}
    check(classes(values) | weights | {"class_mode": "sigmoid", "eps": 1e-7}, roundings=800)
    check(values, pairwise_iou, roundings=800)
    for left_out in weights:
        check(values | weights | {left_out: 0.0}, roundings=800)
    values["pred"] = torch.full_like(values["pred"], math.nan)
    check(values | dict.fromkeys(weights, 0.0))
