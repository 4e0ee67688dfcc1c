# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Costs, the assignment and the assigners: the bits that torch has on the same device.

What they compute is for tests/torch; here the binding hands over every dtype, layout and option.
"""

import math
from functools import partial
from typing import Any, get_args

import boxloss.jax
import boxloss.torch
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from both import (
    DEVICE,
    as_numpy,
    assert_one_after_the_other,
    assert_same_bits,
    for_jax,
    on_device,
    switched_x64,
)
from boxloss._options import LowQuality
from boxloss.jax import box_loss, matching_cost
from problems import FORMATS, Problem, boxes
from task_aligned import problem as task_aligned

HALF = torch.bfloat16


# --- Costs ---


def cost_problem(leading: tuple[int, ...] = (2,), **options: Any) -> Problem:
    """Three images of six queries, with two, no and five boxes."""
    return {
        "pred": boxes((*leading, 3, 6), DEVICE, box_format="cxcywh", seed=1),
        "target": boxes((7,), DEVICE, box_format="cxcywh", seed=2),
        "offsets": torch.tensor([0, 2, 2, 7], device=DEVICE),
        **options,
    }


def with_logits(leading: tuple[int, ...] = (2,), **options: Any) -> Problem:
    random = torch.Generator().manual_seed(3)
    return cost_problem(
        leading,
        logits=torch.randn((*leading, 3, 6, 5), generator=random).to(DEVICE),
        labels=torch.tensor([0, 1, 2, 3, 4, 0, 9], device=DEVICE),
        **options,
    )


def given_cost(*shape: int) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(4)).to(DEVICE)


@pytest.mark.parametrize(
    "values",
    [
        cost_problem(()),
        cost_problem((2, 2), loss="ciou", eps=1e-6, eps_mode="clamp"),
        with_logits(class_mode="sigmoid", class_weight=3),
        with_logits((), class_mode="focal", focal_alpha=0.3, focal_gamma=1.5),
        cost_problem(class_cost=given_cost(2, 6, 7)),
        cost_problem((2, 3), class_cost=given_cost(3, 6, 7)),
        cost_problem((2, 3), class_cost=given_cost(2, 1, 6, 7)),
        cost_problem(iou_weight=1, l1_weight=0, pred_format="xyxy"),
        cost_problem(class_cost=torch.full((6, 7), torch.inf, device=DEVICE), nonfinite=9),
        cost_problem(offsets=torch.tensor([1, 3, 3, 6], dtype=torch.int32, device=DEVICE)),
        {**cost_problem(), "pred": boxes((3, 6), DEVICE, HALF)},
        {**cost_problem(), "pred": boxes((3, 6), DEVICE, torch.float64)},
    ],
)
def test_the_costs_bits_are_torchs(values: Problem) -> None:
    expected = boxloss.torch.matching_cost(**values)
    assert_same_bits(matching_cost(**for_jax(values)), expected, "cost")


def test_pairwise_ious_bits_are_torchs() -> None:
    values = {**cost_problem(), "loss": "ciou", "target_format": "cxcywh", "eps": 1e-3}
    expected = boxloss.torch.pairwise_iou(**values)
    assert_same_bits(boxloss.jax.pairwise_iou(**for_jax(values)), expected, "overlap")


def test_costs_of_rotated_boxes_have_torchs_bits() -> None:
    values = with_logits(class_mode="sigmoid", angle_weight=3.0)
    values["pred"] = boxes((2, 3, 6), DEVICE, box_format="degrees", seed=1)
    values["target"] = boxes((7,), DEVICE, box_format="degrees", seed=2)
    of_both = {"loss": "kld", "tau": 2.0, "angle_unit": "degrees"}
    expected = boxloss.torch.matching_cost(**values, **of_both)
    assert_same_bits(matching_cost(**for_jax(values), **of_both), expected, "cost")
    of_boxes = {name: values[name] for name in ("pred", "target", "offsets")}
    ious = boxloss.torch.pairwise_iou(**of_boxes, **of_both)
    assert_same_bits(boxloss.jax.pairwise_iou(**for_jax(of_boxes), **of_both), ious, "overlap")


def test_softmax_is_jaxs() -> None:
    """The rest is the kernel's. Of five logits within 6 of each other a chance is right to 17 u in
    either softmax; the cost is of numbers up to 600, of which two are rounded once more."""
    values = with_logits()
    found, expected = matching_cost(**for_jax(values)), boxloss.torch.matching_cost(**values)
    np.testing.assert_allclose(found, as_numpy(expected), rtol=4 * 2**-24, atol=34 * 2**-24)


def test_softmax_of_half_logits_is_taken_in_float32() -> None:
    values = for_jax(with_logits())
    half = values["logits"].astype(jnp.bfloat16)
    found, expected = (
        matching_cost(**{**values, "logits": logits}) for logits in (half, half.astype(jnp.float32))
    )
    np.testing.assert_array_equal(found, expected)


# --- Matches ---


def costs(*shape: int) -> torch.Tensor:
    """With ties, and some that are not finite."""
    random = torch.Generator().manual_seed(6)
    cost = torch.randint(0, 9, shape, generator=random).float()
    cost.view(-1)[::13] = torch.inf
    cost.view(-1)[5::17] = torch.nan
    return cost


def assignment(cost: torch.Tensor, groups: int = 1) -> Problem:
    return {"cost": cost, "offsets": torch.tensor([0, 2, 2, 7]), "groups": groups}


USED = torch.tensor([[6, 7], [0, 3], [4, 2]])  # of three matrices
DTYPES = (
    *(torch.float64, torch.float16, torch.bfloat16),
    *(torch.uint8, torch.int16, torch.int32, torch.int64),
)
ANCHORS, TARGET = boxes((300,), DEVICE, seed=1), boxes((9,), DEVICE, seed=2)
OF_IMAGES = boxes((3, 40), DEVICE, seed=3)
OFFSETS = torch.tensor([1, 4, 4, 8])  # an image without boxes; the first and last are nobody's
RULES = get_args(LowQuality)


def max_iou(**changed: Any) -> Problem:
    given = {"anchors": ANCHORS, "target": TARGET, "offsets": OFFSETS, "high": 0.4, "low": 0.2}
    return {**given, **changed}


def with_ties(rule: str) -> Problem:
    """A box of NaN among them: all rules differ."""
    target = (TARGET / 4).round()
    target[2, 1] = math.nan
    anchors = (ANCHORS / 4).round()
    return max_iou(anchors=anchors, target=target, high=0.9, low=0.6, low_quality=rule)


RAGGED, PADDED = task_aligned(1), task_aligned(1, is_padded=True)
SHIFTS = torch.tensor([[[0.0, 0.0]], [[3.0, 1.0]], [[-5.0, 2.0]]])


def in_format(pred_format: str) -> torch.Tensor:
    first, last = RAGGED["pred"].chunk(2, -1)
    start = {"xyxy": first, "xywh": first, "cxcywh": (first + last) / 2}[pred_format]
    return torch.cat((start, last if pred_format == "xyxy" else last - first), -1)


PROBLEMS: dict[str, dict[str, Problem]] = {
    "hungarian_match": {
        "one": assignment(costs(6, 7)),
        "groups": assignment(costs(3, 6, 7), 2),
        "float64": assignment(costs(2, 40, 7).double(), 4),
        "float16": assignment(costs(6, 7).half()),
        "uint8": assignment(costs(6, 7).nan_to_num(9, 9).byte()),
    },
    "linear_sum_assignment": {
        "one": {"cost": costs(6, 7)},
        "many": {"cost": costs(3, 40, 7)},
        "maximize": {"cost": -costs(3, 6, 7), "maximize": True},
        "limit": {"cost": costs(3, 7, 6), "cost_limit": 2.5},
        "no limit": {"cost": costs(7, 6), "cost_limit": math.inf},
        "lengths": {"cost": costs(3, 6, 7), "lengths": USED, "maximize": True},
        "lengths of 32 bits": {"cost": costs(3, 6, 7), "lengths": USED.int(), "cost_limit": 4},
        "lengths of one": {"cost": costs(6, 7), "lengths": USED[2]},
        **{str(dtype): {"cost": costs(3, 6, 7).nan_to_num(9, 9).to(dtype)} for dtype in DTYPES},
    },
    "max_iou_match": {
        **{rule: with_ties(rule) for rule in RULES},
        "least": max_iou(low_quality="argmax", min_pos_iou=0.5, high=0.9),
        "whole numbers": max_iou(high=1, low=0, low_quality="argmax"),
        "anchors of images": max_iou(anchors=OF_IMAGES, low_quality="force"),
        "offsets of 32 bits": max_iou(offsets=OFFSETS.int()),
        "float16 and uint8": max_iou(anchors=OF_IMAGES.half(), target=TARGET.byte()),
        "float64 anchors": max_iou(anchors=ANCHORS.double()),
        "float64 target": max_iou(target=TARGET.double()),
        "rotated": max_iou(
            anchors=boxes((30,), DEVICE, box_format="degrees", seed=4),
            target=boxes((len(TARGET),), DEVICE, box_format="degrees", seed=5),
            **{"low_quality": "overwrite", "angle_unit": "degrees"},
        ),
    },
    "task_aligned_match": {
        "ragged": RAGGED,
        "padded": PADDED,
        "many padded boxes": task_aligned(2, boxes=40, images=5, is_padded=True, topk=13, topk2=1),
        "exponents": task_aligned(5, alpha=1, beta=2.5, min_side=16.0),
        "all anchors": task_aligned(6, topk=2**52),
        "rotated": task_aligned(8, is_rotated=True),
        "rotated in degrees, padded": task_aligned(
            8, is_rotated=True, is_padded=True, angle_unit="degrees"
        ),
        "float16": task_aligned(7, scores=torch.float16, pred=torch.float16, is_padded=True),
        "half target": {**PADDED, "target": PADDED["target"].to(HALF)},
        "points of each image": {**RAGGED, "points": RAGGED["points"] + SHIFTS},
        "labels of 32 bits": {**RAGGED, "labels": RAGGED["labels"].int()},
        "offsets of 32 bits": {**RAGGED, "offsets": RAGGED["offsets"].int()},
        **{each: {**RAGGED, "pred": in_format(each), "pred_format": each} for each in FORMATS},
        **{
            f"float64 {each}": {**RAGGED, each: RAGGED[each].double()}
            for each in ("scores", "pred", "points", "target")
        },
    },
}
# Without x64 there is no float64.
CASES = [
    pytest.param(function, name, x64, id=f"{function},{name},{x64}")
    for function, problems in PROBLEMS.items()
    for name in problems
    for x64 in ((True,) if "float64" in name else (True, False))
]


@pytest.mark.parametrize(("function", "name", "x64"), CASES)
def test_the_bits_are_torchs(function: str, name: str, x64: bool) -> None:
    """Without x64 indices are int32."""
    values = PROBLEMS[function][name]
    expected = getattr(boxloss.torch, function)(**on_device(values))
    arrays = {k: as_numpy(v) if isinstance(v, torch.Tensor) else v for k, v in values.items()}
    with switched_x64(x64):
        found = getattr(boxloss.jax, function)(**arrays)
    assert type(found).__name__ == type(expected).__name__
    assert found._fields == expected._fields
    for field, array, tensor in zip(expected._fields, found, expected, strict=True):
        is_narrow = tensor.dtype == torch.int64 and not x64
        assert_same_bits(array, tensor.int() if is_narrow else tensor, field)


def test_lengths_that_lead_outside_are_no_pairs_of_that_matrix() -> None:
    cost = for_jax({"cost": costs(5, 6, 7)})["cost"]
    bad = jnp.array([[6, 7], [7, 2], [2, 8], [-1, 2], [2, -1]])
    found = boxloss.jax.linear_sum_assignment(cost, lengths=bad)
    expected = boxloss.jax.linear_sum_assignment(cost[:1])
    for field, whole in zip(found, expected, strict=True):
        np.testing.assert_array_equal(field[:1], whole)
        assert (whole >= 0).any()
        assert (field[1:] == -1).all()


def test_an_assignment_has_no_gradient() -> None:
    cost = jnp.array([[1.0, 3.0], [4.0, 2.0]])

    def total(cost: jax.Array) -> jax.Array:
        column = boxloss.jax.linear_sum_assignment(cost).column_of_row
        return jnp.take_along_axis(cost, column[:, None], 1).sum()

    np.testing.assert_array_equal(jax.jit(jax.grad(total))(cost), jnp.eye(2))


def test_the_rules_differ() -> None:
    found = [boxloss.jax.max_iou_match(**for_jax(with_ties(rule))).target_index for rule in RULES]
    assert len({each.tobytes() for each in map(np.asarray, found)}) == len(RULES)


# A call of each assigner, and what of it is batched.
ASSIGNERS = {
    "max_iou_match": ("anchors", max_iou(low_quality="argmax")),
    "task_aligned_match": ("scores", {**RAGGED, "topk": 5, "topk2": 3}),
    "task_aligned_match, padded": ("scores", {**PADDED, "topk": 5, "topk2": 3}),
}


@pytest.mark.parametrize("name", ASSIGNERS)
def test_vmap_is_one_call_after_the_other(name: str) -> None:
    batched, values = ASSIGNERS[name]
    given = for_jax(values)
    first = given.pop(batched)
    many = jnp.stack([first + i if batched == "anchors" else first ** (i + 1) for i in range(3)])
    function = getattr(boxloss.jax, name.partition(",")[0])

    def match(each: jax.Array) -> Any:
        return function(**given, **{batched: each})

    assert (match(many[0]).target_index >= 0).any()
    assert_one_after_the_other(match, (0,), many)


@pytest.mark.parametrize(
    ("name", "pred"), [("max_iou_match", "anchors"), ("task_aligned_match", "pred")]
)
def test_an_assigner_has_no_gradient(name: str, pred: str) -> None:
    """Where it is a part of what is differentiated."""
    values = for_jax(ASSIGNERS[name][1])
    given = values.pop(pred)
    match = partial(getattr(boxloss.jax, name), **values)

    def loss(pred: jax.Array, index: jax.Array) -> jax.Array:
        rows = jnp.broadcast_to(pred, (3, *pred.shape[-2:])).reshape(-1, 4)
        return box_loss(rows, values["target"], "ciou", target_index=index.ravel())

    def matched(each: jax.Array) -> jax.Array:
        index, *others = match(**{pred: each})
        return loss(each, index) + sum(other.sum() for other in others)

    expected = jax.grad(loss)(given, match(**{pred: given})[0])
    assert expected.any()
    np.testing.assert_array_equal(jax.grad(matched)(given), expected)
