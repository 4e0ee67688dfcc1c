# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Class losses of queries and anchors, by what a matcher has found."""

from jax import Array
from jax.typing import ArrayLike

from .._options import ClassLossMode, Reduction, options_of
from .arguments import as_arrays, as_options
from .batching import as_layers
from .formula import class_loss_by_formula
from .loss_of_logits import LossOfLogits, loss_of_logits


def class_loss(
    logits: ArrayLike,
    target_index: ArrayLike,
    labels: ArrayLike,
    *,
    mode: ClassLossMode,
    quality: ArrayLike | None = None,
    query_quality: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    alpha: float | None = None,
    gamma: float | None = None,
    no_object_weight: float = 1.0,
    reduction: Reduction = "mean",
    normalizer: ArrayLike | None = None,
) -> Array:
    """The class loss of all queries, each towards the class of the box that it was matched with.

    In one kernel forward and one backward, for all layers and images at once. Each logit is read
    once in each, of "softmax" more often; nothing of the logits' size is allocated but the
    gradient. Computed in float32 in logits' space, so that float16 logits of +-60000 stay finite,
    or in float64 where logits are. Words and numbers are static.

    With x a logit, p = sigmoid(x), BCE(x, t) the binary cross-entropy of p towards t, and q the
    quality of a query's box, an element of the query's own class and one of any other is

    - "focal": ``alpha * (1 - p)**gamma * BCE(x, 1)`` and ``(1 - alpha) * p**gamma * BCE(x, 0)``;
      an alpha below 0 weighs neither. Lin et al., ICCV 2017; optax's sigmoid_focal_loss,
      RetinaNet, FCOS, Deformable DETR. alpha 0.25, gamma 2;
    - "varifocal": ``q * BCE(x, q)`` and ``alpha * p**gamma * BCE(x, 0)``, of which q and p**gamma
      have no gradient: RT-DETR's, D-FINE's. alpha 0.75, gamma 2;
    - "mal": ``BCE(x, q**gamma)`` and ``alpha * p**gamma * BCE(x, 0)``, likewise: DEIM's. alpha 1,
      gamma 1.5;
    - "ia_bce": ``BCE(x, t)`` with ``t = max(p**alpha * q**(1 - alpha), 0.01)``, which has no
      gradient, and ``p**gamma * BCE(x, 0)``, which has: LW-DETR's, RF-DETR's. alpha 0.25, gamma 2;
    - "bce": BCE(x, q), BCE(x, 1) without a quality, and BCE(x, 0): Ultralytics' YOLO;
    - "softmax": -log(softmax(logits)) of the own class, or, of a query without a box, of the last
      class, times no_object_weight: DETR's.

    Args:
        logits: (queries, classes), (images, queries, classes) or (layers, images, queries,
            classes), any floating dtype.
        target_index: logits' shape without classes, int32 or int64: each query's row of labels, -1
            for none, -2 for a query that is left out, with loss and gradient 0; as
            `target_of_query` of `hungarian_match` and `target_index` of the dense assigners. Any
            other number that is no row, and a label that is no class, is no box.
        labels: (T), int32 or int64.
        mode: one of these words.
        quality: (T), or query_quality: target_index' shape; any floating dtype, from 0 to 1. One of
            them for "varifocal", "mal" and "ia_bce". They get no gradient.
        weight: (classes), any floating dtype: multiplies a class' losses. It gets no gradient.
        alpha, gamma: if not given, those above.
        reduction: "mean" divides the sum by the number of queries with a box, at least 1; for
            "softmax" by the sum of all queries' weights. "sum"; or "none": a loss for each query,
            the sum of its classes'.
        normalizer: "mean" divides by this: a number, or an array () or (layers), float64, float32,
            int64 or int32. It gets no gradient.

    Returns:
        float32, or float64 where logits are: (layers) of logits with layers, else (); for "none"
        target_index' shape. Differentiable in reverse mode, any number of times.

    Raises:
        ValueError: a bad value or shape. TypeError: a bad dtype, or no array; forward
            mode, for which `use_implementation` has the formula.
    """
    arrays = as_arrays(
        "class_loss",
        logits=logits,
        target_index=target_index,
        labels=labels,
        quality=quality,
        query_quality=query_quality,
        weight=weight,
    )
    given = {
        "mode": mode,
        "alpha": alpha,
        "gamma": gamma,
        "no_object_weight": no_object_weight,
        "reduction": reduction,
    }
    options = as_options("class_loss", given, _DEFAULTS)
    return loss_of_logits(_CLASS_LOSS, arrays, normalizer, options)


_DEFAULTS = {name: option.default for name, option in options_of(class_loss).items()}
_DEFAULTS["mode"] = "focal"  # a word, though none is the default
_CLASS_LOSS = LossOfLogits(
    "class_loss", class_loss_by_formula, as_layers, backward_options=(("transposed", False),)
)
