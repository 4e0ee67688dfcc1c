# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Assignment: from a matching cost to the pairs of least total cost, as indices for the losses."""

from math import prod
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from ._library import Arrays, Shapes, exportable
from .batching import by_size
from .matches import match


@exportable
class MatchResult(NamedTuple):
    """What `hungarian_match` returns: -1 for none."""

    pred_index: Array
    target_index: Array
    target_of_query: Array


def hungarian_match(cost: ArrayLike, offsets: ArrayLike, *, groups: int = 1) -> MatchResult:
    """`boxloss.torch.hungarian_match` for JAX. See docs/jax.md and docs/matcher.md.

    It is solved on the cost's device, by a custom call like the losses: no callback. vmap of costs
    for the same offsets is one call, as of more layers.
    """
    return match("assign", MatchResult, hungarian_match, locals(), _merged, _split)


def _merged(size: int, batched: set[str], arrays: Arrays) -> Arrays | None:
    """Many costs for the same offsets, as the layers of one."""
    cost = arrays["cost"]
    layers = cost.reshape(prod(cost.shape[:-2]), *cost.shape[-2:])
    return None if "offsets" in batched else arrays | {"cost": layers}


def _split(size: int, results: Arrays, shapes: Shapes) -> Arrays:
    """Rows of pred are numbered through all layers, here those of each."""
    results = by_size(size, results, shapes)
    index = results["pred_index"]
    before = prod(shapes["target_of_query"].shape) * jnp.arange(size, dtype=index.dtype)
    own = index - before.reshape(-1, *[1] * (index.ndim - 1))
    return results | {"pred_index": jnp.where(index < 0, -1, own)}
