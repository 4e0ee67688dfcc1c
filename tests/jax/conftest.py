# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""JAX with 64-bit numbers, as torch has them, and the problems of torch's tests."""

import os
import sys
from pathlib import Path

os.environ["XLA_FLAGS"] = (  # read by the first call
    "--xla_force_host_platform_device_count=8 "
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
    "--xla_backend_extra_options=xla_cpu_disable_new_fusion_emitters"  # half of a compilation
)

import jax
import pytest

jax.config.update("jax_enable_x64", True)
sys.path.append(str(Path(__file__).parents[1] / "torch"))

from poison import poison_new_memory

poison_new_memory()

# What this machine cannot run is not there, and the last line says so.
IS_CPU = jax.default_backend() == "cpu"
collect_ignore = ["test_gpu.py" if IS_CPU else "test_sharding.py"]
NEEDS = {
    "a GPU's command buffers": ("a GPU", not IS_CPU),
    "a second GPU": ("two GPUs", not IS_CPU and len(jax.devices()) > 1),
    "sharding over eight devices": ("JAX_PLATFORMS=cpu", IS_CPU),
}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    missing = [f"{what} (run with {needed})" for what, (needed, has) in NEEDS.items() if not has]
    terminalreporter.write_line(f"Left out of tests/jax: {', '.join(missing)}.")
