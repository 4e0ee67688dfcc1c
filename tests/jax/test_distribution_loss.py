# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The loss of distributions: torch's bits, and by a plain formula its other derivatives."""

from functools import partial
from itertools import product
from typing import Any

import boxloss.torch
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from both import assert_one_after_the_other, for_jax, on_device
from boxloss.jax import distribution_loss, use_implementation
from of_logits import (
    assert_bits_of_torch,
    assert_derivatives,
    assert_formula_reduces_as_the_calls,
    derivatives,
    of_logits,
)
from problems import FLOATING, Problem

BOXES, BINS = 6, 7
SHAPES = ((5, 28), (3, 5, 28), (2, 3, 5, 28))  # queries, 4 * bins; with images; with layers
OTHER_NUMBERS = {"fgl": {"reg_scale": 3.0}, "ddf": {"temperature": 2.0}}
REDUCED: tuple[Problem, ...] = ({"reduction": "none"}, {"reduction": "sum"}, {})
NORMALIZED: tuple[Problem, ...] = (
    {"normalizer": 2.5},
    {"normalizer": torch.tensor(3)},
    {"normalizer": torch.tensor([3.0, 0.5], dtype=torch.float64)},
)
WAYS = [*product(("fgl", "ddf"), REDUCED), *product(("fgl",), NORMALIZED)]


def problem(mode: str, shape: tuple[int, ...] = SHAPES[2], dtype: Any = torch.float64) -> Problem:
    """With queries of no box and ones left out, rows that there are not, and sides beyond bins."""
    random = torch.Generator().manual_seed(3)

    def numbers(*size: int) -> torch.Tensor:
        return torch.rand(size, generator=random, dtype=torch.float64)

    values: Problem = {
        "logits": (8 * numbers(*shape) - 4).to(dtype),
        "target_index": torch.randint(-3, BOXES + 1, shape[:-1], generator=random),
        "mode": mode,
        "quality": numbers(*shape[:-1]).half(),
    }
    if mode == "fgl":
        values["reference"] = 0.25 + numbers(*shape[:-1], 4) / 2
        values["target"] = (0.25 + numbers(BOXES, 4) / 2).float()
        values["edges"] = torch.tensor([-4.0, -1.0, -0.25, 0.0, 0.25, 1.0, 4.0])
    else:
        values["teacher"] = (8 * numbers(*shape[-3:]) - 4).float()
        values["confidence"] = numbers(*shape[-3:-1])
    return on_device(values)


def cases() -> list[Any]:
    """Every way with every shape; dtypes and numbers in turn."""
    ways = [(shape, *way) for shape, way in product(SHAPES, WAYS)]
    return [
        (*way, FLOATING[i % 4], OTHER_NUMBERS[way[1]] if i % 2 else {})
        for i, way in enumerate(ways)
        if np.ndim(way[2].get("normalizer", 0)) == 0 or len(way[0]) == 4
    ]


@pytest.mark.parametrize(("shape", "mode", "reduced", "dtype", "numbers"), cases())
def test_the_bits_are_torchs(
    shape: tuple[int, ...], mode: str, reduced: Problem, dtype: Any, numbers: Problem
) -> None:
    values = problem(mode, shape, dtype) | on_device(reduced) | numbers
    if mode == "ddf" and len(shape) == 4 and numbers:  # a teacher for each layer
        values["teacher"] = torch.stack((values["teacher"], -values["teacher"]))
    assert_bits_of_torch(distribution_loss, boxloss.torch.distribution_loss, values)


def plain_side(values: Problem, x: jax.Array, place: jax.Array, side: jax.Array) -> jax.Array:
    """As the sources have it, of a query that counts."""
    query = tuple(place)
    if values["mode"] == "ddf":
        t = 5
        teacher = jax.nn.softmax(values["teacher"][query][side].astype(jnp.float64) / t)
        return t**2 * (teacher * (jnp.log(teacher) - jax.nn.log_softmax(x / t))).sum()
    of_query = values["reference"][query]
    of_box = values["target"][values["target_index"][query]].astype(jnp.float64)
    axis, sign = side % 2, jnp.where(side >= 2, 1, -1)
    end = of_box[axis] + sign * of_box[axis + 2] / 2
    offset = sign * (end - of_query[axis]) / (of_query[axis + 2] / 4 + 1e-16) - 2
    edges = values["edges"].astype(jnp.float64)
    # What is to be in a bin rises from one neighbour's edge to its own, and falls to the other's.
    wanted = jax.vmap(lambda of_bin: jnp.interp(offset, edges, of_bin))(jnp.eye(BINS))
    return -(wanted * jax.nn.log_softmax(x)).sum()


