# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Losses, pairings and options against plain pairings, tensors of any dtype and layout against
plain ones, and numbers by hand.
"""

import math
from typing import Any

import pytest
import torch
from boxloss.torch import box_loss
from combinations import pairwise
from comparison import (
    assert_same_in_double,
    check_formula,
    check_handed_over,
    outputs_of,
    run,
    run_formula,
)
from devices import Implementation
from layouts import (
    DENSE,
    LAYOUTS,
    contiguous,
    first_dimension_last,
    in_planes,
    one_image,
    with_gaps,
)
from problems import (
    ANGLE_UNITS,
    FLOATING,
    FORMATS,
    INDICES,
    LOSSES,
    PAIRINGS,
    PARAMETERS,
    REDUCTIONS,
    ROTATED_LOSSES,
    TARGETS,
    Problem,
    boxes,
    indexed,
    is_in_sets,
    pairs_of,
    problem,
    with_overlaps,
)
from torch import Tensor

pytestmark = pytest.mark.asan
BOTH = ("loss", "l1")
DOUBLE = torch.float64
PAIRINGS_OF_THE_TABLE: dict[str, tuple[str, Problem]] = {
    **{name: (name, {}) for name in PAIRINGS},
    "three dimensions": ("dense", {"grid": (2, 3, 5)}),
    "four dimensions": ("mask", {"grid": (1, 3, 2, 2)}),
    "pred_index": ("indices", {"given": INDICES[:1], "most": 6}),
    "target_index": ("sets", {"given": INDICES[1:], "most": 6}),
    "lists of images": ("sets", {"pred_list": (2, 3, 4), "target_list": (3, 2, 2, 2), "most": 6}),
}
NORMALIZERS: dict[str, Any] = {
    "float64": (2.5, torch.float64),
    "float32": (2.5, torch.float32),
    "int64": (7, torch.int64),
    "int32": (7, torch.int32),
}
# What is differentiated, nothing for box_loss; and the formats, which l1 wants to be the same.
OUTPUTS = [
    ((), "xyxy", "xywh"),
    ((), "xywh", "cxcywh"),
    ((), "cxcywh", "xyxy"),
    *((BOTH, each, each) for each in FORMATS),
    (("loss",), "xyxy", "xyxy"),
    (("l1",), "cxcywh", "cxcywh"),
]


def normalizer(kind: str, values: Problem) -> Tensor:
    """One for all, or one for each set, with a gap between them."""
    number, dtype = NORMALIZERS[kind]
    numbers = torch.tensor([number, 100, 0.5 * number, 100], device=values["pred"].device)
    numbers = numbers.to(dtype)
    return numbers[::2] if is_in_sets(values) and kind in ("float64", "int32") else numbers[0]


# With a gradient for the loss: of reduced ones only sets have several numbers.
UPSTREAMS = ("ordinary", "expanded", "transposed", "sliced", "one number")
REDUCED = [
    *(("none", each) for each in UPSTREAMS),
    ("sum", "sliced"),
    ("mean", "one number"),
    *((each, "ordinary") for each in NORMALIZERS),
]


def upstream_of(kind: str, loss: Tensor) -> Tensor | None:
    """A gradient for the loss, as others may hand it over."""
    shape, count = loss.shape, loss.numel()
    if kind == "ordinary" or not shape:
        return None
    numbers = torch.arange(1.0, 1 + 2 * count, device=loss.device) / (2 * count)
    return {
        "expanded": numbers[: shape[-1]].expand(shape),
        "transposed": numbers[:count].reshape(shape[::-1]).permute(*reversed(range(len(shape)))),
        "sliced": numbers[::2].reshape(shape),
        "one number": numbers[3].expand(shape),
    }[kind]


FORMULAS_OPTIONS = {
    "pairing": PAIRINGS_OF_THE_TABLE,
    "loss": LOSSES,
    "reduction": (*REDUCTIONS, "normalizer"),
    "outputs": OUTPUTS,
    "weight": (None, torch.float64),
    "eps": [("add", 1e-7), ("clamp", 1e-7), ("add", 5.0), ("clamp", 300.0)],
}


def check_reduced(
    case: dict[str, Any],
    device: torch.device,
    by: tuple[str, ...],
    roundings: float = 64,
    **options: Any,
) -> None:
    pairing, more = PAIRINGS_OF_THE_TABLE[case["pairing"]]
    dtypes = DOUBLE, DOUBLE, case["weight"]
    values = with_overlaps(problem(pairing, device, *dtypes, **more, **options))
    if case["reduction"] == "normalizer":
        values["normalizer"] = normalizer("float64", values)
    else:
        values["reduction"] = case["reduction"]
    assert pairs_of(values)
    check_formula(values, by=by, roundings=roundings)


@pytest.mark.parametrize("case", pairwise(**FORMULAS_OPTIONS))
def test_options_are_the_formulas(
    implementation_or_aten: Implementation, case: dict[str, Any]
) -> None:
    by, pred_format, target_format = case["outputs"]
    eps_mode, eps = case["eps"]
    options = {"pred_format": pred_format, "target_format": target_format}
    options |= {"loss": case["loss"], "eps_mode": eps_mode, "eps": eps}
    check_reduced(case, implementation_or_aten.device, by, **options)


@pytest.mark.parametrize(
    "case",
    pairwise(
        pairing=PAIRINGS_OF_THE_TABLE,
        loss=ROTATED_LOSSES,
        reduction=(*REDUCTIONS, "normalizer"),
        angle_unit=ANGLE_UNITS,
        weight=(None, torch.float64),
        eps=[("add", 5.0), ("clamp", 300.0)],
    ),
)
def test_rotated_boxes_are_the_formulas(
    implementation_or_aten: Implementation, case: dict[str, Any]
) -> None:
    options = {name: case[name] for name in ("loss", "angle_unit")}
    options["eps_mode"], options["eps"] = case["eps"]
    check_reduced(case, implementation_or_aten.device, (), 800, **options)


# --- Pairs of every kind that a formula treats in its own way ---

Box = list[float]

# Small integers: sides, areas and centres are exact, so that what ties here ties in any dtype.
TIED: list[tuple[Box, Box]] = [
    ([0, 0, 4, 2], [0, 0, 4, 2]),  # equal
    ([0, 0, 4, 4], [0, 1, 6, 3]),  # one edge in common
    ([0, 0, 4, 4], [0, 0, 6, 6]),  # two
    ([2, 2, 6, 4], [0, 1, 8, 5]),  # one centre and shape
    ([0, 2, 8, 4], [0, 0, 8, 6]),  # one centre and width
    ([1, 2, 3, 7], [0, 0, 8, 8]),  # nested
    ([0, 0, 2, 2], [2, 0, 4, 2]),  # touching in x
    ([0, 0, 2, 2], [2, 2, 4, 4]),  # touching in a corner
    ([0, 0, 2, 4], [5, 1, 7, 3]),  # apart in x
]
WITHOUT_AREA: list[tuple[Box, Box]] = [
    ([0, 0, 4, 0], [1, -1, 3, 5]),  # flat
    ([1, -1, 3, 5], [0, 0, 4, 0]),  # a flat target
    ([0, 2, 4, 2], [2, 0, 2, 4]),  # flat and thin
    ([0, 3, 4, 3], [0, 3, 4, 3]),  # both flat, equal
    ([1, 1, 1, 1], [0, 0, 4, 4]),  # a point
    ([1, 1, 1, 1], [3, 2, 3, 2]),  # two points
    ([1, 1, 1, 1], [1, 1, 1, 1]),  # the same point
]
INVERTED: list[tuple[Box, Box]] = [
    ([6, 0, 2, 4], [1, 1, 9, 3]),  # in x
    ([0, 0, 7, 3], [1, 6, 5, 2]),  # a target in y
    ([6, 5, 2, 1], [7, 6, 2, 3]),  # both in both
    ([6, 5, 2, 1], [6, 5, 2, 1]),  # equal
    ([0, 0, 4, 2], [4, 2, 0, 0]),  # mirror images
    ([6, 3, 2, 3], [1, 1, 5, 4]),  # and without height
]


def pairs_of_every_kind(is_without_area: bool = True) -> tuple[Tensor, Tensor]:
    """pred and target in double; or of those kinds alone that have a loss when eps is 0."""
    pairs = TIED + WITHOUT_AREA + INVERTED if is_without_area else TIED[:6]
    pred, target = torch.tensor(pairs).double().unbind(1)
    return pred, target


@pytest.mark.parametrize(
    "case",
    pairwise(
        loss=LOSSES,
        eps=[("add", 1e-7), ("clamp", 1e-7), ("add", 0.25), ("clamp", 4.0), ("add", 0.0)],
    ),
)
def test_every_kind_of_boxes_is_the_references(
    implementation_or_aten: Implementation, case: dict[str, Any]
) -> None:
    mode, eps = case["eps"]
    pairs = pairs_of_every_kind(is_without_area=eps > 0)
    pred, target = (each.to(implementation_or_aten.device) for each in pairs)
    options = {"loss": case["loss"], "eps": eps, "eps_mode": mode, "reduction": "none"}
    values = {"pred": pred, "target": target, **options, **PARAMETERS.get(case["loss"], {})}
    ones = torch.ones(len(pred))
    actual, expected = run(values, ones, BOTH), run_formula(values, ones, BOTH)
    of_pair = torch.cat([expected[name] for name in ("pred", "target")], -1).abs().amax(-1)
    of_pair = of_pair.maximum(expected["loss"].abs())
    for name, result in actual.items():
        largest = of_pair[:, None] if name in ("pred", "target") else expected[name].abs()
        assert_same_in_double(result, expected[name], largest)


# --- As torch's tensors reach core ---

HANDED_OVER = {
    "pairing": PAIRINGS_OF_THE_TABLE,
    "reduced": REDUCED,
    "outputs": OUTPUTS,
    "pred": FLOATING,
    "target": TARGETS,
    "weight": (None, *FLOATING),
    "index": (torch.int32, torch.int64),
    "pred_layout": LAYOUTS,
    "target_layout": LAYOUTS,
    "others_layout": (contiguous, with_gaps, first_dimension_last, one_image),
}


def handed_over(device: torch.device, case: dict[str, Any]) -> Problem:
    pairing, options = PAIRINGS_OF_THE_TABLE[case["pairing"]]
    if pairing in ("indices", "sets"):  # no row twice, so that nothing is added in 16 bits
        options = {"target_list": (14,), **options, "most": 1}
    _, pred_format, target_format = case["outputs"]
    formats = {"pred_format": pred_format, "target_format": target_format}
    if "angle_unit" in case:
        formats = {"loss": "giou", "angle_unit": case["angle_unit"]}
    options = {**options, **formats}
    dtypes = (case["pred"], case["target"], case["weight"])
    values = with_overlaps(problem(pairing, device, *dtypes, **options))
    for name in ("pred", "target"):
        values[name] = case[f"{name}_layout"](values[name])
    for name in {"lengths", "offsets", *INDICES} & values.keys():
        values[name] = values[name].to(case["index"])
    for name in {"weight", "mask", "lengths", "offsets", *INDICES} & values.keys():
        # One offset again makes no pairs, one set's indices again make two of each.
        if name not in ("offsets", *INDICES) or case["others_layout"] is not one_image:
            values[name] = case["others_layout"](values[name])
    reduction = case["reduced"][0]
    if reduction in NORMALIZERS:
        return {**values, "normalizer": normalizer(reduction, values)}
    return {**values, "reduction": reduction}


ROTATED = {"outputs": [((), "", "")], "angle_unit": ANGLE_UNITS}


@pytest.mark.parametrize("case", pairwise(**HANDED_OVER) + pairwise(**{**HANDED_OVER, **ROTATED}))
def test_tensors_are_handed_over(device: torch.device, case: dict[str, Any]) -> None:
    """As they are: what a kernel makes of dtypes and strides tests/conformance shows."""
    values = handed_over(device, case)
    assert pairs_of(values)
    upstream = upstream_of(case["reduced"][1], outputs_of(values)["loss"])
    results = check_handed_over(values, upstream, case["outputs"][0])

    for name in ("pred", "target"):
        if name in results and not set(INDICES) & values.keys() and case[f"{name}_layout"] in DENSE:
            assert results[name].stride() == values[name].stride()
        elif name in results:
            assert results[name].is_contiguous()
    assert "weight" not in results or results["weight"].is_contiguous()


@pytest.mark.parametrize("offsets", [[-7, 3, 10, 99], [-3, -2, -1, 0], [13, 13, 14, 15]])
def test_offsets_that_lead_outside(
    implementation_or_aten: Implementation, offsets: list[int]
) -> None:
    device = implementation_or_aten.device
    values = problem("offsets", device, DOUBLE, DOUBLE, DOUBLE, reduction="none")
    check_formula({**values, "offsets": torch.tensor(offsets, device=device)})


def test_padding_is_four_zeros(implementation_or_aten: Implementation) -> None:
    values = problem("zero_padded", implementation_or_aten.device, DOUBLE, DOUBLE, reduction="none")
    values["target"][0] = torch.tensor([0.0, 1.0, 5.0, 6.0])
    check_formula(values)


def test_a_pred_that_is_no_grids(implementation_or_aten: Implementation) -> None:
    device = implementation_or_aten.device
    pred = boxes((4, 3, 2), device, DOUBLE, seed=1).permute(2, 0, 1, 3)
    values = {"pred": pred, "target": boxes((2, 4, 3), device, DOUBLE), "reduction": "none"}
    assert check_formula(values, by=BOTH)["pred"].stride() == pred.stride()


@pytest.mark.parametrize("shape", [(), (1,), (7,), (1, 1)])
def test_few_leading_dimensions(reference: torch.device, shape: tuple[int, ...]) -> None:
    pred, target = (boxes(shape, reference, DOUBLE, seed=seed) for seed in (1, 2))
    values = {"pred": in_planes(pred) if len(shape) > 0 else pred, "target": target}
    results = check_formula({**values, "reduction": "none"})
    assert results["pred"].stride() == values["pred"].stride()
    check_formula({**values, "mask": torch.ones(shape, dtype=torch.bool)})


@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_a_factor_of_each_set_that_nobody_keeps(
    implementation: Implementation, reduction: str
) -> None:
    """Without gradients factors lie beside the workspace, and there must be room for all."""
    options = {"loss": "giou", "reduction": reduction, "most": 100}
    values = indexed((1000, 1), implementation.device, torch.float64, torch.float64, **options)
    assert torch.equal(box_loss(**values), run(values)["loss"])


def test_any_number_of_threads_has_the_same_bits(implementation: Implementation) -> None:
    """Torch's; tests/conformance has every case with threads of its own."""
    # Several tasks or blocks, the last one not full.
    values = problem("mask", implementation.device, grid=(7, 16_411), weight=torch.float32)
    before, results = torch.get_num_threads(), []
    try:
        for number in (1, 2, 5, 1):  # which a GPU does not have
            torch.set_num_threads(number)
            results.append(run(values, by=BOTH))
    finally:
        torch.set_num_threads(before)
    for again in results[1:]:
        for name, result in results[0].items():
            assert torch.equal(result, again[name]), name


