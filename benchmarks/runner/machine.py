# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Which machine and which versions made a figure."""

from __future__ import annotations

import os
import platform
import re
import sys
from importlib import metadata
from pathlib import Path

import torch

PACKAGES = "boxloss torch torchvision transformers ultralytics triton jax numpy scikit-image scipy"


def describe(device: torch.device) -> dict[str, str]:
    """What to print above every table, and to write into every result file."""
    cores = len(os.sched_getaffinity(0))  # a container may own fewer than the machine has
    threads = f"{torch.get_num_threads()} torch threads"
    machine = {
        "cpu": f"{_cpu_model()}, {cores} cores, {threads}{_capability()}",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
    }
    if device.type == "cuda":
        gpu = torch.cuda.get_device_properties(device)
        hip, cuda = torch.version.hip, torch.version.cuda
        toolkit = f"ROCm {hip}" if hip else f"CUDA {cuda}"
        machine["gpu"] = f"{gpu.name}, {gpu.total_memory / 2**30:.0f} GiB, {toolkit}"
    return machine | {package: _version(package) for package in PACKAGES.split()}


def _cpu_model() -> str:
    found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found[1] if found else platform.machine()  # arm64 has none


def _capability() -> str:
    """What cpu/native uses, of a boxloss that is loaded and can say it."""
    found = getattr(sys.modules.get("boxloss.torch"), "cpu_capability", None)
    return f", {found()}" if found else ""


def _version(package: str) -> str:
    # An imported module knows best: it may be a source tree, and torch's version names the build.
    found = getattr(sys.modules.get(package), "__version__", None)
    try:
        return str(found or metadata.version(package))
    except metadata.PackageNotFoundError:
        return "not installed"
