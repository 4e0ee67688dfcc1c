# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What a call costs: something that is always paid, and bytes that have to be moved.

    microseconds = fixed + bytes / rate

One GPU's fixed part is the launch. Several GPUs that add up numbers pay a latency and their links'
rate in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ...runner.results import Row
from ...runner.run import BOTH, FORWARD, Run
from . import DTYPES, bytes_of_box
from .ranks import COUNT, PAIR, STEP, gradients_of

CLUSTER = (2, 8, 64, 1024)  # GPUs
CLUSTER_BOXES = 10**5  # of each GPU: 1,024 images with a hundred
FEWEST_SIZES = 3  # that tell a line from two points


@dataclass(frozen=True)
class Line:
    fixed: float  # microseconds
    per_byte: float  # microseconds
    worst: float = 0  # the largest deviation, relative to what was measured

    def microseconds(self, moved: float) -> float:
        return self.fixed + moved * self.per_byte


def fit(moved: Sequence[float], microseconds: Sequence[float]) -> Line:
    """The least squares of relative deviations, neither part negative: a microsecond off ten
    counts as much as a millisecond off ten of them."""
    sizes, times = np.asarray(moved, float), np.asarray(microseconds, float)
    parts = np.stack([1 / times, sizes / times])
    best, *_ = np.linalg.lstsq(parts.T, np.ones(len(times)), rcond=None)
    for negative in np.flatnonzero(best < 0)[:1]:  # the best without it
        other = parts[1 - negative]
        best[negative], best[1 - negative] = 0, other.sum() / (other**2).sum()
    expected = best[0] + best[1] * sizes
    return Line(float(best[0]), float(best[1]), float(np.abs(expected / times - 1).max()))


def line_of(rows: Iterable[Row]) -> Line | None:
    points = [(row["bytes"], row["median"]) for row in rows]
    return fit(*zip(*points, strict=True)) if len(points) >= FEWEST_SIZES else None


def record_lines(run: Run) -> None:
    """Of boxloss on dense pairs, by dtypes, pass and clock."""
    for dtypes in DTYPES:
        for measured in (FORWARD, BOTH):
            for clock in ("gpu", "wall"):
                shared = {"dtypes": dtypes, "pass": measured}
                wanted = {"sweep": "pairs", "variant": "boxloss", "quantity": clock, **shared}
                line = line_of(run.results.having(wanted))
                if line:
                    about = {"sweep": "model", **shared, "clock": clock}
                    record_line(run, about | {"variant": "boxloss"}, line)
                    if line.per_byte:  # so many boxes cost as much as the launch
                        balance = line.fixed / line.per_byte / bytes_of_box(dtypes)[measured]
                        run.record(about | {"variant": "boxloss"}, "balance", "pairs", balance)
                    run.show(about)


def record_line(run: Run, about: Row, line: Line) -> None:
    run.record(about, "fixed", "µs", line.fixed)
    if line.per_byte:  # JSON has no infinity
        run.record(about, "rate", "TB/s", 1e-6 / line.per_byte)
    run.record(about, "worst", "", line.worst)


def record_cluster(run: Run) -> None:
    """Extrapolated from the measured ranks."""
    ranks = run.options.gpus
    here = {"ranks": ranks, "quantity": "wall"}
    collectives = list(run.results.having({"sweep": "all-reduce", **here}))
    collective = line_of(collectives)
    step = line_of(run.results.having({"sweep": "ranks", "variant": STEP, **here}))
    if collective is None or step is None:
        return
    model = {"sweep": "model", "ranks": ranks}
    record_line(run, model | {"variant": "all-reduce"}, collective)
    record_line(run, model | {"variant": STEP}, step)
    run.show(model)
    own = step.microseconds(CLUSTER_BOXES * bytes_of_box(PAIR)[BOTH])
    for gpus in CLUSTER:
        about = {"sweep": "cluster", "gpus": gpus}
        count, before = (all_reduce_microseconds(collective, ranks, 4, n) for n in (gpus, ranks))
        # The line of the step has the count of the measured ranks in it.
        run.record(about | {"variant": STEP}, "modelled", "µs", own + count - before)
        run.record(about | {"variant": COUNT}, "modelled", "µs", count)
        for row in collectives:
            if row["variant"] != COUNT:
                time = all_reduce_microseconds(collective, ranks, row["bytes"], gpus)
                name = gradients_of(row["bytes"] // 4)
                run.record(about | {"variant": name}, "modelled", "µs", time)
        run.show(about)


def all_reduce_microseconds(measured: Line, with_ranks: int, moved: float, ranks: int) -> float:
    """Extrapolated from what was measured `with_ranks`: a tree's latency grows like log2(ranks), a
    ring's traffic like (ranks - 1) / ranks, if all links are like those between these."""
    latency = measured.fixed * math.log2(ranks) / math.log2(with_ranks)
    traffic = (1 - 1 / ranks) / (1 - 1 / with_ranks)
    return latency + traffic * moved * measured.per_byte
