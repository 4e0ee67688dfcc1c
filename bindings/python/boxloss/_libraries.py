# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What is in the package's folder for libraries, and how it is built again."""

import ctypes
import os
import shlex
import shutil
import sys
from collections.abc import Container
from pathlib import Path

from ._version import BACKENDS

FOLDER = Path(__file__).parent / "lib"

JAX = FOLDER / "libboxloss_jax.so"


def torch_versions() -> list[str]:
    """The minor versions of torch that there are operators for, oldest first."""
    names = [path.stem for path in FOLDER.glob("libboxloss_torch-*.so")]
    versions = [name.split("-")[1] for name in names]
    return sorted(versions, key=lambda version: [int(part) for part in version.split(".")])


def cuda_driver() -> str | None:
    """The newest CUDA that the driver of this machine serves; None without a driver."""
    version = ctypes.c_int()
    try:
        ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
    except (OSError, AttributeError):
        return None
    return f"{version.value // 1000}.{version.value % 1000 // 10}"


def has_cuda() -> bool:
    """Whether there is a driver, or the compiler."""
    return cuda_driver() is not None or shutil.which(os.environ.get("CUDACXX", "nvcc")) is not None


def how_to_build(unwanted: Container[str] = ()) -> str:
    """Ends in a line for the shell, with nothing behind it.

    With this build's backends, but for unwanted ones, and for CUDA where the machine has nothing of
    it, as where a wheel was installed on one without a GPU.
    """
    backends = [each for each in BACKENDS.split(";") if each not in unwanted]
    if "cuda" in backends and not has_cuda():
        backends.remove("cuda")
    # cpu is always in, so that others say enough.
    chosen = ";".join(backends[1:]) or backends[0]
    pip = shlex.join([sys.executable, "-m", "pip", "install"])
    return (
        "in the folder of boxloss's sources, with a C++ compiler:\n\n"
        f"    {pip} scikit-build-core cmake ninja && "
        f"CMAKE_ARGS={shlex.quote(f'-DBACKEND={chosen}')} {pip} --no-build-isolation ."
    )
