# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What is asked of each loss of logits."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import torch
from both import as_numpy, assert_near, assert_same_bits, for_jax
from boxloss.jax import use_implementation
from problems import Problem

Loss = Callable[..., Any]


def of_logits(loss: Loss, values: Problem) -> Loss:
    """The loss as a function of them alone."""
    return lambda logits: loss(**{**values, "logits": logits})


def assert_bits_of_torch(ours: Loss, theirs: Loss, values: Problem) -> None:
    logits = values["logits"].clone().requires_grad_()
    expected = of_logits(theirs, values)(logits)
    incoming = torch.arange(1, 1 + expected.numel()).reshape(expected.shape).to(expected)
    (gradient,) = torch.autograd.grad(expected, logits, incoming)
    assert gradient.any()
    given = for_jax(values)
    for transform in (lambda function: function, jax.jit):
        run = transform(lambda logits: jax.vjp(of_logits(ours, given), logits))
        found, pull = run(given["logits"])
        assert_same_bits(found, expected, "loss")
        assert_same_bits(pull(jnp.asarray(as_numpy(incoming)))[0], gradient, "gradient")


def assert_derivatives(loss: Loss, formula: Loss, values: Problem) -> None:
    """Of the sum, to the second order: by the calls, and by ours without them forward, too."""
    ours, logits = of_logits(loss, values | {"reduction": "sum"}), values["logits"]

    def squares(loss: Loss) -> Loss:
        return jax.grad(lambda x: (jax.grad(lambda x: loss(x) ** 2)(x) ** 2).sum())

    expected, gradient = jax.jit(jax.value_and_grad(formula))(logits)
    second = jax.jit(squares(formula))(logits)
    assert_near(ours(logits), expected)
    assert_near(jax.grad(ours)(logits), gradient)
    assert_near(jax.jit(squares(ours))(logits), second)
    with use_implementation("jnp"):
        assert_near(jax.jvp(ours, (logits,), (logits,))[1], (gradient * logits).sum())
        assert_near(jax.jit(squares(ours))(logits), second)


def assert_formula_reduces_as_the_calls(loss: Loss, values: Problem) -> None:
    """With layers; the first has a loss."""

    def both() -> Any:
        found, pull = jax.vjp(of_logits(loss, values), values["logits"])
        return found, pull(jnp.ones_like(found))[0]

    expected = both()
    with use_implementation("jnp"):
        found = both()
    for ours, wanted in zip(found, expected, strict=True):
        assert_near(ours, wanted)
        assert wanted[0].any()


def derivatives(loss: Loss, values: Problem) -> Iterator[jax.Array]:
    """Of the sum, of the first order and of the second."""
    first = jax.grad(lambda logits: of_logits(loss, values)(logits).sum())
    for each in (first, jax.grad(lambda logits: first(logits).var())):
        yield jax.jit(each)(values["logits"])