def plain_sum(values: Problem, logits: jax.Array) -> jax.Array:
    """Of all queries' losses, of problems without layers."""
    row, sides = np.asarray(values["target_index"]), (*logits.shape[:-1], 4, BINS)
    if values["mode"] == "ddf":
        values = {**values, "teacher": values["teacher"].reshape(sides)}
    is_matched = (row >= 0) & ((row < BOXES) | (values["mode"] == "ddf"))
    counted = is_matched if values["mode"] == "fgl" else row != -2
    weight = jnp.where(is_matched, values["quality"], values.get("confidence", 0))[counted]
    of_sides = jax.vmap(partial(plain_side, values), (0, None, 0))
    x, places = logits.reshape(sides)[counted], np.argwhere(counted)
    losses = jax.vmap(of_sides, (0, 0, None))(x, places, np.arange(4))
    return (weight[:, None].astype(jnp.float64) * losses).sum()


@pytest.mark.parametrize("mode", ["fgl", "ddf"])
def test_derivatives_of_the_second_order(mode: str) -> None:
    values = for_jax(problem(mode, SHAPES[1]))
    assert_derivatives(distribution_loss, partial(plain_sum, values), values)


@pytest.mark.parametrize(("mode", "reduced"), WAYS)
def test_the_formula_reduces_as_the_calls(mode: str, reduced: Problem) -> None:
    """Of the second layer no query has a box, nor has any a weight of its own."""
    values = problem(mode) | OTHER_NUMBERS[mode] | on_device(reduced)
    values["target_index"][1] = -1
    del values["quality"]
    assert_formula_reduces_as_the_calls(distribution_loss, for_jax(values))


@pytest.mark.parametrize("mode", ["fgl", "ddf"])
def test_nothing_but_logits_has_a_gradient(mode: str) -> None:
    values = for_jax(problem(mode))
    names = {"quality", "reference", "target", "edges", "teacher", "confidence"} & {*values}

    def loss(others: Any) -> jax.Array:
        return distribution_loss(**{**values, **others}).sum()

    for implementation in ("boxloss", "jnp"):
        with use_implementation(implementation):
            gradients = jax.grad(loss)({name: values[name] for name in names})
            assert not any(each.any() for each in gradients.values())


@pytest.mark.parametrize("mode", ["fgl", "ddf"])
def test_what_is_left_out_is_in_no_derivative(mode: str) -> None:
    values = for_jax(problem(mode))
    left_out, matched = (0, 0, 0), (0, 0, 1)
    values["target_index"] = values["target_index"].at[left_out].set(-2).at[matched].set(2)
    for name in {"logits", "quality", "reference"} & {*values}:
        values[name] = values[name].at[left_out].set(jnp.nan)
    for found in derivatives(distribution_loss, values):
        assert jnp.isfinite(found).all()
        assert not found[left_out].any()
        assert found[matched].any()


@pytest.mark.parametrize("mode", ["fgl", "ddf"])
def test_vmap_is_one_call_after_the_other(mode: str) -> None:
    values = for_jax(problem(mode))

    def step(logits: jax.Array, index: jax.Array) -> Any:
        ours = of_logits(distribution_loss, {**values, "target_index": index})
        loss, pull = jax.vjp(ours, logits)
        return loss, pull(loss)

    names = ("logits", "target_index")
    logits, index = (jnp.stack([each, -each, each]) for each in (values[name] for name in names))
    assert_one_after_the_other(step, (0, 0), logits, index)
    assert_one_after_the_other(step, (0, None), logits, index[0])


@pytest.mark.parametrize(
    ("mode", "shape", "boxes"),
    [
        *product(("fgl", "ddf"), ((0, 3, 5, 28), (2, 0, 5, 28), (3, 0, 28)), (6,)),
        ("fgl", (3, 5, 28), 0),
    ],
)
def test_empty(mode: str, shape: tuple[int, ...], boxes: int) -> None:
    values = for_jax(problem(mode, shape))
    if mode == "fgl":
        values["target"] = values["target"][:boxes]

    def loss(logits: jax.Array) -> jax.Array:
        return distribution_loss(**{**values, "logits": logits}).sum()

    for implementation in ("boxloss", "jnp"):
        with use_implementation(implementation):
            found, gradient = jax.jit(jax.value_and_grad(loss))(values["logits"])
        assert found == 0
        assert gradient.shape == shape
        assert not gradient.any()


def test_forward_mode_is_refused_without_the_choice() -> None:
    values = for_jax(problem("ddf"))
    with pytest.raises(TypeError, match="custom_vjp"):
        jax.jacfwd(of_logits(distribution_loss, values))(values["logits"])
