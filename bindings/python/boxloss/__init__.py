# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Fused box-regression losses on any device. For PyTorch: ``import boxloss.torch``."""

from ._version import __version__ as __version__
