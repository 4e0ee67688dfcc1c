# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Three training steps of a matcher and its losses in a process of their own; prints what they
leave, in hexadecimal digits. Its first call of a kernel may be under capture."""

import jax
import jax.numpy as jnp
import numpy as np
from boxloss.jax import box_losses, hungarian_match, matching_cost


def boxes(random: np.random.Generator, *shape: int) -> jax.Array:
    parts = random.uniform(0.3, 0.7, (*shape, 2)), random.uniform(0.05, 0.3, (*shape, 2))
    return jnp.asarray(np.concatenate(parts, -1), jnp.float32)


random = np.random.default_rng(0)
target = boxes(random, 12)
labels = jnp.asarray(random.integers(0, 9, 12))
offsets = jnp.array([0, 3, 3, 8, 12])


def criterion(pred: jax.Array, logits: jax.Array) -> jax.Array:
    cost = matching_cost(pred, target, offsets, logits=logits, labels=labels, class_mode="focal")
    match = hungarian_match(cost, offsets)
    losses = box_losses(
        pred,
        target,
        pred_index=match.pred_index,
        target_index=match.target_index,
        pred_format="cxcywh",
        target_format="cxcywh",
    )
    return (2 * losses.loss + 5 * losses.l1).sum()


@jax.jit
def step(pred: jax.Array, logits: jax.Array) -> jax.Array:
    return pred - 0.01 * jax.grad(criterion)(pred, logits)


pred = boxes(random, 2, 4, 50)
logits = jnp.asarray(random.normal(size=(2, 4, 50, 9)), jnp.float32)
for _ in range(3):
    pred = step(pred, logits)
print(np.asarray(pred).tobytes().hex())
