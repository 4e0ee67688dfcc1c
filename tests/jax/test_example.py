# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The example's criterion is the usual one, and trains; the study runs."""

from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from both import switched_x64

from benchmarks.runner.program import main
from benchmarks.runner.results import read_results
from examples.jax_criterion import Outputs, Targets, fused, usual
from examples.jax_detr import train


@pytest.mark.parametrize("counts", [(3, 0, 5, 1), (0, 0, 0, 0), (5, 5, 5, 5)])
def test_both_criteria_are_one(counts: tuple[int, ...]) -> None:
    """In float64, so that only the last digits may differ. The list has rows of no image."""
    random = np.random.default_rng(1)

    def boxes(*shape: int) -> jax.Array:
        parts = random.uniform(0.3, 0.7, (*shape, 2)), random.uniform(0.05, 0.3, (*shape, 2))
        return jnp.asarray(np.concatenate(parts, -1))

    offsets = np.concatenate(([0], np.cumsum(counts)))
    labels = random.integers(0, 3, offsets[-1] + 2)
    targets = Targets(boxes(offsets[-1] + 2), jnp.asarray(labels), jnp.asarray(offsets))
    outputs = Outputs(jnp.asarray(random.normal(size=(2, 4, 9, 3))), boxes(2, 4, 9))
    found, expected = (
        jax.jit(jax.value_and_grad(partial(criterion, targets=targets)))(outputs)
        for criterion in (fused, partial(usual, most=5))
    )
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
    assert found[0] > 0


def test_it_trains_the_same_in_both_ways() -> None:
    with switched_x64(False):
        losses = train(60)
        others = train(5, is_usual=True)  # after which last digits are amplified
    np.testing.assert_allclose(losses[:5], others, rtol=1e-4)
    assert np.mean(losses[-10:]) < 0.8 * losses[0]


@pytest.mark.long
def test_a_quick_run_of_the_study(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    assert main(["jax", "--quick", "--json", str(file)]) == 0
    rows = read_results(file).rows
    assert {row["case"] for row in rows} == {"dense", "ragged", "criterion"}
    assert all(row["median"] > 0 for row in rows)
