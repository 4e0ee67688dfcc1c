# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The code of docs/jax.md runs: its first two blocks alone, the third after the second."""

import re
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "jax.md"
LOSS, CRITERION, TRAINING = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
OFFSETS = jnp.array([0, 2, 3])


def run(*blocks: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "jax.md", "exec"), names)
    return names


def test_a_loss() -> None:
    names = run(LOSS)
    assert names["gradient"].dtype == jnp.bfloat16
    assert 1 < names["loss"] < 2  # boxes apart


def test_a_criterion() -> None:
    pred = jax.random.uniform(jax.random.key(1), (6, 2, 10, 4))
    target = jax.random.uniform(jax.random.key(2), (3, 4))
    logits = jnp.zeros((6, 2, 10, 5))
    loss, found = run(CRITERION)["criterion"](pred, logits, target, jnp.arange(3), OFFSETS)
    assert loss > 0
    assert (jnp.sort(found, axis=-1)[:, 0, -2:] == jnp.array([0, 1])).all()
    assert ((found >= 0).sum(-1) == jnp.array([2, 1])).all()


def test_a_training_step() -> None:
    pytest.importorskip("optax")
    names = run(CRITERION, TRAINING)
    features = jax.random.normal(jax.random.key(1), (2, 10, 8))
    target = jax.random.uniform(jax.random.key(2), (3, 4), minval=0.3, maxval=0.7)
    weights = {"boxes": jnp.zeros((8, 4)), "classes": jnp.zeros((8, 5))}
    state = names["optimizer"].init(weights)
    losses = []
    for _ in range(50):
        batch = features, target, jnp.arange(3), OFFSETS
        weights, state, loss = names["train_step"](weights, state, *batch)
        losses.append(float(loss))
    assert losses[-1] < 0.5 * losses[0]
