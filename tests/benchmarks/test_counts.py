# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What a trace says a call asked of the GPU."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.runner.counts import RANGE, counts_of
from benchmarks.runner.run import UnavailableError


def _event(category: str, name: str, ts: float, dur: float = 1) -> dict[str, Any]:
    return {"cat": category, "name": name, "ts": ts, "dur": dur}


TRACE = [
    {"name": "process_name", "ph": "M"},
    _event("user_annotation", RANGE, 100, 50),
    _event("gpu_user_annotation", RANGE, 101, 90),
    _event("cpu_op", "aten::index", 102),
    _event("cuda_driver", "cuLaunchKernelEx", 104),
    _event("cuda_runtime", "cudaMemcpyAsync", 106),
    _event("cuda_runtime", "cudaGraphLaunch", 107),
    _event("cuda_runtime", "cudaStreamSynchronize", 108),
    _event("cuda_runtime", "cudaMemcpy", 109),
    _event("cuda_runtime", "cudaStreamWaitEvent", 110),
    _event("kernel", "k", 103, 4),
    _event("kernel", "k", 160, 4),  # a kernel may end after the host has left
    _event("gpu_memcpy", "Memcpy HtoD", 107, 2),
    _event("gpu_memset", "Memset", 109, 2),
    _event("cuda_runtime", "cudaDeviceSynchronize", 151),  # the measurement's own
]


def test_launches_kernels_and_waits_are_counted() -> None:
    assert counts_of(TRACE, 2) == {
        "kernels": 2,
        "launches": 2,
        "waits": 1,
        "busy_microseconds": 6,
    }


def test_a_profiler_that_sees_no_gpu_is_an_error() -> None:
    with pytest.raises(UnavailableError, match="saw nothing on the GPU"):
        counts_of(TRACE[:4], 2)
