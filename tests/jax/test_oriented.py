# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The criterion of rotated boxes in JAX is that in torch."""

import jax
import jax.numpy as jnp
import numpy as np
import torch

from examples import oriented_detr, rectangles
from examples.jax_criterion import Outputs, Targets
from examples.jax_oriented_criterion import oriented


def test_both_frameworks_have_one_criterion() -> None:
    """In float64, with more boxes than queries in an image. JAX' list has rows of no image."""
    random = torch.Generator().manual_seed(0)
    _, targets = rectangles.draw(6, random)
    targets = targets._replace(boxes=targets.boxes.double())
    shape = 2, 6, 3  # layers, images, queries
    logits = torch.randn(
        *shape, len(rectangles.COLOURS), generator=random, dtype=torch.float64, requires_grad=True
    )
    boxes = torch.rand(*shape, 5, generator=random, dtype=torch.float64, requires_grad=True)
    assert targets.offsets.diff().max() > 3
    loss = oriented_detr.criterion(logits, boxes, targets)
    loss.backward()

    padded = Targets(
        jnp.asarray(np.pad(targets.boxes.numpy(), ((0, 3), (0, 0)))),
        jnp.asarray(np.pad(targets.labels.numpy(), (0, 3))),
        jnp.asarray(targets.offsets.numpy()),
    )
    outputs = Outputs(*(jnp.asarray(each.detach().numpy()) for each in (logits, boxes)))
    found, gradients = jax.jit(jax.value_and_grad(oriented))(outputs, padded)
    wanted = loss, logits.grad, boxes.grad
    for ours, theirs in zip((found, *gradients), wanted, strict=True):
        np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=1e-10, atol=1e-12)
