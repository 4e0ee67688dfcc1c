# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Conversions of arguments."""

from collections.abc import Callable
from numbers import Real
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike


def as_arrays(function: str, **given: ArrayLike | None) -> dict[str, Array]:
    """Those that are given, as JAX's."""
    for name, value in given.items():
        if value is not None and not isinstance(value, (jax.Array, np.ndarray, np.generic)):
            kind = type(value).__name__
            raise TypeError(f"{function}: {name} is {kind}; it must be an array of JAX or NumPy")
    return {name: jnp.asarray(value) for name, value in given.items() if value is not None}


# What an option may be, by the type of its default, that in words, and what it becomes.
_TAKEN: dict[type, tuple[tuple[type, ...], str, Callable[[Any], Any]]] = {
    str: ((str,), "a string", str),
    bool: ((bool, np.bool_), "True or False", bool),
    float: ((Real,), "a number", float),
}


def as_options(function: str, options: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """Words, flags and numbers; None is a number that is not given."""
    converted = {}
    for name, value in options.items():
        kinds, words, convert = _TAKEN.get(type(defaults[name]), _TAKEN[float])
        is_missing = value is None and defaults[name] is None
        if not is_missing and not isinstance(value, kinds):
            raise TypeError(f"{function}: {name} is {type(value).__name__}; it must be {words}")
        converted[name] = None if is_missing else convert(value)
    return converted


def compute_dtype(pred: Array, target: Array) -> Any:
    """float64 when either is, else float32."""
    return jnp.float64 if jnp.float64 in (pred.dtype, target.dtype) else jnp.float32
