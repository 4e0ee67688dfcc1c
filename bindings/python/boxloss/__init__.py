# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Fused matching and box-regression losses for object detectors.

For PyTorch: ``import boxloss.torch``, for JAX ``import boxloss.jax``.
"""

import typing as _typing
from pathlib import Path as _Path

from ._backends import load_backend as load_backend
from ._version import __version__ as __version__

cmake_prefix_path = str(_Path(__file__).parent)
"""What CMAKE_PREFIX_PATH needs for find_package(boxloss), as torch.utils.cmake_prefix_path."""

if not _typing.TYPE_CHECKING:  # spelled as type checkers know it, to which every name would exist

    def __getattr__(name: str) -> None:
        # Its names are read, not imported: nobody gets torch who did not ask for it. An ImportError
        # even for getattr, since `from boxloss import` hides the words of an AttributeError.
        binding = _Path(__file__).parent / "torch" / "__init__.py"
        if binding.exists() and f'    "{name}",\n' in binding.read_text():
            raise ImportError(f"{name} is for PyTorch: from boxloss.torch import {name}")
        raise AttributeError(f"module 'boxloss' has no attribute {name!r}")
