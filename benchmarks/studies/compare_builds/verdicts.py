# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What the times of several processes of two builds say.

A large row, but for its host time, is bound by memory or arithmetic: the medians may be 1 % apart.
All others are launches and host code, whose time differs from process to process; there the slowest
of the old build's runs is the limit. The median of a build that is like the old one is above it by
chance, of seven runs each in one row of 29: the upper four of fourteen runs must all be new. So
what is not as it was is measured anew, and what those runs say counts: by chance one row in 800
remains. Half the old runs' spread as an allowance would do no better, and more than that would hide
what the median sees.

Where the old build's own runs are too far apart to see that, the row shows nothing: it is "noisy".
"""

from __future__ import annotations

import statistics
from typing import NamedTuple

WITHIN = 0.01  # of a large row: the medians, and the old build's runs
SPREAD = 0.5  # of another: the old build's runs; beside an H200 host times are 2 to 65 % apart


class Verdict(NamedTuple):
    word: str  # "same", "faster", "slower" or "noisy"
    ratio: float  # of the medians, new to old
    limit: float  # of that ratio

    @property
    def shows_it(self) -> bool:
        """That the new build is not slower."""
        return self.word in ("same", "faster")


def verdict(row: str, old: list[float], new: list[float]) -> Verdict:
    before, after = statistics.median(old), statistics.median(new)
    is_large = ", large, " in row and not row.endswith(", host")
    spread = (max(old) - min(old)) / before
    limit = max(max(old) / before, 1 + WITHIN if is_large else 1)
    ratio = after / before
    if ratio > limit:
        return Verdict("slower", ratio, limit)
    if spread > (WITHIN if is_large else SPREAD):
        return Verdict("noisy", ratio, limit)
    return Verdict("faster" if after < min(old) else "same", ratio, limit)
