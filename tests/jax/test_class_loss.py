# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The class loss: torch's bits, and by plain formulas its derivatives of the second order."""

from functools import partial
from itertools import product
from typing import Any, get_args

import boxloss.jax
import boxloss.torch
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from both import assert_one_after_the_other, for_jax, on_device
from boxloss._options import ClassLossMode
from boxloss.jax import class_loss, use_implementation
from of_logits import (
    assert_bits_of_torch,
    assert_derivatives,
    assert_formula_reduces_as_the_calls,
    derivatives,
    of_logits,
)
from problems import FLOATING, REDUCTIONS, Problem

MODES = get_args(ClassLossMode)
WITHOUT_QUALITY = ("focal", "softmax")
OTHER_NUMBERS = {mode: {"alpha": 0.0, "gamma": 1.25} for mode in MODES[:4]}
SHAPES = ((5, 7), (3, 5, 7), (2, 3, 5, 7))  # queries, classes; with images; with layers
BOXES = 6


def problem(mode: str, shape: tuple[int, ...] = SHAPES[2], dtype: Any = torch.float64) -> Problem:
    """With queries of no box and ones left out, and with rows and labels that there are not."""
    random = torch.Generator().manual_seed(3)

    def numbers(*size: int) -> torch.Tensor:
        return torch.rand(size, generator=random, dtype=torch.float64)

    values: Problem = {
        "logits": (8 * numbers(*shape) - 4).to(dtype),
        "target_index": torch.randint(-3, BOXES + 1, shape[:-1], generator=random),
        "labels": torch.tensor([3, 0, 7, 6, -1, 2], dtype=torch.int32),
        "mode": mode,
        "weight": 0.5 + numbers(shape[-1]).float(),
    }
    if mode not in WITHOUT_QUALITY:
        values["quality"] = numbers(BOXES).half()
    if mode == "softmax":
        values["no_object_weight"] = 0.1
    return on_device(values)


