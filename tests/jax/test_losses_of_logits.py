# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Losses of logits: torch's bits, and by the formula torch's derivatives."""

from collections.abc import Callable
from typing import Any

import boxloss.jax
import boxloss.torch
import jax
import jax.numpy as jnp
import pytest
import torch
from both import (
    DEVICE,
    as_numpy,
    assert_near,
    assert_one_after_the_other,
    assert_same_bits,
    for_jax,
    jit_anew,
)
from boxloss.jax import use_implementation
from combinations import every_other_long, pairwise
from losses_of_logits import FEW, MODES, TABLE, function_of, moved, spoiled, with_options
from problems import Problem


def problem(**options: Any) -> Problem:
    return moved(with_options(**options), DEVICE)


def of_logits(framework: Any, values: Problem) -> Callable[[Any], Any]:
    """The loss as a function of them alone."""
    return lambda logits: function_of(framework, values)(**{**values, "logits": logits})


@pytest.mark.parametrize("case", every_other_long(pairwise(**TABLE)) + FEW[::3])
def test_the_bits_are_torchs(case: dict[str, Any]) -> None:
    """With and without jit; and the formula's results are near."""
    values = spoiled(problem(**case))
    leaf = values["logits"].clone().requires_grad_()
    loss = of_logits(boxloss.torch, values)(leaf)
    incoming = torch.arange(1, 1 + loss.numel()).reshape(loss.shape).to(loss)
    (gradient,) = torch.autograd.grad(loss, leaf, incoming)
    given = for_jax(values)

    def run(logits: jax.Array) -> Any:
        found, pull = jax.vjp(of_logits(boxloss.jax, given), logits)
        return found, pull(jnp.asarray(as_numpy(incoming)))[0]

    for call in (run, jax.jit(run)):
        for found, expected in zip(call(given["logits"]), (loss, gradient), strict=True):
            assert_same_bits(found, expected, "loss and gradient")
    with use_implementation("jnp"):
        for found, expected in zip(jit_anew(run)(given["logits"]), (loss, gradient), strict=True):
            assert_near(found, expected, compute=loss.dtype)


@pytest.mark.parametrize("mode", MODES)
def test_the_second_derivatives_are_torchs(mode: str) -> None:
    """By the calls, and by the formula without them, forward, too."""
    values = spoiled(problem(mode=mode))
    leaf = values["logits"].clone().requires_grad_()
    total = of_logits(boxloss.torch, values)(leaf).square().sum()
    (gradient,) = torch.autograd.grad(total, leaf, create_graph=True)
    (second,) = torch.autograd.grad(gradient.square().sum(), leaf)
    assert gradient.any()
    assert second.any()
    given = for_jax(values)
    loss, logits = of_logits(boxloss.jax, given), given["logits"]

    def square(logits: jax.Array) -> jax.Array:
        return (loss(logits) ** 2).sum()

    squares = jax.grad(lambda logits: (jax.grad(square)(logits) ** 2).sum())
    assert_near(jit_anew(squares)(logits), second)
    with use_implementation("jnp"):
        assert_near(jit_anew(squares)(logits), second)
        assert_near(jax.jvp(square, (logits,), (jnp.ones_like(logits),))[1], gradient.sum())


@pytest.mark.parametrize("implementation", ["boxloss", "jnp"])
@pytest.mark.parametrize("mode", ["varifocal", "fgl", "ddf"])
def test_nothing_but_logits_has_a_gradient(mode: str, implementation: str) -> None:
    values = for_jax(problem(mode=mode))
    others = {n: each for n, each in values.items() if getattr(each, "dtype", None) == jnp.float64}
    del others["logits"]

    def loss(others: Any) -> jax.Array:
        return function_of(boxloss.jax, values)(**{**values, **others}).sum()

    with use_implementation(implementation):
        assert not any(each.any() for each in jax.grad(loss)(others).values())


@pytest.mark.parametrize(
    ("rows", "reduced"),
    [
        *(((5,), each) for each in ("none", "number")),
        *(((3, 5), each) for each in ("mean", "float32")),
        *(((2, 3, 5), each) for each in ("sum", "int64", "by layer")),
    ],
)
def test_vmap_for_the_same_labels_is_one_call(rows: tuple[int, ...], reduced: str) -> None:
    values = for_jax(problem(mode="bce", rows=rows, reduced=reduced))

    def step(logits: jax.Array, index: jax.Array) -> Any:
        ours = of_logits(boxloss.jax, {**values, "target_index": index})
        loss, pull = jax.vjp(ours, logits)
        return loss, pull(loss)

    both = (values[name] for name in ("logits", "target_index"))
    logits, index = (jnp.stack([each, -each, each]) for each in both)
    assert_one_after_the_other(step, (0, 0), logits, index)
    assert_one_after_the_other(step, (0, None), logits, index[0])
    text = jax.jit(jax.vmap(step)).lower(logits, index).as_text()
    assert "while" not in text
    assert text.count("custom_call @boxloss") == 2


@pytest.mark.parametrize(
    ("mode", "batched"), [("bce", "labels"), ("fgl", "target_index"), ("ddf", "target_index")]
)
def test_other_vmaps_are_one_call_after_the_other(mode: str, batched: str) -> None:
    values = for_jax(problem(mode=mode))

    def step(logits: jax.Array, other: jax.Array) -> Any:
        loss, pull = jax.vjp(of_logits(boxloss.jax, {**values, batched: other}), logits)
        return loss, pull(loss)

    logits = jnp.stack([each * values["logits"] for each in (1, -1, 0.5)])
    other = jnp.stack([values[batched] - i for i in range(3)])
    assert_one_after_the_other(step, (0, 0), logits, other)
    assert_one_after_the_other(step, (0, None), logits, other[0])
    assert_one_after_the_other(step, (None, 0), logits[0], other)
