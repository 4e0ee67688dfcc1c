# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What losses of pairs share."""

from functools import partial
from typing import Any

from jax.sharding import PartitionSpec

from ._library import Arrays, is_jits
from .batching import as_sets
from .custom_vjp import DifferentiableLoss
from .formula import losses_by_formula
from .partitioning import spec_of


def pair_loss(
    name: str, formula: str, words: tuple[str, ...], has_extras: bool = False
) -> DifferentiableLoss:
    """Its formula takes these words and numbers."""
    return DifferentiableLoss(
        name,
        partial(losses_by_formula, formula, words, has_extras),
        gradients={name: name for name in ("pred", "target", "weight")},
        incoming=("grad_loss", "grad_l1"),
        typed_by=("pred", "target"),
        merge=as_sets,
        rows=_spec_of_rows,
        is_by_image=_is_by_image,
        has_extras=has_extras,
    )


def _spec_of_rows(arrays: Arrays) -> PartitionSpec:
    index = arrays.get("pred_index", arrays.get("target_index"))
    boxes = arrays["target" if "offsets" in arrays else "pred"]
    return spec_of(boxes, boxes.ndim - 1) if index is None else spec_of(index, index.ndim)


def _is_by_image(options: dict[str, Any], arrays: Arrays) -> bool:
    lists = {"offsets", "pred_index", "target_index"} & arrays.keys()
    is_reduced = options["reduction"] != "none"
    return not lists and not is_reduced and arrays["pred"].ndim > 1 and is_jits(arrays)
