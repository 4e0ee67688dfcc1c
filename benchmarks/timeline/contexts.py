# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""How long a loss takes, forward and backward apart, by what was done before it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from ..common.timing import Call

REST_SECONDS = 5e-3
CONTEXTS: dict[str, Call] = {
    "again and again": lambda: None,
    "after a rest": lambda: time.sleep(REST_SECONDS),
}
FENCE = "waiting for nothing"

Samples = dict[str, dict[str, dict[str, list[float]]]]  # by name, context and part, microseconds


def measure(losses: Mapping[str, Callable[[], Tensor]], leaf: Tensor, rounds: int) -> Samples:
    """In turns, as a training step has it: the GPU is idle, each part waits for its own work."""
    samples: Samples = {
        FENCE: {context: {"backward": []} for context in CONTEXTS},
        **{
            name: {context: {"forward": [], "backward": []} for context in CONTEXTS}
            for name in losses
        },
    }
    for _ in range(rounds):
        for context, prepare in CONTEXTS.items():
            for name, loss in losses.items():
                forward, backward = _once(loss, leaf, prepare)
                samples[name][context]["forward"].append(forward)
                samples[name][context]["backward"].append(backward)
            prepare()
            samples[FENCE][context]["backward"].append(_fenced(lambda: None)[1])
    return samples


def _once(loss: Callable[[], Tensor], leaf: Tensor, prepare: Call) -> tuple[float, float]:
    prepare()
    leaf.grad = None  # or backward would add to it
    value, forward = _fenced(loss)
    _, backward = _fenced(value.backward)
    return forward, backward


def _fenced(call: Callable[[], Tensor]) -> tuple[Tensor, float]:
    torch.cuda.synchronize()
    start = time.perf_counter()
    result = call()
    torch.cuda.synchronize()
    return result, (time.perf_counter() - start) * 1e6
