# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""JAX with 64-bit numbers, as torch has them, and the problems of torch's tests."""

import sys
from pathlib import Path

import jax

jax.config.update("jax_enable_x64", True)
sys.path.append(str(Path(__file__).parents[1] / "torch"))
