# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
# CMake writes the module, from its own version.
__version__: str
