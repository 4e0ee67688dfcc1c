# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Which devices and implementations there are to test: of this build, and on this machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from boxloss.torch import implementations, use_implementation

NAMES = [name for name in implementations() if name != "aten"]
GPU_NAMES = [name for name in NAMES if not name.startswith("cpu/")]
NO_GPU = (
    "boxloss was built without a GPU implementation"
    if not GPU_NAMES
    else ""
    if torch.cuda.is_available()
    else "there is no GPU that torch can use"
)
# torch calls a GPU of either make cuda.
DEVICES = ["cpu"] if NO_GPU else ["cpu", "cuda"]
THERE = [name for name in NAMES if not (NO_GPU and name in GPU_NAMES)]


@dataclass(frozen=True)
class Implementation:
    name: str
    device: torch.device


def device_of(name: str) -> torch.device:
    return torch.device("cuda" if name in GPU_NAMES else "cpu")


@contextmanager
def by_reference() -> Iterator[None]:
    """The CPU by cpu/reference: in double, by code of its own. Not by aten, if that was chosen."""
    with use_implementation("boxloss"), use_implementation("cpu/reference"):
        yield
