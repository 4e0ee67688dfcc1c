# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Derivatives beyond the first, and the formula in jax.numpy that they come from."""

from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any, get_args

import boxloss.jax
import boxloss.torch
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from both import DEVICE, Arrays, assert_near, floating, for_jax
from boxloss._options import Loss, RotatedLoss
from boxloss.jax import use_implementation
from combinations import long_but
from problems import (
    ANGLE_UNITS,
    FORMATS,
    PAIRINGS,
    REDUCTIONS,
    Problem,
    excluded,
    problem,
    with_overlaps,
)

DOUBLE = torch.float64


CASES = [
    *(
        {"loss": loss, "pred_format": each, "target_format": each}
        for loss, each in zip(get_args(Loss), cycle(FORMATS), strict=False)
    ),
    *({"loss": loss, "angle_unit": unit} for loss in get_args(RotatedLoss) for unit in ANGLE_UNITS),
]


def total_of(framework: Any, values: Problem) -> Any:
    """Of losses and l1 a sum of products; of rotated boxes, which have no l1, one of squares."""
    if "angle_unit" in values:
        loss = framework.rotated_box_loss(**values)
        return (loss * loss).sum()
    losses = framework.box_losses(**values)
    return (losses.loss * (losses.loss + losses.l1 / 64)).sum()


def torchs(values: Problem) -> tuple[Any, Any, Any]:
    """The sum, its gradient, and that of the gradient's squares."""
    inputs = {name: values[name].clone().requires_grad_() for name in floating(values)}
    total = total_of(boxloss.torch, {**values, **inputs})
    first = torch.autograd.grad(total, list(inputs.values()), create_graph=True)
    squares = sum((each * each).sum() for each in first)
    second = torch.autograd.grad(squares, list(inputs.values()))
    return total, dict(zip(inputs, first, strict=True)), dict(zip(inputs, second, strict=True))


def of_jax(values: Problem) -> tuple[Callable[..., Any], Callable[..., Any], Arrays]:
    """The functions of the sum and of the squares, and their argument."""
    given = for_jax(values)

    def total(inputs: Arrays) -> Any:
        return total_of(boxloss.jax, {**given, **inputs})

    def squares(inputs: Arrays) -> Any:
        return sum((each * each).sum() for each in jax.grad(total)(inputs).values())

    return total, squares, {name: given[name] for name in floating(values)}


# Of rotated boxes in one unit; polygons' take as long as all others.
LONG = [case for case in CASES if "angle_unit" in case and "degrees" in case.values()]
LONG += [case for case in CASES if "angle_unit" in case and case["loss"] in ("iou", "giou")]
DAILY = [i for i, case in enumerate(CASES) if case not in LONG]


@pytest.mark.parametrize("i", long_but(range(len(CASES)), DAILY))
def test_the_derivatives_are_torchs(i: int) -> None:
    """The second ones, and by the formula alone all of them: forward over reverse along the
    gradient is half of what the squares change by.

    Every loss, and every pairing: neither knows of the other here. What does not count is NaN.
    """
    options = {"reduction": REDUCTIONS[i % 3], "eps_mode": ("add", "clamp")[i % 2], **CASES[i]}
    dtypes = DOUBLE, DOUBLE, (None, DOUBLE)[i % 2]
    values = with_overlaps(problem(PAIRINGS[i % len(PAIRINGS)], DEVICE, *dtypes, **options))
    values["pred"][excluded(values)[0]] = torch.nan
    expected, first, second = torchs(values)
    _, squares, inputs = of_jax(values)
    for name, ours in jax.jit(jax.grad(squares))(inputs).items():
        assert_near(ours, second[name], f"by {name}")
    with use_implementation("jnp"):
        total, _, inputs = of_jax(values)
        (found, gradient), (change, curvature) = jax.jit(
            lambda inputs: jax.jvp(jax.value_and_grad(total), (inputs,), (jax.grad(total)(inputs),))
        )(inputs)
    assert_near(found, expected, "the losses")
    # A sum of products of two gradients, each as near to torch's as below.
    numbers = torch.cat([each.flatten() for each in first.values()])
    far = 2 * 1000 * 2**-53 * max(numbers.abs().max(), 1) * numbers.abs().sum()
    assert abs(float(change) - (numbers**2).sum()) <= far
    for name in first:
        assert_near(gradient[name], first[name], f"the gradient of {name}")
        assert_near(2 * curvature[name], second[name], f"the second derivative by {name}")


