# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What a call asks of the current CUDA device, by torch's profiler."""

import json
import math
import re
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

RANGE = "counted calls"
ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset")
FROM_HOST = ("cuda_runtime", "cuda_driver", "hip_runtime", "hip_driver")
# By these names the host hands over work, one kernel, copy or graph each, or waits for it.
LAUNCH = re.compile(r"(cuda|cu|hip)(Ext|Module|ExtModule)?(Launch|GraphLaunch|Memcpy|Memset)")
WAIT = re.compile(r"(cuda|cu|hip)((Device|Stream|Event|Ctx)Synchronize|Memcpy(?!.*Async))")


def trace(call: Callable[[], object], calls: int) -> list[dict[str, Any]]:
    """The events of a GPU's and its host's profile. It may slow down every launch after it."""
    torch.cuda.synchronize()
    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with profile(activities=activities) as profiler:
        with record_function(RANGE):
            for _ in range(calls):
                call()
        torch.cuda.synchronize()  # not counted: it is behind the range
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        events: list[dict[str, Any]] = json.loads(path.read_text())["traceEvents"]
    return events


def counts_of(events: Iterable[dict[str, Any]], calls: int) -> dict[str, float]:
    """For one call, of a trace's events on the GPU, and of the host's in RANGE. Without any kernel
    the profiler has seen nothing."""
    events = list(events)
    work = sorted((x["ts"], x["ts"] + x["dur"]) for x in events if x.get("cat") in ON_GPU)
    busy, end = 0.0, -math.inf
    for first, last in work:  # those of several streams may be at the same time
        busy += max(0.0, last - max(first, end))
        end = max(end, last)
    counted = next(x for x in events if x.get("cat") == "user_annotation" and x["name"] == RANGE)
    first, last = counted["ts"], counted["ts"] + counted["dur"]
    of_host = (x for x in events if x.get("cat") in FROM_HOST and first <= x["ts"] <= last)
    asked = [x["name"] for x in of_host]
    return {
        "kernels": len(work) / calls,
        "launches": sum(bool(LAUNCH.match(name)) for name in asked) / calls,
        "waits": sum(bool(WAIT.match(name)) for name in asked) / calls,
        "busy_microseconds": busy / calls,
    }
