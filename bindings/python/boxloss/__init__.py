# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Fused box-regression losses on any device. For PyTorch: ``import boxloss.torch``."""

from pathlib import Path as _Path

from ._version import __version__ as __version__

cmake_prefix_path = str(_Path(__file__).parent)
"""What CMAKE_PREFIX_PATH needs for find_package(boxloss), as torch.utils.cmake_prefix_path."""