def changes() -> list[Any]:
    """Every mode, with every shape; the others in turn."""
    normalizers = (None, 2.5, torch.tensor(1.5), torch.tensor([3.0, 0.5], dtype=torch.float64))
    return [
        (mode, shape, FLOATING[(i + j) % 4], REDUCTIONS[(i + j + i // 3) % 3], normalizers[i % 4])
        for (i, mode), (j, shape) in product(enumerate(MODES), enumerate(SHAPES))
    ]


@pytest.mark.parametrize(("mode", "shape", "dtype", "reduction", "normalizer"), changes())
def test_the_bits_are_torchs(
    mode: str, shape: tuple[int, ...], dtype: Any, reduction: str, normalizer: Any
) -> None:
    values = problem(mode, shape, dtype) | {"reduction": reduction}
    if reduction == "mean" and (normalizer is None or len(shape) == 4 or np.ndim(normalizer) == 0):
        values |= on_device({"normalizer": normalizer})
    if len(shape) == 3:
        values |= OTHER_NUMBERS.get(mode, {})
    if mode not in WITHOUT_QUALITY and reduction == "sum":
        values["query_quality"] = values.pop("quality").double()[values["target_index"].clip(0, 5)]
    assert_bits_of_torch(class_loss, boxloss.torch.class_loss, values)


def plain(mode: str, x: jax.Array, own: jax.Array, q: jax.Array, weight: jax.Array) -> jax.Array:
    """As the sources have them, of one query: the losses of its classes."""
    if mode == "softmax":
        wanted = jnp.where(own < 0, len(x) - 1, own)
        factor = jnp.where(own < 0, 0.1, 1) * weight[wanted]
        return -factor * jax.nn.log_softmax(x)[wanted]
    p, held = jax.nn.sigmoid(x), jax.lax.stop_gradient

    def towards(t: Any) -> jax.Array:
        return -t * jax.nn.log_sigmoid(x) - (1 - t) * jax.nn.log_sigmoid(-x)

    present, absent = {
        "focal": (0.25 * (1 - p) ** 2 * towards(1), 0.75 * p**2 * towards(0)),
        "varifocal": (q * towards(q), 0.75 * held(p) ** 2 * towards(0)),
        "mal": (towards(q**1.5), held(p) ** 1.5 * towards(0)),
        "ia_bce": (
            towards(jnp.maximum(held(p) ** 0.25 * q**0.75, 0.01)),
            p**2 * towards(0),
        ),
        "bce": (towards(q), towards(0)),
    }[mode]
    return (weight * jnp.where(jnp.arange(len(x)) == own, present, absent)).sum()


def plain_sum(values: Problem, logits: jax.Array) -> jax.Array:
    """Of all queries' losses."""
    rows, classes = np.asarray(values["target_index"]).ravel(), logits.shape[-1]
    own = jnp.where((rows >= 0) & (rows < BOXES), values["labels"][rows % BOXES], -1)
    own = jnp.where((own >= 0) & (own < classes), own, -1)
    q = values.get("quality", jnp.ones(BOXES)).astype(jnp.float64)[rows % BOXES]
    of_query = jax.vmap(partial(plain, values["mode"]), (0, 0, 0, None))
    weight = values["weight"].astype(jnp.float64)
    return of_query(logits.reshape(-1, classes), own, q, weight)[rows != -2].sum()


@pytest.mark.parametrize("mode", MODES)
def test_derivatives_of_the_second_order(mode: str) -> None:
    values = for_jax(problem(mode, SHAPES[1]))
    assert_derivatives(class_loss, partial(plain_sum, values), values)


REDUCED: tuple[dict[str, Any], ...] = (
    {"reduction": "none"},
    {"reduction": "sum"},
    {"reduction": "mean"},
    {"normalizer": jnp.float64(3)},
)
BY_LAYER = {"normalizer": jnp.arange(1.0, 3)}


@pytest.mark.parametrize("reduced", [*REDUCED, BY_LAYER], ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_the_formula_reduces_as_the_calls(mode: str, reduced: dict[str, Any]) -> None:
    """Of the second layer no query has a box; all weights together are less than 1."""
    values = for_jax(problem(mode)) | OTHER_NUMBERS.get(mode, {}) | reduced
    values["target_index"] = values["target_index"].at[1].set(-1)
    values["weight"] = values["weight"].astype(jnp.float64) / 1024
    assert_formula_reduces_as_the_calls(class_loss, values)


def test_nothing_but_logits_has_a_gradient() -> None:
    values = for_jax(problem("varifocal"))
    floating = {name: values[name] for name in ("weight", "quality")}

    def loss(floating: Any) -> jax.Array:
        return class_loss(**{**values, **floating}).sum()

    for implementation in ("boxloss", "jnp"):
        with use_implementation(implementation):
            assert not any(each.any() for each in jax.grad(loss)(floating).values())


def test_what_is_left_out_is_in_no_derivative() -> None:
    values = for_jax(problem("mal"))
    index = values["target_index"].at[0, 0, 0].set(-2).at[0, 0, 1].set(2)
    values["logits"] = values["logits"].at[0, 0, 0].set(jnp.nan)
    quality = jnp.ones(index.shape).at[index < 0].set(jnp.nan)  # of no box
    del values["quality"]
    values |= {"target_index": index, "query_quality": quality}
    for found in derivatives(class_loss, values):
        assert jnp.isfinite(found).all()
        assert not found[0, 0, 0].any()
        assert found[0, 0, 1].all()


@pytest.mark.parametrize(("shape", "reduced"), [*product(SHAPES, REDUCED), (SHAPES[2], BY_LAYER)])
def test_vmap_for_the_same_labels_is_one_call(
    shape: tuple[int, ...], reduced: dict[str, Any]
) -> None:
    values = for_jax(problem("bce", shape))
    shared = {name: values.pop(name) for name in ("labels", "quality", "weight", "mode")}

    def step(logits: jax.Array, index: jax.Array) -> Any:
        loss, pull = jax.vjp(lambda x: class_loss(x, index, **shared, **reduced), logits)
        return loss, pull(loss)

    logits, index = (jnp.stack([each, -each, each]) for each in values.values())
    assert_one_after_the_other(step, (0, 0), logits, index)
    assert_one_after_the_other(step, (0, None), logits, index[0])
    text = jax.jit(jax.vmap(step)).lower(logits, index).as_text()
    assert "while" not in text
    assert text.count("custom_call @boxloss") == 2


def test_vmap_for_other_labels_is_one_call_after_the_other() -> None:
    values = for_jax(problem("bce"))
    labels = jnp.stack([values["labels"] - i for i in range(3)])

    def step(labels: jax.Array) -> jax.Array:
        ours = of_logits(class_loss, {**values, "labels": labels})
        return jax.grad(lambda logits: ours(logits).sum())(values["logits"])

    assert_one_after_the_other(step, (0,), labels)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("shape", "boxes"), [((0, 3, 5, 7), 6), ((2, 0, 5, 7), 6), ((3, 0, 7), 6), ((3, 5, 7), 0)]
)
def test_empty(mode: str, shape: tuple[int, ...], boxes: int) -> None:
    values = for_jax(problem(mode, shape))
    for name in ("labels", "quality"):
        if name in values:
            values[name] = values[name][:boxes]

    def loss(logits: jax.Array) -> jax.Array:
        return class_loss(**{**values, "logits": logits}).sum()

    found, gradient = jax.jit(jax.value_and_grad(loss))(values["logits"])
    if 0 in shape:
        assert found == 0
        assert gradient.shape == shape
    with use_implementation("jnp"):
        by_formula = jax.jit(lambda logits: loss(logits))(values["logits"])
    np.testing.assert_allclose(by_formula, found, rtol=1e-13)


def test_no_classes() -> None:
    index = jnp.zeros((3, 5), jnp.int32)
    loss = class_loss(jnp.ones((3, 5, 0)), index, index[0], mode="focal", reduction="none")
    assert (loss == jnp.zeros((3, 5))).all()


def test_forward_mode_is_refused_without_the_choice() -> None:
    values = for_jax(problem("focal"))
    with pytest.raises(TypeError, match="custom_vjp"):
        jax.jacfwd(of_logits(class_loss, values))(values["logits"])
