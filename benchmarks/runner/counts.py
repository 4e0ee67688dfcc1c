# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What a call asks of the current CUDA device and of its memory, and of torch.

A profiler that has run may slow down every launch after it: count when all times are taken.
"""

from __future__ import annotations

from typing import Any

import torch
from boxloss._trace import counts_of, trace
from torch.utils._python_dispatch import TorchDispatchMode

from .clocks import WARM_UPS, Call
from .run import UnavailableError


def counts(call: Call, calls: int) -> dict[str, float]:
    """For one call, of so many. Few keep the trace of many launches small."""
    for _ in range(WARM_UPS):
        call()
    peak = _peak_bytes(call)
    trace(call, 1)  # the first trace of a process may lack events
    found = counts_of(trace(call, calls), calls)
    if not found["kernels"]:
        raise UnavailableError("the profiler saw nothing on the GPU")
    return {**found, "peak_bytes": peak}


def _peak_bytes(call: Call) -> int:
    """Beyond what was there before. A CUDA graph has had its memory since it was made."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    call()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


class _Operators(TorchDispatchMode):
    count = 0

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.count += not function.is_view
        return function(*args, **(kwargs or {}))


def operators(call: Call) -> int:
    """Those that reach a device or allocate: without views."""
    with _Operators() as mode:
        call()
    return mode.count
