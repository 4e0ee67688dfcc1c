# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Fused box-regression losses on any device. For PyTorch: ``import boxloss.torch``."""

__version__ = "0.1.0"
