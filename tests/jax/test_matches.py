# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Costs, the assignment and the assigners: the bits that torch has on the same device.

What they compute is for tests/torch; here the binding hands over every dtype and option.
"""

import math
from collections.abc import Iterator
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
    switched_x64,
)
from boxloss._options import LowQuality
from boxloss.jax import matching_cost
from losses_of_logits import moved
from matching import classes
from problems import FLOATING, FORMATS, TARGETS, Problem, boxes
from task_aligned import problem as task_aligned
from test_matchers import PROBLEMS, first_of

NAMES = [name for name in PROBLEMS if "_loss" not in name and not name.endswith("softmax")]
CPU = torch.device("cpu")
FIRST = {name: PROBLEMS[name](CPU) for name in NAMES if " " not in name}
COST = FIRST["matching_cost"]
TURNED = {"loss": "kld", "tau": 2.0, "angle_unit": "degrees"}
TURNED |= {
    name: boxes(COST[name].shape[:-1], CPU, box_format="degrees", seed=seed)
    for seed, name in enumerate(("pred", "target"))
}
# Boxes with ties and one of NaN, for which all rules differ.
ANCHORS, TIES = ((boxes((n,), CPU, seed=n) / 4).round() for n in (300, 9))
TIES[2, 1] = math.nan
FOR_RULES = {"anchors": ANCHORS, "target": TIES, "high": 0.9, "low": 0.6, "min_pos_iou": 0.0}
SHIFTS = torch.tensor([[[0.0, 0.0]], [[3.0, 1.0]], [[-5.0, 2.0]]])
# Of each function's problem in torch's table.
CHANGES: dict[str, list[Problem]] = {
    "matching_cost": [
        {"loss": "ciou", "eps": 1e-6, "eps_mode": "clamp"},
        {"iou_weight": 1, "l1_weight": 0, "pred_format": "xyxy"},
        {**classes(COST), "class_mode": "sigmoid", "class_weight": 3},
        {**classes(COST), "class_mode": "focal", "focal_alpha": 0.3, "focal_gamma": 1.5},
        {"class_cost": torch.linspace(-1, 1, 81).reshape(3, 3, 9)},
        {"class_cost": torch.linspace(-1, 1, 54).reshape(2, 1, 3, 9)},
        {"class_cost": torch.full((3, 9), math.inf), "nonfinite": 9},
        {**classes(COST), **TURNED, "class_mode": "sigmoid", "angle_weight": 3.0},
    ],
    "pairwise_iou": [{"loss": "ciou", "target_format": "cxcywh", "eps": 1e-3}, TURNED],
    "hungarian_match": [{"groups": 1}],
    "linear_sum_assignment": [
        {"lengths": None, "cost_limit": math.inf},
        {"cost": FIRST["linear_sum_assignment"]["cost"][0], "lengths": torch.tensor([4, 2])},
    ],
    "max_iou_match": [
        *({**FOR_RULES, "low_quality": rule} for rule in get_args(LowQuality)),
        {**FOR_RULES, "low_quality": "argmax", "min_pos_iou": 0.5},
        {"high": 1, "low": 0, "target": FIRST["max_iou_match"]["target"].byte()},
    ],
    "task_aligned_match": [
        {"alpha": 1, "beta": 2.5},
        {"topk": 1},
        {"topk": 2**52, "beta": 1},
        {"points": FIRST["task_aligned_match"]["points"] + SHIFTS},
        *({"pred_format": each} for each in FORMATS[1:]),
        task_aligned(8, is_rotated=True, is_padded=True, angle_unit="degrees"),
    ],
}


def problems() -> Iterator[Any]:
    """Torch's table; of each function also its changes, and each tensor in other dtypes.

    Without x64 indices are int32, and there is no float64.
    """
    for name in NAMES:
        yield from of_both(name, PROBLEMS[name](CPU))
    for name, values in FIRST.items():
        for i, changed in enumerate(CHANGES[name]):
            yield from of_both(f"{name} {i}", {**values, **changed})
        for argument, each in values.items():
            if isinstance(each, torch.Tensor):
                dtypes = FLOATING if each.is_floating_point() else (torch.int32,)
                if argument == "cost":
                    dtypes, each = TARGETS, 9 * each
                for dtype in dtypes:
                    changed = {**values, argument: each.to(dtype)}
                    yield pytest.param(name, changed, True, id=f"{name},{argument},{dtype}")


def of_both(name: str, values: Problem) -> Iterator[Any]:
    is_double = any(getattr(each, "dtype", None) == torch.float64 for each in values.values())
    for x64 in (True,) if is_double else (True, False):
        yield pytest.param(name.partition(" ")[0], values, x64, id=f"{name},{x64}")


@pytest.mark.parametrize(("function", "values", "x64"), [*problems()])
def test_the_bits_are_torchs(function: str, values: Problem, x64: bool) -> None:
    expected = getattr(boxloss.torch, function)(**moved(values, DEVICE))
    arrays = {k: as_numpy(v) if isinstance(v, torch.Tensor) else v for k, v in values.items()}
    with switched_x64(x64):
        found = getattr(boxloss.jax, function)(**arrays)
    if isinstance(expected, torch.Tensor):
        found, expected = (found,), (expected,)
    else:
        assert type(found).__name__ == type(expected).__name__
        assert found._fields == expected._fields
    for array, tensor in zip(found, expected, strict=True):
        is_narrow = tensor.dtype == torch.int64 and not x64
        assert_same_bits(array, tensor.int() if is_narrow else tensor, function)


@pytest.mark.parametrize("name", CHANGES)
def test_every_change_is_one(name: str) -> None:
    """Else nothing would tell whether JAX hears of it."""
    results = [
        getattr(boxloss.torch, name)(**moved({**FIRST[name], **changed}, DEVICE))
        for changed in ({}, *CHANGES[name])
    ]
    of_all = [(each,) if isinstance(each, torch.Tensor) else each for each in results]
    assert len({tuple(as_numpy(each).tobytes() for each in found) for found in of_all}) == len(
        of_all
    )


def test_softmax_is_jaxs() -> None:
    """The rest is the kernel's. Of five logits within 12 of each other a chance is right to 29 u in
    either softmax; the cost is of numbers up to 600, of which two are rounded once more."""
    values = classes({**COST, "target": COST["target"].float()})
    found, expected = matching_cost(**for_jax(values)), boxloss.torch.matching_cost(**values)
    np.testing.assert_allclose(found, as_numpy(expected), rtol=4 * 2**-24, atol=58 * 2**-24)


def test_softmax_of_half_logits_is_taken_in_float32() -> None:
    values = for_jax(classes(COST | {"target": COST["target"].float()}))
    half = values["logits"].astype(jnp.bfloat16)
    found, expected = (
        matching_cost(**{**values, "logits": logits}) for logits in (half, half.astype(jnp.float32))
    )
    np.testing.assert_array_equal(found, expected)


def test_an_assignment_has_no_gradient() -> None:
    cost = jnp.array([[1.0, 3.0], [4.0, 2.0]])

    def total(cost: jax.Array) -> jax.Array:
        column = boxloss.jax.linear_sum_assignment(cost).column_of_row
        return jnp.take_along_axis(cost, column[:, None], 1).sum()

    np.testing.assert_array_equal(jax.jit(jax.grad(total))(cost), jnp.eye(2))


@pytest.mark.parametrize(("label", "row"), [(-1, -1), (2, -1), (99, -1), (1, 0)])
def test_a_label_that_names_no_class_gets_no_anchor(label: int, row: int) -> None:
    """Torch refuses it, where it sees it."""
    scores, box = jnp.full((1, 1, 2), 0.5), jnp.array([[0.0, 0, 4, 4]])
    offsets, labels = jnp.array([0, 1]), jnp.array([label])
    found = boxloss.jax.task_aligned_match(
        scores, box[None], jnp.array([[1.0, 1]]), box, offsets, labels
    )
    assert found.target_index.item() == row
    np.testing.assert_allclose([found.score, found.overlap], row + 1, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "name", ["max_iou_match", "task_aligned_match", "task_aligned_match padded"]
)
def test_vmap_is_one_call_after_the_other(name: str) -> None:
    given = for_jax(PROBLEMS[name](CPU))
    batched = first_of(given)
    first = given.pop(batched)
    many = jnp.stack([first + i if batched == "anchors" else first ** (i + 1) for i in range(3)])
    function = getattr(boxloss.jax, name.partition(" ")[0])

    def match(each: jax.Array) -> Any:
        return function(**given, **{batched: each})

    assert (match(many[0]).target_index >= 0).any()
    assert_one_after_the_other(match, (0,), many)
