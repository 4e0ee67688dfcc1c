# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""How far a correct loss may be from the eager formula in fp64, and the error of a wrong one."""

from __future__ import annotations

# Roundings, counted along the formula for a well-ordered prediction and a target of one pixel or
# more. A difference of corners has 1 (corners are exact in the dtype that is computed in); an area
# 3; the union 8 of its own size, for either area is at most the union; the enclosing area 3; a
# quotient those of both sides and its own; then come three operations on at most 2: under 32.
# The gradient of 2 - I/U - U/C is a sum of terms of at most 5 side/U together, because I <= U <= C
# and `side` bounds every derivative of an area; none has more than 24 roundings: under 128 side/U.
LOSS_ROUNDINGS = 32
GRADIENT_ROUNDINGS = 128


class DisagreementError(Exception):
    """A loss is wrong."""
