# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Is a difference between paired trainings more than chance?

Written down before the first of these trainings ran. Judged is mAP50-95 at the end of training, by
the SEEDS alone. The two ways of a seed are a pair; d are the differences, boxloss less original.

- "different": a two-sided paired t-test gives p < LEVEL;
- "the same": it does not, and the interval that holds the mean of d by 1 - 2 LEVEL, 90 %, lies
  within MARGIN of 0 (two one-sided tests, Schuirmann 1987);
- "not known": neither.

MARGIN is some 7 % of RT-DETR-R18's mAP50-95, half as much again as its deviation between seeds
(0.012 of 0.287).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from scipy.stats import ttest_rel

SEEDS = range(10, 16)
LEVEL, MARGIN = 0.05, 0.02


def judged(found: Any) -> Iterator[str]:
    """Of a frame of one detector: a line for each way that has all SEEDS, as the original has."""
    ends = {name: rows.set_index("seed")["median"] for name, rows in found.groupby("variant")}
    originals = ends.pop("original", None)
    for name, ours in ends.items():
        if originals is not None and {*SEEDS} <= {*ours.index} & {*originals.index}:
            yield f"{name}: {verdict(ours[[*SEEDS]], originals[[*SEEDS]])}"


def verdict(ours: Sequence[float], originals: Sequence[float]) -> str:
    test = ttest_rel(ours, originals)
    low, high = test.confidence_interval(1 - 2 * LEVEL)
    if test.pvalue < LEVEL:
        word = "different"
    else:
        word = "the same" if low > -MARGIN and high < MARGIN else "not known"
    return f"{word}, {low:+.3f} to {high:+.3f}, p = {test.pvalue:.2f}"
