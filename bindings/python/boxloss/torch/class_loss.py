# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Class losses of queries and anchors, by what a matcher has found."""

from numbers import Real

import torch
from torch import Tensor

from .._options import ClassLossMode, Reduction
from .arguments import as_normalizer, call, check_tensors

_CLASS_LOSS = torch.ops.boxloss.class_loss.default


def class_loss(
    logits: Tensor,
    target_index: Tensor,
    labels: Tensor,
    *,
    mode: ClassLossMode,
    quality: Tensor | None = None,
    query_quality: Tensor | None = None,
    weight: Tensor | None = None,
    alpha: float | None = None,
    gamma: float | None = None,
    no_object_weight: float = 1.0,
    reduction: Reduction = "mean",
    normalizer: Tensor | Real | None = None,
) -> Tensor:
    """The class loss of all queries, each towards the class of the box that it was matched with.

    In one kernel forward and one backward, for all layers and images at once. Each logit is read
    once in each, of "softmax" more often; nothing of the logits' size is allocated but the
    gradient. Computed in float32 in logits' space, so that float16 logits of +-60000 stay finite,
    or in float64 where logits are.

    With x a logit, p = sigmoid(x), BCE(x, t) the binary cross-entropy of p towards t, and q the
    quality of a query's box, an element of the query's own class and one of any other is

    - "focal": ``alpha * (1 - p)**gamma * BCE(x, 1)`` and ``(1 - alpha) * p**gamma * BCE(x, 0)``;
      an alpha below 0 weighs neither. Lin et al., ICCV 2017; torchvision's sigmoid_focal_loss,
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
            classes), any floating dtype and strides.
        target_index: logits' shape without classes, int32 or int64: each query's row of labels, -1
            for none, -2 for a query that is left out, with loss and gradient 0: `target_of_query`
            of `hungarian_match`, or `target_index` of the dense assigners. Any other number that is
            no row, and a label that is no class, is no box.
        labels: (T), int32 or int64.
        mode: one of these words.
        quality: (T), or query_quality: target_index' shape; any floating dtype, from 0 to 1. One of
            them for "varifocal", "mal" and "ia_bce". They get no gradient.
        weight: (classes), any floating dtype: multiplies a class' losses. It gets no gradient.
        alpha, gamma: if not given, those above.
        reduction: "mean" divides the sum by the number of queries with a box, at least 1; for
            "softmax" by the sum of all queries' weights. "sum"; or "none": a loss for each query,
            the sum of its classes'.
        normalizer: "mean" divides by this: a number, or a tensor () or (layers), float64, float32,
            int64 or int32, read on the device. It gets no gradient.

    Returns:
        float32, or float64 where logits are: (layers) of logits with layers, else (); for "none"
        target_index' shape. Inside the transforms of torch.func, in forward mode and for second
        derivatives the same formula runs in torch's own operators.

    Raises:
        ValueError, TypeError, RuntimeError: what `box_loss` raises.
    """
    check_tensors("class_loss", logits=logits, target_index=target_index, labels=labels)
    weights = (quality, query_quality, weight, alpha, gamma, no_object_weight)
    normalizer = as_normalizer("class_loss", normalizer, logits, logits)
    arguments = (logits, target_index, labels, mode, *weights, reduction, normalizer)
    return call("class_loss", _CLASS_LOSS, arguments)  # type: ignore[no-any-return]