# --- By hand ---

# Of boxes of sides 2 and 2, 2 and 4, whose intersection is 2 and union 10; their centres are 1 and
# 1 apart, and 3 and 4 enclose them.
DIOU, V = 0.8 + 2 / 25, (2 / math.pi * (math.atan(1 / 2) - math.atan(1))) ** 2
DISTANCE = 2 - math.exp(-1 / 9) - math.exp(-1 / 16)
BY_HAND: dict[str, tuple[float, Problem]] = {
    "iou": (0.8, {}),
    "iou_squared": (0.96, {}),
    "iou_log": (math.log(5), {}),
    "giou": (0.8 + 2 / 12, {}),
    "diou": (DIOU, {}),
    "ciou": (DIOU + V * V / (0.8 + V), {}),
    "ciou_gated": (DIOU, {}),  # α is 0 where the IoU is below a half
    "eiou": (DIOU + 4 / 16, {}),
    "siou": (0.8 + (DISTANCE + (1 - math.exp(-0.5)) ** 4) / 2, {}),
    "alpha_iou": (1 - 0.2**2.5, {"alpha": 2.5}),
    "nwd": (1 - math.exp(-math.sqrt(3) / 12), {"constant": 12.0}),
    "mpdiou": (0.8 + 6 / 6400, {"image_width": 64.0, "image_height": 48.0}),
    "inner_iou": (1 - 0.625 / 6.125, {"ratio": 0.75}),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_words_and_numbers_by_hand(implementation_or_aten: Implementation, loss: str) -> None:
    """All implementations are told by the same lines."""
    device = implementation_or_aten.device
    pred = torch.tensor([0.0, 0, 2, 2], device=device, dtype=DOUBLE)
    target = torch.tensor([1.0, 0, 3, 4], device=device, dtype=DOUBLE)
    wanted, numbers = BY_HAND[loss]
    assert box_loss(pred, target, loss, eps=0.0, **numbers).item() == pytest.approx(wanted, 1e-12)
    if loss == "iou":
        for eps, eps_mode in ((10.0, "add"), (20.0, "clamp")):
            assert box_loss(pred, target, loss, eps=eps, eps_mode=eps_mode).item() == 0.9


@pytest.mark.parametrize("eps_mode", ["add", "clamp"])
@pytest.mark.parametrize("loss", ["ciou", "ciou_gated"])
def test_an_alpha_of_next_to_nothing(device: torch.device, loss: str, eps_mode: str) -> None:
    """The iou rounds to 1, and v is subnormal: its reciprocal is infinite."""
    pred = torch.tensor([0, 0, 1e8, 1e-6], device=device, requires_grad=True)
    target = torch.tensor([0, 0, 1e8 + 8, 1e-6], device=device)
    given = box_loss(pred, target, loss, eps_mode=eps_mode)
    (gradient,) = torch.autograd.grad(given, pred, create_graph=True)
    assert torch.autograd.grad(gradient.sum(), pred)[0].isfinite().all()


def test_small_halves_where_subnormal_floats_are_flushed(implementation: Implementation) -> None:
    side = 2.0**-15  # subnormal in float16, and its area is none in float32
    box = torch.tensor([0, 0, side, side], dtype=torch.float16, device=implementation.device)
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor cannot flush subnormal floats")
    try:
        loss = run({"pred": box, "target": box, "eps": 0.0})["loss"]
    finally:
        torch.set_flush_denormal(False)
    assert loss.item() == 0
