# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Costs and overlaps of all predictions with all ground-truth boxes of the same image."""

from collections.abc import Callable
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._options import (
    AngleUnit,
    BoxFormat,
    ClassMode,
    CostParameters,
    EpsMode,
    Loss,
    RotatedLoss,
    options_of,
)
from ._library import Arrays, Operation
from .arguments import arguments_of, compute_dtype
from .batching import repeated, solve
from .partitioning import in_auto_axes

if TYPE_CHECKING:
    from typing_extensions import Unpack


def matching_cost(
    pred: ArrayLike,
    target: ArrayLike,
    offsets: ArrayLike,
    *,
    logits: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    class_cost: ArrayLike | None = None,
    loss: Loss | RotatedLoss = "giou",
    iou_weight: float = 2.0,
    l1_weight: float = 5.0,
    class_weight: float = 1.0,
    class_mode: ClassMode = "softmax",
    focal_alpha: float = 0.25,
    focal_gamma: float = 2.0,
    pred_format: BoxFormat = "cxcywh",
    target_format: BoxFormat = "cxcywh",
    eps: float = 0.0,
    eps_mode: EpsMode = "add",
    nonfinite: float | None = None,
    angle_weight: float = 0.0,
    angle_unit: AngleUnit = "radians",
    **parameters: "Unpack[CostParameters]",
) -> Array:
    """`boxloss.torch.matching_cost` for JAX. See docs/jax.md and docs/matcher.md.

    "softmax" begins with JAX' own log-softmax, so that its last digits may differ from torch's.
    vmap of pred and logits for the same ground-truth boxes is one call, as of more layers.
    """
    return _cost(matching_cost, locals(), {})


_DEFAULTS = {name: option.default for name, option in options_of(matching_cost).items()}


def pairwise_iou(
    pred: ArrayLike,
    target: ArrayLike,
    offsets: ArrayLike,
    loss: Loss | RotatedLoss = "ciou",
    *,
    pred_format: BoxFormat = "xyxy",
    target_format: BoxFormat = "xyxy",
    eps: float = 1e-7,
    eps_mode: EpsMode = "add",
    angle_unit: AngleUnit = "radians",
    **parameters: "Unpack[CostParameters]",
) -> Array:
    """`boxloss.torch.pairwise_iou` for JAX: 1 - loss of each box with each box of its own image.

    vmap is as of `matching_cost`.
    """
    values = locals()
    return _cost(pairwise_iou, values, _DEFAULTS | {"iou_weight": -1.0, "l1_weight": 0.0})


def _cost(function: Callable[..., Any], values: dict[str, Any], fixed: dict[str, Any]) -> Array:
    arrays, options = arguments_of(function, values)
    arrays = {name: jax.lax.stop_gradient(each) for name, each in arrays.items()}
    operation = _Cost("boxloss_jax_matching_cost", function.__name__, fixed | options)
    cost: Array = in_auto_axes(partial(solve, operation, merge=_merged), arrays)["cost"]
    return cost


def _merged(size: int, batched: set[str], arrays: Arrays) -> Arrays | None:
    """Many predictions for the same ground-truth boxes have a leading dimension more."""
    own = {"pred", "logits"}
    return repeated(size, batched, arrays, own) if batched <= own else None


class _Cost(Operation):
    def run(self, arrays: Arrays) -> Arrays:
        shapes = self.shapes(arrays)  # its checks come first, since JAX raises errors of its own
        arrays = dict(arrays)
        if "logits" in arrays and self.options["class_mode"] == "softmax":
            scores = arrays["logits"].astype(compute_dtype(arrays["pred"], arrays["target"]))
            arrays["logits"] = jax.nn.log_softmax(scores)
        if "class_cost" in arrays and prod(arrays["class_cost"].shape[:-2]) != 1:
            arrays["class_cost"] = jnp.broadcast_to(arrays["class_cost"], shapes["cost"].shape)
        return super().run(arrays)
