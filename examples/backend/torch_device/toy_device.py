# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Importing this builds toy_device.cpp, the first time, and gives torch its device, "toy". A real
device comes with a package that does so."""

import sys
from pathlib import Path

import torch
from torch.utils import cpp_extension
from torch.utils.backend_registration import rename_privateuse1_backend


def _is_in_bad_fork() -> bool:
    """torch.manual_seed asks, and seeds the device by the next."""
    return False


def manual_seed_all(seed: int) -> None:
    """The toy draws its numbers on the CPU."""


def is_available() -> bool:
    """torch.compile asks this and the next two."""
    return True


def is_initialized() -> bool:
    return True


def current_device() -> int:
    return 0


cpp_extension.load(
    "toy_device",
    [str(Path(__file__).with_suffix(".cpp"))],
    extra_cflags=["-O1", "-Wall"],
    is_python_module=False,
)
rename_privateuse1_backend("toy")
torch._register_device_module("toy", sys.modules[__name__])  # torch.toy
