# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Pairs of every kind that a formula treats in its own way, in xyxy."""

import torch
from torch import Tensor

Box = list[float]

# Small integers: sides, areas and centres are exact, so that what ties here ties in any dtype.
TIED: list[tuple[Box, Box]] = [
    ([0, 0, 4, 2], [0, 0, 4, 2]),  # equal
    ([0, 0, 4, 4], [0, 1, 6, 3]),  # one edge in common
    ([0, 0, 4, 4], [0, 0, 6, 6]),  # two
    ([2, 2, 6, 4], [0, 1, 8, 5]),  # one centre and shape
    ([0, 2, 8, 4], [0, 0, 8, 6]),  # one centre and width
    ([1, 2, 3, 7], [0, 0, 8, 8]),  # nested
    ([0, 0, 2, 2], [2, 0, 4, 2]),  # touching in x
    ([0, 0, 2, 2], [2, 2, 4, 4]),  # touching in a corner
    ([0, 0, 2, 4], [5, 1, 7, 3]),  # apart in x
]
WITHOUT_AREA: list[tuple[Box, Box]] = [
    ([0, 0, 4, 0], [1, -1, 3, 5]),  # flat
    ([1, -1, 3, 5], [0, 0, 4, 0]),  # a flat target
    ([0, 2, 4, 2], [2, 0, 2, 4]),  # flat and thin
    ([0, 3, 4, 3], [0, 3, 4, 3]),  # both flat, equal
    ([1, 1, 1, 1], [0, 0, 4, 4]),  # a point
    ([1, 1, 1, 1], [3, 2, 3, 2]),  # two points
    ([1, 1, 1, 1], [1, 1, 1, 1]),  # the same point
]
INVERTED: list[tuple[Box, Box]] = [
    ([6, 0, 2, 4], [1, 1, 9, 3]),  # in x
    ([0, 0, 7, 3], [1, 6, 5, 2]),  # a target in y
    ([6, 5, 2, 1], [7, 6, 2, 3]),  # both in both
    ([6, 5, 2, 1], [6, 5, 2, 1]),  # equal
    ([0, 0, 4, 2], [4, 2, 0, 0]),  # mirror images
    ([6, 3, 2, 3], [1, 1, 5, 4]),  # and without height
]


def pairs_of_every_kind(is_without_area: bool = True) -> tuple[Tensor, Tensor]:
    """pred and target in double; or of those kinds alone that have a loss when eps is 0."""
    pairs = TIED + WITHOUT_AREA + INVERTED if is_without_area else TIED[:6]
    pred, target = torch.tensor(pairs).double().unbind(1)
    return pred, target
