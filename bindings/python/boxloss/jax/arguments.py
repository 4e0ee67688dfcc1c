# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Conversions of arguments."""

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._options import as_float, check_magnitude


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
    int: ((Integral,), "an integer", float),
    float: ((Real,), "a number", float),
}
# Integers of so many bits are too large, since all numbers travel as doubles.
_BITS = {int: 53, float: 1024}


def as_options(function: str, options: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """Words, flags and numbers. What has no default is a number; None is one that is not given."""
    converted = {}
    for name, value in options.items():
        kind = type(defaults[name]) if type(defaults[name]) in _TAKEN else float
        kinds, words, convert = _TAKEN[kind]
        is_missing = value is None and defaults[name] is None
        if not is_missing and not isinstance(value, kinds):
            raise TypeError(f"{function}: {name} is {type(value).__name__}; it must be {words}")
        if kind in _BITS:
            check_magnitude(function, name, value, _BITS[kind])
        converted[name] = None if is_missing else convert(value)
    return converted


def as_normalizer(function: str, normalizer: Any, dtype: Any) -> ArrayLike:
    """A number as an array of the loss' dtype; what JAX would narrow must fit into that, too."""
    largest = float(jnp.finfo(dtype).max)

    def within(number: Any) -> float:
        return as_float(function, "normalizer", number, largest, jnp.dtype(dtype).name)

    if isinstance(normalizer, Real) and not isinstance(normalizer, bool):
        return np.asarray(within(normalizer), dtype)
    if not isinstance(normalizer, np.ndarray):
        if isinstance(normalizer, (jax.Array, np.generic)):
            return normalizer
        kind = type(normalizer).__name__
        raise TypeError(
            f"{function}: normalizer is {kind}; it must be an array of JAX or NumPy, or a number"
        )
    if jax.dtypes.canonicalize_dtype(normalizer.dtype) == normalizer.dtype:
        return normalizer
    return np.array([within(each) for each in normalizer.flat], dtype).reshape(normalizer.shape)


def compute_dtype(pred: Array, target: Array) -> Any:
    """float64 when either is, else float32."""
    return jnp.float64 if jnp.float64 in (pred.dtype, target.dtype) else jnp.float32
