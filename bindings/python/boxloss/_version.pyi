# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
# CMake writes the module, from its own version and options.
__version__: str
BACKENDS: str  # a list as CMake writes it, "cpu;cuda"
CUDA: str  # the toolkit's version, and what it compiled for; empty without it
CUDA_ARCHITECTURES: str
