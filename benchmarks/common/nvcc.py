# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels of a study's own, compiled where it runs."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import torch

from ..runner.run import UnavailableError

CORE = Path(__file__).parents[2] / "core"


def find_nvcc() -> str:
    nvcc = shutil.which(os.environ.get("CUDACXX", "nvcc"))
    if nvcc is None:
        raise UnavailableError("needs nvcc, by CUDACXX or on the PATH, but there is none here")
    return nvcc


def compile_library(source: Path, architecture: str, folder: Path) -> Path:
    """`architecture` is such as sm_90."""
    library = folder / source.with_suffix(".so").name
    command = [find_nvcc(), "-O3", "-std=c++17", f"-arch={architecture}", "-shared"]
    command += ["-Xcompiler=-fPIC", f"-I{CORE}", f"-I{CORE / 'include'}"]
    subprocess.run([*command, "-o", str(library), str(source)], check=True)
    return library


def load_library(source: Path, device: torch.device) -> ctypes.CDLL:
    """For this device."""
    major, minor = torch.cuda.get_device_capability(device)
    with tempfile.TemporaryDirectory() as folder:
        library = compile_library(source, f"sm_{major}{minor}", Path(folder))
        return ctypes.CDLL(str(library))  # it stays when its file goes
