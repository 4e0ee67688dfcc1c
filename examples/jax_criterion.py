# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""A DETR's criterion in JAX, with boxloss and as it is usually written.

`fused` is four custom calls, all on the device. `usual` pads the ground-truth boxes, compares all
queries with all boxes in jax.numpy, and asks SciPy on the host for the assignment. Both give the
same loss. Needs jax; `usual` SciPy.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from boxloss.jax import box_losses, class_loss, hungarian_match, matching_cost
from jax import Array

IOU_WEIGHT, L1_WEIGHT, CLASS_WEIGHT = 2.0, 5.0, 2.0
ALPHA, GAMMA = 0.25, 2.0  # of the focal loss


class Outputs(NamedTuple):
    """Of all decoder layers."""

    logits: Array  # (layers, images, queries, classes)
    boxes: Array  # (layers, images, queries, 4), cxcywh, in parts of the picture


class Targets(NamedTuple):
    """The ground-truth boxes of all images as one list, whose length must not change from step to
    step: rows from offsets[-1] on are padding."""

    boxes: Array  # (rows, 4), cxcywh
    labels: Array  # (rows)
    offsets: Array  # (images + 1): image b has rows offsets[b] to offsets[b + 1]


def fused(outputs: Outputs, targets: Targets) -> Array:
    """The loss with boxloss."""
    cost = matching_cost(
        outputs.boxes,
        targets.boxes,
        targets.offsets,
        logits=outputs.logits,
        labels=targets.labels,
        class_mode="focal",
        iou_weight=IOU_WEIGHT,
        l1_weight=L1_WEIGHT,
        class_weight=CLASS_WEIGHT,
    )
    match = hungarian_match(cost, targets.offsets)
    number = jnp.maximum(targets.offsets[-1], 1)
    losses = box_losses(
        outputs.boxes,
        targets.boxes,
        "giou",
        eps=0.0,
        pred_format="cxcywh",
        target_format="cxcywh",
        pred_index=match.pred_index,
        target_index=match.target_index,
        normalizer=number,
    )
    scores = class_loss(
        outputs.logits,
        match.target_of_query,
        targets.labels,
        mode="focal",
        alpha=ALPHA,
        gamma=GAMMA,
        reduction="sum",
    )
    boxes = IOU_WEIGHT * losses.loss + L1_WEIGHT * losses.l1
    return boxes.sum() + CLASS_WEIGHT * scores.sum() / number


def usual(outputs: Outputs, targets: Targets, most: int) -> Array:
    """The same without boxloss; no image may have more than `most` boxes."""
    row = targets.offsets[:-1, None] + jnp.arange(most)
    exists = row < targets.offsets[1:, None]  # (images, most)
    row = jnp.where(exists, row, 0)
    boxes = jnp.where(exists[..., None], targets.boxes[row], jnp.array([0.5, 0.5, 1, 1]))
    labels = jnp.where(exists, targets.labels[row], 0)

    pairs = outputs.boxes[..., None, :], boxes[:, None]  # each query, each box of its image
    cost = (
        -IOU_WEIGHT * giou(*pairs)
        + L1_WEIGHT * jnp.abs(pairs[0] - pairs[1]).sum(-1)
        + CLASS_WEIGHT * focal_cost(outputs.logits, labels)
    )
    layers, images, queries, classes = outputs.logits.shape
    query = jax.pure_callback(  # (layers, images, most)
        assigned,
        jax.ShapeDtypeStruct((layers, images, most), jnp.int32),
        jax.lax.stop_gradient(cost),
        exists.sum(-1),
    )

    number = jnp.maximum(targets.offsets[-1], 1)
    own = jnp.take_along_axis(outputs.boxes, query[..., None], 2)
    of_box = IOU_WEIGHT * (1 - giou(own, boxes)) + L1_WEIGHT * jnp.abs(own - boxes).sum(-1)
    layer, image = jnp.arange(layers)[:, None, None], jnp.arange(images)[:, None]
    wanted = jnp.zeros((layers, images, queries, classes)).at[layer, image, query, labels]
    scores = focal_loss(outputs.logits, wanted.add(exists.astype(jnp.float32)))
    return (jnp.where(exists, of_box, 0).sum() + CLASS_WEIGHT * scores) / number


def assigned(cost: Any, counts: Any) -> Any:
    """The query of each ground-truth box; on the host."""
    from scipy.optimize import linear_sum_assignment

    cost, counts = np.asarray(cost), np.asarray(counts)
    result = np.zeros((*cost.shape[:2], cost.shape[-1]), np.int32)
    for layer, image in np.ndindex(*cost.shape[:2]):
        query, box = linear_sum_assignment(cost[layer, image, :, : counts[image]])
        result[layer, image, box] = query
    return result


def giou(a: Array, b: Array) -> Array:
    """Of cxcywh boxes."""
    low_a, high_a = a[..., :2] - a[..., 2:] / 2, a[..., :2] + a[..., 2:] / 2
    low_b, high_b = b[..., :2] - b[..., 2:] / 2, b[..., :2] + b[..., 2:] / 2
    overlap = jnp.maximum(jnp.minimum(high_a, high_b) - jnp.maximum(low_a, low_b), 0).prod(-1)
    hull = (jnp.maximum(high_a, high_b) - jnp.minimum(low_a, low_b)).prod(-1)
    union = a[..., 2:].prod(-1) + b[..., 2:].prod(-1) - overlap
    return overlap / union - (hull - union) / hull


def focal_cost(logits: Array, labels: Array) -> Array:
    """(layers, images, queries, most), of labels (images, most)."""
    chance = jax.nn.sigmoid(logits)
    absent = (1 - ALPHA) * chance**GAMMA * -jnp.log(1 - chance + 1e-8)
    present = ALPHA * (1 - chance) ** GAMMA * -jnp.log(chance + 1e-8)
    shape = (*logits.shape[:-1], labels.shape[-1])
    label = jnp.broadcast_to(labels[:, None], shape)
    return jnp.take_along_axis(present - absent, label, -1)


def focal_loss(logits: Array, wanted: Array) -> Array:
    """Summed, of all queries and classes."""
    chance = jax.nn.sigmoid(logits)
    present = ALPHA * (1 - chance) ** GAMMA * jax.nn.log_sigmoid(logits)
    absent = (1 - ALPHA) * chance**GAMMA * jax.nn.log_sigmoid(-logits)
    return -(wanted * present + (1 - wanted) * absent).sum()
