# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The criterion of examples/oriented_detr.py in JAX: four custom calls, inside `jit`. Needs jax."""

import jax.numpy as jnp
from boxloss.jax import class_loss, hungarian_match, matching_cost, rotated_box_loss
from jax import Array

from examples.jax_criterion import CLASS_WEIGHT, IOU_WEIGHT, L1_WEIGHT, Outputs, Targets

ANGLE_WEIGHT = 1.0


def oriented(outputs: Outputs, targets: Targets) -> Array:
    """The loss of boxes (…, 5); rows of the list from offsets[-1] on are padding."""
    cost = matching_cost(
        outputs.boxes,
        targets.boxes,
        targets.offsets,
        logits=outputs.logits,
        labels=targets.labels,
        class_mode="focal",
        loss="giou",
        iou_weight=IOU_WEIGHT,
        l1_weight=L1_WEIGHT,
        angle_weight=ANGLE_WEIGHT,
        class_weight=CLASS_WEIGHT,
    )
    match = hungarian_match(cost, targets.offsets)
    giou = rotated_box_loss(
        outputs.boxes,
        targets.boxes,
        "giou",
        eps=0.0,
        pred_index=match.pred_index,
        target_index=match.target_index,
        reduction="sum",
    )
    # A row without a query has the index -1, and no part in the loss.
    apart = outputs.boxes.reshape(-1, 5)[match.pred_index] - targets.boxes[match.target_index]
    apart = jnp.where(match.pred_index[..., None] >= 0, apart, 0)
    l1 = jnp.abs(apart[..., :4]).sum()
    turn = (1 - jnp.cos(2 * apart[..., 4])).sum()
    scores = class_loss(
        outputs.logits, match.target_of_query, targets.labels, mode="focal", reduction="sum"
    )
    total = IOU_WEIGHT * giou.sum() + L1_WEIGHT * l1 + ANGLE_WEIGHT * turn
    return (total + CLASS_WEIGHT * scores.sum()) / jnp.maximum(targets.offsets[-1], 1)
