# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Memory of the host that nothing wrote is no zero: an output that was forgotten is seen."""

import ctypes

_M_PERTURB = -6  # of malloc.h


def poison_new_memory(byte: int = 0x5A) -> None:
    """What malloc gives from now on is filled with it: 1.5e16 as a float32."""
    ctypes.CDLL(None).mallopt(_M_PERTURB, ~byte & 0xFF)
