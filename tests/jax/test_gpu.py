# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What only a GPU has: command buffers, which are CUDA graphs, and a second device."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
from both import DEVICE, for_jax
from boxloss.jax import box_loss
from problems import problem


def training_step(flags: str) -> str:
    script = Path(__file__).with_name("training_step.py")
    environment = os.environ | {"XLA_FLAGS": flags, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    return subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, check=True
    ).stdout


def test_a_training_step_is_one_command_buffer(tmp_path: Path) -> None:
    """In a new process: what it captures is the first launch of each kernel."""
    captured = training_step(
        f"--xla_gpu_graph_min_graph_size=1 --xla_dump_to={tmp_path} --xla_dump_hlo_as_text "
        "--xla_gpu_enable_command_buffer=+CUSTOM_CALL"
    )
    (plan,) = tmp_path.glob("*jit_step.thunk_sequence_after_thunk_passes.txt")
    first, *others = plan.read_text().splitlines()
    assert "kCommandBuffer" in first
    inside = [line for line in others if line.startswith("    ")]
    assert sum("kCustomCall" in line for line in inside) == 4
    assert sum("kCustomCall" in line for line in others) == 4
    assert captured == training_step("--xla_gpu_enable_command_buffer=")


if len(jax.devices()) > 1:

    def test_the_second_device() -> None:
        values = for_jax(problem("lengths", DEVICE))
        step = jax.jit(jax.value_and_grad(lambda values: box_loss(**values), allow_int=True))
        first, second = (step(jax.device_put(values, device)) for device in jax.devices()[:2])
        assert second[0].devices() == {jax.devices()[1]}
        for one, other in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
            np.testing.assert_array_equal(one, other)
