# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Which devices and implementations the tests run on. A device that is missing is skipped."""

from dataclasses import dataclass

import pytest
import torch
from boxloss.torch import implementations

NAMES = [name for name in implementations() if name != "aten"]
GPU_NAMES = [name for name in NAMES if not name.startswith("cpu/")]


@dataclass(frozen=True)
class Implementation:
    name: str
    device: torch.device


def device_or_skip(kind: str) -> torch.device:
    """torch's device of that kind; torch calls a GPU of either make cuda."""
    if kind == "cuda" and not GPU_NAMES:
        pytest.skip("boxloss was built without a GPU implementation")
    if kind == "cuda" and not torch.cuda.is_available():
        pytest.skip("no GPU that torch can use")
    return torch.device(kind)
