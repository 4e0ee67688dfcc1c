# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What losses share of which logits alone have a gradient."""

from collections.abc import Callable
from typing import Any

from jax import Array

from ._library import Arrays
from .batching import never
from .custom_vjp import DifferentiableLoss
from .partitioning import spec_of


def loss_of_logits(
    name: str,
    formula: Callable[[dict[str, Any], Arrays], Array],
    merge: Callable[..., Arrays | None] = never,
) -> DifferentiableLoss:
    return DifferentiableLoss(
        name,
        lambda options, arrays: (formula(options, arrays),),
        gradients={"logits": "d_logits"},
        incoming=("grad",),
        typed_by=("logits",),
        merge=merge,
        rows=lambda arrays: spec_of(arrays["logits"], arrays["logits"].ndim - 1),
        is_by_image=lambda options, arrays: False,
    )
