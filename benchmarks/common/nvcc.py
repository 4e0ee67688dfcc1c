# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Operators of torch with kernels of their own, compiled where a study runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path

import torch
from torch.utils.cpp_extension import include_paths, library_paths

from ..runner.run import UnavailableError


def find_nvcc() -> str:
    nvcc = shutil.which(os.environ.get("CUDACXX", "nvcc"))
    if nvcc is None:
        raise UnavailableError("needs nvcc, by CUDACXX or on the PATH, but there is none here")
    return nvcc


def compile_operators(source: Path, architecture: str, folder: Path, *flags: str) -> Path:
    """`architecture` is such as sm_90. The very commands of torch.utils.cpp_extension need ninja,
    and a torch for CUDA even to compile."""
    library = folder / source.with_suffix(".so").name
    command = [find_nvcc(), "-O3", "-std=c++20", f"-arch={architecture}", "-shared"]
    command += ["-Xcompiler=-fPIC", "--expt-relaxed-constexpr", *flags]
    command += [f"-I{path}" for path in (*include_paths(), sysconfig.get_path("include"))]
    command += [f"-L{path}" for path in library_paths()]
    command += ["-ltorch", "-ltorch_cpu", "-lc10"]
    subprocess.run([*command, "-o", str(library), str(source)], check=True)
    return library


def load_operators(source: Path, device: torch.device, *flags: str) -> None:
    """For this device, into torch.ops."""
    if device.type == "cpu":
        raise UnavailableError("nvcc compiles for GPUs only")
    major, minor = torch.cuda.get_device_capability(device)
    with tempfile.TemporaryDirectory() as folder:
        library = compile_operators(source, f"sm_{major}{minor}", Path(folder), *flags)
        torch.ops.load_library(str(library))  # it stays when its file goes
