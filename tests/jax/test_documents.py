# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The code of docs/jax.md runs."""

import re
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

PAGE = Path(__file__).parents[2] / "docs" / "jax.md"


def test_the_pages_code() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block, names)
    assert names["gradient"].dtype == jnp.bfloat16
    assert 1 < names["loss"] < 2  # boxes apart

    pred = jax.random.uniform(jax.random.key(1), (6, 2, 10, 4))
    target = jax.random.uniform(jax.random.key(2), (3, 4))
    logits = jnp.zeros((6, 2, 10, 5))
    loss, found = names["criterion"](pred, logits, target, jnp.arange(3), names["offsets"])
    assert loss > 0
    assert (jnp.sort(found, axis=-1)[:, 0, -2:] == jnp.array([0, 1])).all()
    assert ((found >= 0).sum(-1) == jnp.array([2, 1])).all()
