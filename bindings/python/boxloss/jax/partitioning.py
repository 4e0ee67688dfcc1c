# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Sharded arrays under jit: what is of an image is computed where the image is."""

from typing import Any

import jax
from jax import Array
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import NamedSharding, PartitionSpec

from .batching import Arrays, One

Shapes = dict[str, jax.ShapeDtypeStruct]


def by_image(one: One, arrays: Arrays, results: Shapes) -> Arrays:
    """`one(arrays)`, where all arrays and results but single numbers have the images in front."""

    def call(*given: Array) -> tuple[Array, ...]:
        return tuple(one(dict(zip(arrays, given, strict=True))).values())

    def partition(mesh: Any, given: Any, wanted: Any) -> Any:
        first = (each.sharding.spec[:1] for each in given if each.shape)
        images = PartitionSpec(*next(filter(None, first), ()))

        def sharded(shapes: Any) -> tuple[NamedSharding, ...]:
            return tuple(
                NamedSharding(mesh, images if each.shape else PartitionSpec()) for each in shapes
            )

        return mesh, call, sharded(wanted), sharded(given)

    partitioned = custom_partitioning(call)
    partitioned.def_partition(
        partition=partition,
        sharding_rule=f"{_rule('a', arrays)} -> {_rule('r', results)}",
    )
    return dict(zip(results, partitioned(*arrays.values()), strict=True))


def _rule(kind: str, arrays: Arrays | Shapes) -> str:
    """As Shardy writes it: a word for each dimension, of which only the images' is shared."""
    return ", ".join(
        " ".join(["images", *(f"{kind}{place}d{d}" for d in range(1, len(each.shape)))])
        if each.shape
        else ""
        for place, each in enumerate(arrays.values())
    )
