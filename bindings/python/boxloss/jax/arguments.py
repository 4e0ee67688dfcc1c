# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Conversions of arguments."""

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


def compute_dtype(pred: Array, target: Array) -> Any:
    """float64 when either is, else float32."""
    return jnp.float64 if jnp.float64 in (pred.dtype, target.dtype) else jnp.float32