@pytest.mark.parametrize(
    ("pairing", "number"),
    [
        ("offsets", 1.5),
        ("indices", 1.5),
        ("sets", [1.5, 0.25]),
        # In the second set nothing counts: 0, whatever its normalizer is.
        ("sets", [1.5, 0.0]),
        ("sets", [1.5, float("nan")]),
        ("sets", None),
    ],
)
def test_the_formula_divides_by_the_normalizer(pairing: str, number: Any) -> None:
    given = {} if number is None else {"normalizer": torch.tensor(number, device=DEVICE)}
    values = problem(pairing, DEVICE, DOUBLE, DOUBLE, **given)
    if number not in (1.5, [1.5, 0.25]):
        values["pred_index"][1] = -1
    with use_implementation("jnp"):
        total, _, inputs = of_jax(values)
        found, gradient = jax.jit(jax.value_and_grad(total))(inputs)
    expected, first, _ = torchs(values)
    assert_near(found, expected, "the losses")
    for name, wanted in first.items():
        assert_near(gradient[name], wanted, f"the gradient of {name}")


@pytest.mark.parametrize("loss", long_but(get_args(RotatedLoss), get_args(RotatedLoss)[1:]))
def test_the_formula_has_the_gradients_of_pairs_at_kinks(loss: str) -> None:
    """Of rotated boxes that share edges, touch, are equal or apart: the first derivative has
    halves there, the second is a number. The giou has the iou in it."""
    file = Path(__file__).parents[1] / "core/rotated_pairs.csv"
    numbers = np.loadtxt(file, delimiter=",", quotechar='"', skiprows=1, usecols=range(1, 11))
    pairs = jnp.split(jnp.asarray(numbers), 2, 1)
    side = jnp.hstack(pairs)[:, jnp.array([2, 3, 7, 8])].max(-1, keepdims=True)

    def losses(pred: Any, target: Any) -> Any:
        return boxloss.jax.rotated_box_loss(pred, target, loss, reduction="none", eps=0.0)

    def gradients(pred: Any, target: Any) -> Any:
        return jax.jit(jax.grad(lambda *own: losses(*own).sum(), (0, 1)))(pred, target)

    def in_sides(gradients: Any) -> Any:
        return jnp.hstack([jnp.hstack((each[:, :4] * side, each[:, 4:])) for each in gradients])

    value, wanted = losses(*pairs), in_sides(gradients(*pairs))
    with use_implementation("jnp"):
        np.testing.assert_allclose(losses(*pairs), value, rtol=0, atol=100 * 2**-53)
        found = in_sides(gradients(*pairs))
    # Some edges are parallel but for their angles' rounding to float32, and the formula loses as
    # many bits.
    largest = jnp.maximum(abs(wanted).max(-1, keepdims=True), 1)
    assert (abs(found - wanted) <= 1000 * 2**-53 * 2**24 * largest).all()
    second = jax.grad(lambda *own: sum((g**2).sum() for g in gradients(*own)), (0, 1))(*pairs)
    assert all(jnp.isfinite(each).all() for each in second)


def test_forward_mode_is_refused_without_the_choice() -> None:
    values = for_jax(problem("dense", DEVICE))
    with pytest.raises(TypeError, match="custom_vjp"):
        jax.jacfwd(lambda pred: boxloss.jax.box_loss(pred, values["target"]))(values["pred"])


def test_a_choice_is_of_its_block() -> None:
    values = for_jax(problem("dense", DEVICE))

    def calls() -> bool:
        return "boxloss_jax" in jax.jit(lambda v: boxloss.jax.box_loss(**v)).lower(values).as_text()

    assert calls()
    with use_implementation("jnp"):
        assert not calls()
        with use_implementation("boxloss"):
            assert calls()
        assert not calls()
    assert calls()
    with pytest.raises(ZeroDivisionError), use_implementation("jnp"):
        raise ZeroDivisionError
    assert calls()


def test_the_choice_is_checked_as_the_calls_are() -> None:
    with (
        use_implementation("jnp"),
        pytest.raises(ValueError, match=r"^box_loss: loss is 'a'; allowed: 'iou'"),
    ):
        boxloss.jax.box_loss(jnp.ones((2, 4)), jnp.ones((2, 4)), "a")


def test_no_such_implementation() -> None:
    with (
        pytest.raises(RuntimeError, match="there is no implementation 'aten'; it is 'boxloss' or"),
        use_implementation("aten"),
    ):
        pass
