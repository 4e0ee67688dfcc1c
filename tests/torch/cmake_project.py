# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Builds a C++ project that finds boxloss in the installed package, as anybody's would."""

import shutil
import subprocess
from pathlib import Path

import boxloss
import pytest
import torch

PREFIXES = (boxloss.cmake_prefix_path, torch.utils.cmake_prefix_path)


def skip_without(*tools: str) -> None:
    for tool in tools:
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")


def configure(
    project: Path, folder: Path, *options: str, prefixes: tuple[str, ...] = PREFIXES
) -> subprocess.CompletedProcess[str]:
    skip_without("cmake", "c++")
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    warnings = "-Wall -Wextra -Wpedantic -Wshadow -Werror"
    common = [f"-DCMAKE_PREFIX_PATH={';'.join(prefixes)}", f"-DCMAKE_CXX_FLAGS={warnings}"]
    command = ["cmake", *generator, "-S", str(project), "-B", str(folder), *common, *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def build(project: Path, folder: Path) -> Path:
    """Gives the folder of what was built, without optimisation, which takes long."""
    configured = configure(project, folder)
    assert configured.returncode == 0, configured.stderr
    output_of("cmake", "--build", str(folder), "--parallel", "4")
    return folder


def output_of(*command: str | Path, environment: dict[str, str] | None = None) -> str:
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout
