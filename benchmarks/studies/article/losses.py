# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The article's own losses, operator by operator: means of GIoU, which training would maximise.

They compute in the dtypes that they are given. Of uint8 boxes the areas wrap modulo 256. Of
bfloat16 predictions even the number of boxes is rounded, and a sum stands still where what is added
is below half of its last place.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import tempfile
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.cpp_extension import include_paths, library_paths

from ...common.losses import EPS, Loss
from ...runner.run import UnavailableError

SOURCE = Path(__file__).with_name("giou.cu")
SLOTS = 256  # the threads of a block, one for each slot of an image


def giou(one: Tensor, other: Tensor, clamps: bool) -> Tensor:
    """`clamps` is the later text's; without it two negative sides have a positive area."""
    (one_near, one_far), (other_near, other_far) = one.split(2, -1), other.split(2, -1)
    overlap = area(torch.max(one_near, other_near), torch.min(one_far, other_far), clamps)
    union = area_of(one) + area_of(other) - overlap
    enclosing = area(torch.min(one_near, other_near), torch.max(one_far, other_far), clamps)
    enclosing = enclosing.clamp(EPS)
    return overlap / union.clamp(EPS) - (enclosing - union) / enclosing


def area(near: Tensor, far: Tensor, clamps: bool) -> Tensor:
    """Between two corners."""
    sides = far - near
    width, height = (sides.clamp(0) if clamps else sides).unbind(-1)
    return width * height


def area_of(box: Tensor) -> Tensor:
    left, top, right, bottom = box.unbind(-1)
    return (right - left) * (bottom - top)


def loop(pred: Tensor, *boxes: Tensor, clamps: bool = True) -> Tensor:
    """Image by image. Python's 0 has no dtype, so the sum takes the predictions'."""
    total: Any = 0.0
    for guesses, truths in zip(pred, boxes, strict=True):
        if len(truths):
            total = total + giou(guesses[: len(truths)], truths, clamps).sum()
    return total / max(sum(map(len, boxes)), 1)


def concat(pred: Tensor, *boxes: Tensor, clamps: bool = True) -> Tensor:
    """All true boxes of the batch at once."""
    guesses = torch.cat([row[: len(truths)] for row, truths in zip(pred, boxes, strict=True)])
    return giou(torch.cat(boxes), guesses, clamps).sum() / max(len(guesses), 1)


def mask(pred: Tensor, target: Tensor, clamps: bool = True) -> Tensor:
    """All slots, those without a true box times 0."""
    valid = (target[..., 3] > 0).to(pred.dtype)
    count = valid.sum()
    return (giou(target, pred, clamps) * valid).sum() / count.clamp(1)


@cache
def load_kernels(device: torch.device) -> Any:
    """Their operators, which have no backward."""
    load_operators(SOURCE, device)
    return torch.ops.article


def load_kernel(device: torch.device, clamps: bool, branch: bool) -> Loss:
    """After two casts, which are Python's, and before three reductions by torch."""
    return partial(on_float, partial(load_kernels(device).loss, clamps=clamps, branch=branch))


def load_printed(source: Path, device: torch.device) -> Loss:
    """A text of the article's operator, in a namespace of its own, since each defines the same."""
    namespace = f"printed_{source.stem}"
    torch.library.define(f"{namespace}::giou_loss", "(Tensor a, Tensor b) -> Tensor")
    load_operators(source, device, f"-Dextension_cpp={namespace}")
    return partial(on_float, getattr(torch.ops, namespace).giou_loss)


def on_float(loss: Loss, pred: Tensor, target: Tensor) -> Tensor:
    return loss(*cast(pred, target))


def cast(pred: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    return pred.float(), target.float()


# --- Their operators, compiled where the study runs ---


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
