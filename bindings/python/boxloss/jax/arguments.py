# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Conversions of arguments."""

import inspect
from collections.abc import Callable
from functools import lru_cache
from numbers import Integral, Real
from typing import Any, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._options import as_float, check_magnitude, parameters_of

Arrays = dict[str, Array]


# What an option may be, by its type in the signature, that in words, and what it becomes.
_TAKEN: dict[type, tuple[tuple[type, ...], str, Callable[[Any], Any]]] = {
    str: ((str,), "a string", str),
    bool: ((bool, np.bool_), "True or False", bool),
    int: ((Integral,), "an integer", float),
    float: ((Real,), "a number", float),
}
_ARRAYS = (ArrayLike, ArrayLike | None)
# Integers of so many bits are too large, since all numbers travel as doubles.
_BITS = {int: 53, float: 1024}


def arguments_of(
    function: Callable[..., Any], values: dict[str, Any]
) -> tuple[Arrays, dict[str, Any]]:
    """A call's arrays, and its words, flags and numbers, from its locals().

    Which is an array is in the function's signature. None is one that is not given.
    """
    arrays: Arrays = {}
    options: dict[str, Any] = {}
    for name, (kind, is_optional) in _kinds(function).items():
        value = values[name]
        if name == "parameters":
            options[name] = parameters_of(function.__name__, values["loss"], value)
        elif value is None and is_optional:
            if kind is not Array:
                options[name] = None
        elif kind is Array:
            arrays[name] = _as_array(function.__name__, name, value)
        else:
            options[name] = _as_option(function.__name__, name, value, kind)
    return arrays, options


@lru_cache
def _kinds(function: Callable[..., Any]) -> dict[str, tuple[type, bool]]:
    """Of its parameters, and whether each may be None."""
    annotations = {
        name: each.annotation for name, each in inspect.signature(function).parameters.items()
    }
    return {name: (_kind(each), type(None) in get_args(each)) for name, each in annotations.items()}


def _kind(annotation: Any) -> type:
    """A type; str of a Literal, and of a Union its first one's."""
    if isinstance(annotation, (type, str)):
        return str if isinstance(annotation, str) else annotation
    return Array if annotation in _ARRAYS else _kind(get_args(annotation)[0])


def _as_array(function: str, name: str, value: Any) -> Array:
    if not isinstance(value, (jax.Array, np.ndarray, np.generic)):
        kind = type(value).__name__
        raise TypeError(f"{function}: {name} is {kind}; it must be an array of JAX or NumPy")
    return jnp.asarray(value)


def _as_option(function: str, name: str, value: Any, kind: type) -> Any:
    kinds, words, convert = _TAKEN[kind]
    if not isinstance(value, kinds):
        raise TypeError(f"{function}: {name} is {type(value).__name__}; it must be {words}")
    if kind in _BITS:
        check_magnitude(function, name, value, _BITS[kind])
    return convert(value)


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


def compute_dtype(*arrays: Array) -> Any:
    """float64 when one of them is, else float32."""
    return jnp.float64 if jnp.float64 in [each.dtype for each in arrays] else jnp.float32
