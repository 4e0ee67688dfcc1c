# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""How long one loss takes, forward and backward apart, by what was done before it."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from ..common.timing import Call

REST_SECONDS = 5e-3
Samples = dict[str, dict[str, list[float]]]  # by context and part, microseconds


def contexts(other: Call) -> dict[str, Call]:
    """What is done before each measurement. `other` is another loss, which takes its turn."""
    return {
        "again and again": lambda: None,
        "after a rest": lambda: time.sleep(REST_SECONDS),
        "after another loss": other,
    }


def measure(
    loss: Callable[[], torch.Tensor], leaf: torch.Tensor, before: dict[str, Call], rounds: int
) -> Samples:
    """As a training step has it: the GPU is idle, each part waits for its own work."""
    samples: Samples = {name: {"forward": [], "backward": []} for name in before}
    for _ in range(rounds):
        for name, prepare in before.items():
            leaf.grad = None
            prepare()
            torch.cuda.synchronize()
            start = time.perf_counter()
            value = loss()
            torch.cuda.synchronize()
            middle = time.perf_counter()
            value.backward()
            torch.cuda.synchronize()
            end = time.perf_counter()
            samples[name]["forward"].append((middle - start) * 1e6)
            samples[name]["backward"].append((end - middle) * 1e6)
    return samples


def fence(before: dict[str, Call], rounds: int) -> Samples:
    """Waiting for nothing."""
    samples: Samples = {name: {"backward": []} for name in before}
    for _ in range(rounds):
        for name, prepare in before.items():
            prepare()
            torch.cuda.synchronize()
            start = time.perf_counter()
            torch.cuda.synchronize()
            samples[name]["backward"].append((time.perf_counter() - start) * 1e6)
    return samples
