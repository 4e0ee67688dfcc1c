# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The same problem through JAX and through torch, on the device that JAX takes."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from boxloss.jax import class_loss, distribution_loss, rotated_box_loss
from comparison import UNIT_ROUNDOFF
from losses_of_logits import moved
from problems import Problem

DEVICE = torch.device("cuda" if jax.default_backend() == "gpu" else "cpu")
Arrays = dict[str, np.ndarray[Any, Any]]


def as_numpy(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    host = tensor.detach().cpu()
    if host.dtype == torch.bfloat16:
        return host.view(torch.int16).numpy().view(jnp.bfloat16)
    return host.numpy()


def for_jax(values: Problem) -> Problem:
    return {
        name: jax.device_put(as_numpy(value)) if isinstance(value, torch.Tensor) else value
        for name, value in values.items()
    }


def assert_same_bits(ours: Any, expected: torch.Tensor, what: str) -> None:
    array, wanted = np.asarray(ours), as_numpy(expected)
    assert array.dtype == wanted.dtype, what
    assert array.shape == wanted.shape, what
    assert np.ascontiguousarray(array).tobytes() == np.ascontiguousarray(wanted).tobytes(), (
        f"{what}: {array} is not {wanted}"
    )


def floating(values: Problem) -> list[str]:
    """The names of what has a gradient."""
    names = [name for name in ("pred", "target", "weight") if name in values]
    return [name for name in names if values[name].dtype.is_floating_point]


def torch_run(function: Callable[..., Any], values: Problem) -> tuple[Arrays, Arrays, list[Any]]:
    """Outputs by name, gradients by name, and the incoming gradients."""
    names, values = floating(values), moved(values, DEVICE)
    inputs = {name: values[name].clone().requires_grad_() for name in names}
    losses = function(**{**values, **inputs})
    outputs = losses._asdict() if isinstance(losses, tuple) else {"loss": losses}
    differentiable = {name: each for name, each in outputs.items() if name != "iou"}
    random = torch.Generator().manual_seed(5)
    incoming = [
        torch.rand(each.shape, generator=random, dtype=torch.float64).to(each)
        for each in differentiable.values()
    ]
    gradients = torch.autograd.grad(list(differentiable.values()), list(inputs.values()), incoming)
    return outputs, dict(zip(names, gradients, strict=True)), incoming


def jax_run(
    function: Callable[..., Any], values: Problem, names: list[str], incoming: list[Any]
) -> tuple[Arrays, Arrays]:
    given = for_jax(values)

    def of_floating(inputs: Problem) -> dict[str, Any]:
        losses = function(**{**given, **inputs})
        return losses._asdict() if isinstance(losses, tuple) else {"loss": losses}

    outputs, pull = jax.vjp(of_floating, {name: given[name] for name in names})
    upstream = dict(zip(("loss", "l1"), (jnp.asarray(as_numpy(g)) for g in incoming), strict=False))
    if "iou" in outputs:
        upstream["iou"] = jnp.zeros_like(outputs["iou"])
    (gradients,) = pull(upstream)
    return outputs, gradients


def same(ours: Any, expected: Any) -> None:
    """All arrays of both, bit by bit."""
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(expected), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def jit_anew(function: Callable[..., Any]) -> Callable[..., Any]:
    """Traced again, by what is chosen now: JAX keeps what it traced of a function."""
    return jax.jit(lambda *arguments: function(*arguments))


def assert_near(
    ours: Any, expected: torch.Tensor, what: str = "", compute: torch.dtype = torch.float64
) -> None:
    """Two ways, some 1000 roundings of the largest value apart, and of which each is stored."""
    array, wanted = np.asarray(ours), as_numpy(expected)
    assert array.dtype == wanted.dtype
    assert array.shape == wanted.shape
    exact = wanted.astype(np.float64)
    far = 1000 * UNIT_ROUNDOFF[compute] * np.abs(exact).max(initial=1)
    far = far + 2 * UNIT_ROUNDOFF[expected.dtype] * np.abs(exact)
    assert (np.abs(array.astype(np.float64) - exact) <= far).all(), what


def assert_one_after_the_other(function: Any, axes: tuple[Any, ...], *arrays: Any) -> None:
    """What vmap gives, compiled or not, is what three calls give, of parts by numpy."""

    def part(i: int) -> Any:
        return lambda axis, each: each if axis is None else np.asarray(each).take(i, axis)

    for transform in (lambda f: f, jax.jit):
        found = jax.tree.map(np.asarray, transform(jax.vmap(function, in_axes=axes))(*arrays))
        for i in range(3):
            alone = jax.tree.map(part(i), axes, arrays, is_leaf=lambda each: each is None)
            same(jax.tree.map(lambda each, i=i: each[i], found), function(*jax.device_put(alone)))


def switched_x64(on: bool) -> Any:
    enable = getattr(jax, "enable_x64", None)
    if enable is None:
        from jax.experimental import enable_x64 as enable
    return enable(on)


def assert_same(ours: Callable[..., Any], theirs: Callable[..., Any], values: Problem) -> None:
    """Outputs and gradients, bit by bit; but rows that index pairs share on a GPU."""
    outputs, gradients, incoming = torch_run(theirs, values)
    own_outputs, own_gradients = jax_run(ours, values, list(gradients), incoming)
    for name, expected in outputs.items():
        assert_same_bits(own_outputs[name], expected, name)
    for name, expected in gradients.items():
        if DEVICE.type == "cuda" and f"{name}_index" in values:
            np.testing.assert_allclose(
                own_gradients[name], as_numpy(expected), rtol=2e-6, atol=1e-9
            )
        else:
            assert_same_bits(own_gradients[name], expected, f"the gradient of {name}")


# --- Losses that are called in many ways: of five slots, of which the first count ---


def of_classes(logits: jax.Array, target: jax.Array, lengths: jax.Array) -> jax.Array:
    """Of which target has no part."""
    index = jnp.where(jnp.arange(5) < lengths[:, None], 1, -1)
    return class_loss(logits, index, jnp.arange(3), mode="focal", reduction="sum")


def of_distributions(logits: jax.Array, target: jax.Array, lengths: jax.Array) -> jax.Array:
    """Of sides with two bins, towards boxes of the first image."""
    index = jnp.where(jnp.arange(5) < lengths[:, None], 1, -1)
    boxes = {"reference": jnp.full((*index.shape, 4), 0.5), "target": target[0]}
    own = jnp.concatenate((logits, logits**2), -1)
    return distribution_loss(own, index, mode="fgl", edges=jnp.arange(2.0), **boxes)


def of_rotated(pred: jax.Array, target: jax.Array, lengths: jax.Array) -> jax.Array:
    """Whose angles are their first numbers."""
    turned = (jnp.concatenate((each, each[..., :1]), -1) for each in (pred, target))
    return rotated_box_loss(*turned, "giou", lengths=lengths, reduction="sum")
