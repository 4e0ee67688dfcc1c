# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Sharded arrays under jit: what is of an image is computed where the image is."""

from collections.abc import Callable
from typing import Any

import jax
from jax import Array
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import NamedSharding, PartitionSpec

from ._library import Arrays, Shapes
from .batching import One

REPLICATED = PartitionSpec()


def by_image(one: One, arrays: Arrays, results: Shapes) -> Arrays:
    """`one(arrays)`, where all arrays and results but single numbers have the images in front."""

    names = tuple(arrays)  # JAX keeps `call`, and the arrays may be a trace's

    def call(*operands: Array) -> tuple[Array, ...]:
        return tuple(one(dict(zip(names, operands, strict=True))).values())

    def partition(mesh: Any, operands: Any, wanted: Any) -> Any:
        first = (each.sharding.spec[:1] for each in operands if each.shape)
        images = PartitionSpec(*next(filter(None, first), ()))

        def sharded(shapes: Any) -> tuple[NamedSharding, ...]:
            return tuple(
                NamedSharding(mesh, images if each.shape else REPLICATED) for each in shapes
            )

        return mesh, call, sharded(wanted), sharded(operands)

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


def in_auto_axes(function: Callable[[Arrays], Any], arrays: Arrays, specs: Any = REPLICATED) -> Any:
    """`function(arrays)`. With sharding in types (a mesh with explicit axes) a custom call says
    nothing of its results' types, and a gradient would not have its input's: in the function the
    axes are automatic, outside the results have these specs."""
    shardings = (getattr(jax.typeof(each), "sharding", None) for each in arrays.values())
    meshes = [each.mesh for each in shardings if each is not None and each.mesh.explicit_axes]
    if not meshes or not hasattr(jax.sharding, "auto_axes"):  # which came later than the types
        return function(arrays)

    def sharded(spec: PartitionSpec) -> NamedSharding:
        return NamedSharding(meshes[0], spec)

    automatic = jax.sharding.auto_axes(
        jax.jit(function),  # which takes the axes' kind along, for derivatives
        axes=meshes[0].explicit_axes,
        out_sharding=jax.tree.map(sharded, specs, is_leaf=lambda x: isinstance(x, PartitionSpec)),
    )
    return automatic(arrays)


def spec_of(array: Array, dimensions: int) -> PartitionSpec:
    """How its first dimensions are sharded, as far as its type tells."""
    sharding = getattr(jax.typeof(array), "sharding", None)
    return REPLICATED if sharding is None else PartitionSpec(*sharding.spec[:dimensions])
