# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Compiles repeated_giou.cu for the GPU that is here, and launches it.

What CUDA 13.0's compiler made of it for sm_90, as `cuobjdump -sass` shows it: all kernels have the
same loop of 55 instructions, once for each repetition, not unrolled and with nothing moved out of
it, and 24 registers a thread. "no branch" has no branch but that loop's and the exit of threads
behind the last slot. The others have one more around the loop, on which the threads of a warp may
part (BSSY, BSYNC); the prediction is read before it, or behind it.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from ..common.losses import EPS, UnavailableError

SOURCE = Path(__file__).with_name("repeated_giou.cu")
CORE = SOURCE.parents[2] / "core"

# In the order of the source.
NO_BRANCH, AROUND_FORMULA, BEFORE_READING, IN_TURN = VARIANTS = (
    "no branch",
    "branch around the formula",
    "branch before reading the prediction",
    "the same, warps in turn",  # the first slots of each image are not always the first warp's
)
STEP = 2.0**-8  # pixels by which a loss of 1 moves two sides of either box

# (pred, target, losses, times): what a variant does
Launch = Callable[[Tensor, Tensor, Tensor, int], None]


def compile_library(architecture: str, folder: Path) -> Path:
    """UnavailableError, where there is no nvcc for `architecture`, such as sm_90."""
    nvcc = shutil.which(os.environ.get("CUDACXX", "nvcc"))
    if nvcc is None:
        raise UnavailableError("needs nvcc, by CUDACXX or on the PATH, but there is none here")
    library = folder / "repeated_giou.so"
    command = [nvcc, "-O3", "-std=c++17", f"-arch={architecture}", "-shared", "-Xcompiler=-fPIC"]
    command += [f"-I{CORE}", f"-I{CORE / 'include'}", "-o", str(library), str(SOURCE)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise UnavailableError(f"{nvcc} failed for {architecture}: {result.stderr.strip()}")
    return library


class Kernels:
    """The kernels, for one device, which is the current one."""

    def __init__(self, device: torch.device) -> None:
        if device.type != "cuda" or torch.version.cuda is None:
            raise UnavailableError(f"needs a GPU that torch reaches by CUDA, not '{device}'")
        major, minor = torch.cuda.get_device_capability(device)
        with tempfile.TemporaryDirectory() as folder:
            library = compile_library(f"sm_{major}{minor}", Path(folder))
            self._library = ctypes.CDLL(str(library))  # it stays when its file goes
        pointer, number = ctypes.c_void_p, ctypes.c_int
        self._library.launch.argtypes = [
            *(number, pointer, pointer, pointer, ctypes.c_int64),
            *(ctypes.c_double, ctypes.c_double, number, pointer),
        ]
        self._library.words.restype = ctypes.c_char_p

    def launch(self, variant: str) -> Launch:
        kernel = VARIANTS.index(variant)

        def launched(pred: Tensor, target: Tensor, losses: Tensor, times: int) -> None:
            stream = torch.cuda.current_stream().cuda_stream
            boxes = (pred.data_ptr(), target.data_ptr(), losses.data_ptr())
            slots = losses.numel()
            self._check(self._library.launch(kernel, *boxes, slots, EPS, STEP, times, stream))

        return launched

    def describe(self, variant: str) -> dict[str, int]:
        """Registers of a thread, and how many threads a multiprocessor holds at once."""
        return {
            "registers": self._asked(self._library.registers, variant),
            "threads_at_once": self._asked(self._library.threads_at_once, variant),
        }

    def _asked(self, question: Callable[..., int], variant: str) -> int:
        answer = ctypes.c_int()
        self._check(question(VARIANTS.index(variant), ctypes.byref(answer)))
        return answer.value

    def _check(self, error: int) -> None:
        if error:
            raise RuntimeError(f"CUDA: {self._library.words(error).decode()}")
