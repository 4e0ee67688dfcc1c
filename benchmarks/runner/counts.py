# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What a call asks of the current CUDA device and of its memory, and of torch.

A profiler that has run may slow down every launch after it: count when all times are taken.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils._python_dispatch import TorchDispatchMode

from .clocks import WARM_UPS, Call
from .run import UnavailableError

RANGE = "counted calls"

ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset")
FROM_HOST = ("cuda_runtime", "cuda_driver", "hip_runtime", "hip_driver")
# By these names the host hands over work, one kernel, copy or graph each, or waits for it.
LAUNCH = re.compile(r"(cuda|cu|hip)(Ext|Module|ExtModule)?(Launch|GraphLaunch|Memcpy|Memset)")
WAIT = re.compile(r"(cuda|cu|hip)((Device|Stream|Event|Ctx)Synchronize|Memcpy(?!.*Async))")


def counts(call: Call, calls: int) -> dict[str, float]:
    """For one call, of so many. Few keep the trace of many launches small."""
    for _ in range(WARM_UPS):
        call()
    peak = _peak_bytes(call)
    _trace(call, 1)  # the first trace of a process may lack events
    return {**counts_of(_trace(call, calls), calls), "peak_bytes": peak}


def counts_of(events: Iterable[dict[str, Any]], calls: int) -> dict[str, float]:
    """Of a trace's events, those of the GPU, and those of the host in its range."""
    events = list(events)
    work = [event for event in events if event.get("cat") in ON_GPU]
    if not work:
        raise UnavailableError("the profiler saw nothing on the GPU")
    (whole,) = (
        event
        for event in events
        if event.get("cat") == "user_annotation" and event.get("name") == RANGE
    )
    first, last = whole["ts"], whole["ts"] + whole["dur"]
    asked = [
        event["name"]
        for event in events
        if event.get("cat") in FROM_HOST and first <= event["ts"] <= last
    ]
    return {
        "kernels": len(work) / calls,
        "launches": sum(bool(LAUNCH.match(name)) for name in asked) / calls,
        "waits": sum(bool(WAIT.match(name)) for name in asked) / calls,
        "busy_microseconds": sum(event["dur"] for event in work) / calls,
    }


def _trace(call: Call, calls: int) -> list[dict[str, Any]]:
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        with record_function(RANGE):
            for _ in range(calls):
                call()
        torch.cuda.synchronize()  # not counted: it is behind the range
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        events: list[dict[str, Any]] = json.loads(path.read_text())["traceEvents"]
    return events


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
