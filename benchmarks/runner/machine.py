# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Which machine and which versions made a figure."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from pathlib import Path

import torch

CAPABILITIES = {"avx512": "AVX-512", "avx2": "AVX2"}

PACKAGES = (
    "boxloss",
    "torch",
    "torchvision",
    "transformers",
    "ultralytics",
    "mmdet",
    "triton",
    "jax",
    "numpy",
    "scikit-image",
    "scipy",
)


def describe(device: torch.device) -> dict[str, str]:
    """What to print above every table, and to write into every result file."""
    threads = f"{torch.get_num_threads()} torch threads"
    machine = {
        "cpu": f"{_cpu_model()}, {_usable_cores()} cores, {threads}{_capability()}",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
    }
    if device.type == "cuda":
        gpu = torch.cuda.get_device_properties(device)
        toolkit = (
            f"CUDA {torch.version.cuda}" if torch.version.cuda else f"ROCm {torch.version.hip}"
        )
        machine["gpu"] = f"{gpu.name}, {gpu.total_memory / 2**30:.0f} GiB, {toolkit}"
    return machine | {package: _version(package) for package in PACKAGES}


def _cpu_model() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _capability() -> str:
    """What cpu/native uses, of a boxloss that is loaded and can say it."""
    module = sys.modules.get("boxloss.torch")
    if not hasattr(module, "cpu_capability"):
        return ""
    assert module is not None
    name: str = module.cpu_capability()
    return f", {CAPABILITIES.get(name, name)}"


def _usable_cores() -> int:
    # A container may own fewer cores than the machine has.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _version(package: str) -> str:
    # An imported module knows best: it may be a source tree, and torch's version names the build.
    module = sys.modules.get(package)
    if module is not None and hasattr(module, "__version__"):
        return str(module.__version__)
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
