# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""How long a loss takes, forward and backward apart, by what was done before it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..common.timing import Call

REST_SECONDS = 5e-3
AGAIN, RESTED = "again and again", "after a rest"
CONTEXTS = (AGAIN, RESTED)
FENCE = "waiting for nothing"

Samples = dict[str, dict[str, dict[str, list[float]]]]  # by name, context and part, microseconds


def measure(losses: Mapping[str, Callable[[], Tensor]], leaf: Tensor, rounds: int) -> Samples:
    """In turns; the GPU is idle, each part waits for its own work."""
    samples: Samples = {
        FENCE: {context: {"backward": []} for context in CONTEXTS},
        **{
            name: {context: {"forward": [], "backward": []} for context in CONTEXTS}
            for name in losses
        },
    }
    for _ in range(rounds):
        for context in CONTEXTS:
            for name, loss in losses.items():
                once = partial(_once, loss, leaf)
                _prepare(context, once)
                forward, backward = once()
                samples[name][context]["forward"].append(forward)
                samples[name][context]["backward"].append(backward)
            wait = partial(_fenced, lambda: None)
            _prepare(context, wait)
            samples[FENCE][context]["backward"].append(wait()[1])
    return samples


def _prepare(context: str, once: Call) -> None:
    """Whatever was measured before, the call follows itself, or a rest."""
    if context == RESTED:
        time.sleep(REST_SECONDS)
    else:
        once()


def _once(loss: Callable[[], Tensor], leaf: Tensor) -> tuple[float, float]:
    leaf.grad = None  # or backward would add to it
    value, forward = _fenced(loss)
    _, backward = _fenced(value.backward)
    return forward, backward


def _fenced(call: Callable[[], Any]) -> tuple[Any, float]:
    torch.cuda.synchronize()
    start = time.perf_counter()
    result = call()
    torch.cuda.synchronize()
    return result, (time.perf_counter() - start) * 1e6
