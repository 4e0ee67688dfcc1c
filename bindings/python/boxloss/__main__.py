# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""``python -m boxloss``: what a bug report begins with.

Versions, what this build holds, and what works on this machine, or why not. A framework may be
missing, too new or broken: that is a line of the report, never its end.
"""

import ctypes
import io
import os
import platform
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module, metadata
from typing import Any

import boxloss
from boxloss._libraries import FOLDER, JAX, cuda_driver, torch_versions
from boxloss._version import BACKENDS, CUDA, CUDA_ARCHITECTURES

Lines = Iterator[str]

PACKAGES = (
    "torch",
    "jax",
    "jaxlib",
    "numpy",
    "torchvision",
    "transformers",
    "rfdetr",
    "ultralytics",
)
# Those that share an implementation's functions stand together.
OPERATIONS = {
    "box_loss": "box_loss, box_losses",
    "rotated_box_loss": "rotated_box_loss",
    "matching_cost": "matching_cost, pairwise_iou",
    "hungarian_match": "hungarian_match, linear_sum_assignment",
    "max_iou_match": "max_iou_match",
    "task_aligned_match": "task_aligned_match",
    "class_loss": "class_loss",
    "distribution_loss": "distribution_loss",
}


def attempt(problem: str, lines: Callable[[], Lines]) -> Lines:
    """The lines; where they end in an error, the problem and the error's words."""
    try:
        yield from lines()
    except (Exception, SystemExit) as error:
        words = str(error).strip()
        # An ImportError's own words are enough.
        kind = "" if isinstance(error, ImportError) and words else f"{type(error).__name__}: "
        yield f"{problem}: {kind}{words}"


def versions() -> Lines:
    operators = ", ".join(torch_versions()) or "(none)"
    handlers = "and handlers for JAX" if JAX.exists() else "none for JAX"
    yield f"boxloss {boxloss.__version__}, with operators for torch {operators}, {handlers}"
    with_cuda = f", by CUDA {CUDA} for {CUDA_ARCHITECTURES}" if CUDA else ""
    yield f"built: {BACKENDS.replace(';', ', ')}{with_cuda}"
    yield f"Python {platform.python_version()}, {platform.platform()}"
    driver = cuda_driver()
    yield f"CUDA's driver: {f'serves CUDA {driver} and before' if driver else '(none)'}"


def installed() -> Lines:
    """By the packages' own files: what cannot be imported has a version, too."""
    found = []
    for name in PACKAGES:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    yield f"installed: {', '.join(found) or '(none)'}"


def try_out(device: str, compute: Callable[..., Any]) -> Lines:
    """Whether a loss can be computed there, and an error of libboxloss.so's arrives: one that was
    linked to another libstdc++ ends the process."""
    float(compute())
    yield f"  a loss on {device}: works"
    try:
        compute(eps=-1.0)
    except ValueError:
        yield f"  an error on {device}: works"
    else:
        yield f"  an error on {device}: is not raised"


def with_torch() -> Lines:
    torch = import_module("torch")
    cuda = f", with CUDA {torch.version.cuda}" if torch.version.cuda else ""
    hip = f", with HIP {torch.version.hip}" if torch.version.hip else ""
    yield f"torch {torch.__version__}{cuda}{hip}"
    giou_loss = import_module("boxloss.torch").giou_loss
    devices = ["cpu"]
    if torch.cuda.is_available():
        devices += [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    else:
        yield "  no GPU that torch can use"

    def compute(device: str, **options: Any) -> Any:
        return giou_loss(*torch.ones(2, 3, 4, device=device), **options)

    for device in devices:
        name = f", {torch.cuda.get_device_name(device)}" if device != "cpu" else ""
        trial = partial(try_out, device + name, partial(compute, device))
        yield from attempt(f"  a loss on {device}{name}", trial)


def with_jax() -> Lines:
    # It would take most of a GPU's memory, which others may be using.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    jax = import_module("jax")
    yield f"jax {jax.__version__}"
    giou_loss = import_module("boxloss.jax").giou_loss

    def compute(device: Any, **options: Any) -> Any:
        return giou_loss(*jax.device_put(jax.numpy.ones((2, 3, 4)), device), **options)

    for device in jax.local_devices():
        name = f"{device}, {device.device_kind}"
        trial = partial(try_out, name, partial(compute, device))
        yield from attempt(f"  a loss on {name}", trial)


def implementations() -> Lines:
    """Each device's, by operation, with a framework or without."""
    library = ctypes.CDLL(str(FOLDER / "libboxloss.so"))
    functions = library.boxloss_implementations, library.boxloss_cpu_capability
    for function in functions:
        function.restype = ctypes.c_char_p
    rows, capability = (function().decode() for function in functions)
    yield capability
    names: defaultdict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, *operations in map(str.split, rows.splitlines()):
        for operation in operations:
            names[name.partition("/")[0]][operation].append(name)
    for device, by_operation in names.items():
        yield f"implementations on {device}, the default first:"
        for operation, words in OPERATIONS.items():
            yield f"  {words}: {', '.join(by_operation[operation]) or '(none)'}"


def report() -> Lines:
    yield from attempt("boxloss", versions)
    yield from attempt("installed", installed)
    yield from attempt("boxloss.torch cannot be used", with_torch)
    yield from attempt("boxloss.jax cannot be used", with_jax)
    yield from attempt("libboxloss.so cannot be used", implementations)


def main() -> None:
    if isinstance(sys.stdout, io.TextIOWrapper):  # for words that the terminal has no letters for
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        for line in report():
            print(line, flush=True)  # what is loaded next may end the process
    except BrokenPipeError:  # as `head` leaves it; Python would flush once more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
