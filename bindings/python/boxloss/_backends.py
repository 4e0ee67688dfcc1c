# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Backends that are not in this package."""

import ctypes
from os import PathLike
from pathlib import Path

from ._libraries import FOLDER


def load_backend(path: str | PathLike[str]) -> None:
    """Loads a shared library that brings implementations, for this process.

    They are then among ``boxloss.torch.implementations()``. Tensors on their device are computed
    there, by the one with the highest priority. How such a library is made:
    docs/backends.md in boxloss' folder.

    Raises:
        FileNotFoundError: there is no such file.
        ImportError: it is no library, exports no backend, was compiled for another version of
            boxloss' backends, lacks a symbol, or brings a name that there is already. Nothing of
            it is then registered.
    """
    file = Path(path).resolve(strict=True)
    load = ctypes.CDLL(str(FOLDER / "libboxloss.so")).boxloss_load_backend
    load.argtypes = [ctypes.c_char_p]
    load.restype = ctypes.c_char_p
    problem = load(bytes(file))
    if problem is not None:
        raise ImportError(problem.decode(errors="replace"))
