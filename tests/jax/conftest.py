# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""JAX with 64-bit numbers, as torch has them, and the problems of torch's tests."""

import os
import sys
from pathlib import Path

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"  # read by the first call

import jax

jax.config.update("jax_enable_x64", True)
sys.path.append(str(Path(__file__).parents[1] / "torch"))

from poison import poison_new_memory

poison_new_memory()
