# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Nothing to compute: every result is written, with the number that it must be."""

from collections.abc import Callable
from itertools import cycle
from typing import Any

import boxloss.jax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from both import DEVICE, for_jax, jit_anew
from boxloss.jax import use_implementation
from combinations import long_but
from empty import empty_matches, empty_problems
from problems import REDUCTIONS

META = torch.device("meta")


def jitted(function: Callable[..., Any], arrays: Any) -> Any:
    return jax.jit(function)(arrays)


def batched(function: Callable[..., Any], arrays: Any) -> Any:
    """Of two calls. Offsets are shared, so that what can be one call is."""
    axes = {name: None if name == "offsets" else 0 for name in arrays}
    many = {n: each if axes[n] is None else np.stack((each, each)) for n, each in arrays.items()}
    return jax.vmap(function, in_axes=(axes,))(jax.device_put(many))


def by_formula(function: Callable[..., Any], arrays: Any) -> Any:
    with use_implementation("jnp"):
        return jit_anew(function)(arrays)


@pytest.mark.parametrize(
    ("name", "run", "reduction"),
    [
        (name, run, REDUCTIONS[(i + j) % 3])
        for i, name in enumerate(empty_problems(META))
        for j, run in enumerate((jitted, batched, by_formula))
    ],
)
@pytest.mark.parametrize("is_rotated", long_but([False, True], [False]))
def test_losses_and_gradients_are_zeros(
    name: str, run: Callable[..., Any], reduction: str, is_rotated: bool
) -> None:
    values = for_jax(empty_problems(DEVICE)[name])
    static = {"zero_padded": values.pop("zero_padded", False), "reduction": reduction}
    unreduced = boxloss.jax.box_loss(**values, zero_padded=static["zero_padded"], reduction="none")
    values["weight"] = jnp.full(unreduced.shape, 2.0)
    if is_rotated:
        five = jnp.array([0, 1, 2, 3, 0])
        values |= {name: values[name][..., five] for name in ("pred", "target")}

    def losses(values: Any) -> Any:
        if is_rotated:
            loss = boxloss.jax.rotated_box_loss(**values, **static, loss="giou")
            return loss.sum(), loss
        given = boxloss.jax.box_losses(**values, **static)
        return (given.loss + given.l1).sum(), given

    gradients = jax.grad(losses, has_aux=True, allow_int=True)
    for each in jax.tree.leaves(run(gradients, values)):
        assert each.dtype == jax.dtypes.float0 or not np.asarray(each).any()


@pytest.mark.parametrize("name", empty_matches(META))
def test_results_of_matches_are_written(name: str) -> None:
    """And gradients of losses."""
    function, values, numbers = empty_matches(DEVICE)[name]
    given = for_jax(values)
    arrays = {name: each for name, each in given.items() if isinstance(each, jax.Array)}
    static = {name: each for name, each in given.items() if name not in arrays}
    is_loss = function.endswith("_loss")

    def results(arrays: Any) -> Any:
        return getattr(boxloss.jax, function)(**arrays, **static)

    def with_gradient(arrays: Any) -> Any:
        loss, pull = jax.vjp(lambda logits: results({**arrays, "logits": logits}), arrays["logits"])
        return loss, pull(jnp.ones_like(loss))

    for run in (jitted, batched, *([by_formula] if is_loss else [])):
        found = jax.tree.leaves(run(with_gradient if is_loss else results, arrays))
        for result, number in zip(found, cycle(numbers), strict=False):
            assert (np.asarray(result) == number).all()
