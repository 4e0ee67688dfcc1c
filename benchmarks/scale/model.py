# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What a call costs: something that is always paid, and bytes that have to be moved.

    seconds = fixed + bytes / rate

One GPU's fixed part is the launch. Several GPUs that add up numbers pay a latency and their links'
rate in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Line:
    fixed: float  # seconds
    per_byte: float  # seconds
    r_squared: float  # of the logarithms of the times
    worst: float  # the largest deviation, relative to what was measured

    def seconds(self, moved: float) -> float:
        return self.fixed + moved * self.per_byte

    def bytes_in(self, seconds: float) -> float:
        """That are moved in a time, the fixed part included."""
        spent = max(seconds - self.fixed, 0)
        return spent / self.per_byte if self.per_byte else math.inf

    @property
    def rate(self) -> float:
        """Bytes per second."""
        return 1 / self.per_byte if self.per_byte else math.inf

    @property
    def balance(self) -> float:
        """So many bytes cost as much as the fixed part: of fewer it dominates, of more they do."""
        return self.bytes_in(2 * self.fixed)


def fit(moved: Sequence[float], seconds: Sequence[float]) -> Line:
    """The least squares of relative deviations, neither part negative: a microsecond off ten
    counts as much as a millisecond off ten of them."""
    sizes, times = np.asarray(moved, float), np.asarray(seconds, float)
    if len(sizes) < 2 or len(sizes) != len(times):
        raise ValueError(f"{len(sizes)} sizes and {len(times)} times; allowed: 2 or more, of each")
    fixed, per_byte = _non_negative(1 / times, sizes / times)
    expected = fixed + per_byte * sizes
    off = np.log(times / expected)
    around = np.log(times) - np.log(times).mean()
    return Line(
        fixed,
        per_byte,
        1 - float((off**2).sum() / (around**2).sum()),
        float(np.abs(expected / times - 1).max()),
    )


def _non_negative(one: Numbers, other: Numbers) -> tuple[float, float]:
    """a, b >= 0 that bring a * one + b * other closest to 1."""
    a, b = np.linalg.lstsq(np.stack([one, other], axis=1), np.ones(len(one)), rcond=None)[0]
    if a < 0:
        return 0.0, float(other.sum() / (other**2).sum())
    if b < 0:
        return float(one.sum() / (one**2).sum()), 0.0
    return float(a), float(b)


def all_reduce_seconds(measured: Line, with_ranks: int, moved: float, ranks: int) -> float:
    """Extrapolated from what was measured `with_ranks`: a tree's latency grows like log2(ranks), a
    ring's traffic like (ranks - 1) / ranks, if all links are like those between these."""
    latency = measured.fixed * math.log2(ranks) / math.log2(with_ranks)
    traffic = (1 - 1 / ranks) / (1 - 1 / with_ranks)
    return latency + traffic * moved * measured.per_byte
