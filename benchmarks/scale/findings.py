# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What follows from the times: the cost model, and where launch, memory or collective dominates."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

from ..common.groups import BOTH, FORWARD
from .cases import EVEN, HEAVY_TAILED, LAYOUTS, RAGGED_PAIR, Row, bytes_of_pair
from .model import Line, all_reduce_seconds, fit
from .ranks import COUNT, LOSS, NORMALIZED, PAIR, STEP, gradient_of, step_with

CLUSTER = (2, 8, 64, 1024)  # GPUs
CLUSTER_BOXES = 10**5  # of each GPU: 1,024 images with a hundred
FEWEST_SIZES = 3  # that tell a line from two points


def bytes_of_box(pair: str, measured: str) -> int:
    forward, backward = bytes_of_pair(pair)
    return forward if measured == FORWARD else forward + backward


def seconds(row: Row, clock: str) -> float:
    median: float = row["microseconds"][clock]["median"]
    return median * 1e-6


def best_clock(rows: list[Row]) -> str:
    return "gpu" if any("gpu" in row["microseconds"] for row in rows) else "wall"


def chosen(rows: list[Row], **wanted: Any) -> list[Row]:
    return [row for row in rows if all(row.get(key) == each for key, each in wanted.items())]


def timed(rows: list[Row], clock: str) -> list[Row]:
    """Those by this clock: not every call fits into a graph."""
    return [row for row in rows if clock in row["microseconds"]]


def findings(report: dict[str, Any]) -> dict[str, Any]:
    rows = report.get("one", {}).get("rows", [])
    of_lines = lines(rows)
    found: dict[str, Any] = {
        "lines": of_lines,
        "ragged": ragged(rows, of_lines),
        "distributions": distributions(rows),
    }
    several = report.get("several", {"rows": [], "ranks": 0})
    whole = of_whole_sizes(several["rows"])
    if len({row["boxes"] for row in chosen(whole, part="step")}) > 1:  # or there is no line
        found["ranks"] = of_ranks(whole, several["ranks"])
    return found


def of_whole_sizes(rows: list[Row]) -> list[Row]:
    """Without the steps of a size that a run was cut short in."""
    steps = Counter(row["boxes"] for row in chosen(rows, part="step"))
    most = max(steps.values(), default=0)
    return [row for row in rows if row["part"] != "step" or steps[row["boxes"]] == most]


def lines(rows: list[Row]) -> list[Row]:
    """The cost model of boxloss on dense pairs, by dtypes, pass and clock."""
    found = []
    dense = chosen(rows, sweep="pairs", variant="boxloss")
    for pair in dict.fromkeys(row["pair"] for row in dense):
        for measured in (FORWARD, BOTH):
            points = chosen(dense, pair=pair, measured=measured)
            for clock in ("gpu", "wall"):
                on_it = timed(points, clock)
                if len(on_it) < FEWEST_SIZES:
                    continue
                line = fit([row["bytes"] for row in on_it], [seconds(row, clock) for row in on_it])
                found.append(
                    {
                        "pair": pair,
                        "measured": measured,
                        "clock": clock,
                        "line": asdict(line),
                        "balance_boxes": line.balance / bytes_of_box(pair, measured),
                    }
                )
    return found


def line_of(of_lines: list[Row], pair: str, measured: str, clock: str) -> Line | None:
    each = chosen(of_lines, pair=pair, measured=measured, clock=clock)
    return Line(**each[0]["line"]) if each else None


def modelled(row: Row, of_lines: list[Row], clock: str) -> Line | None:
    """What a row is judged by: dense pairs by their own line, batches by that of their dtypes."""
    return line_of(of_lines, row.get("pair", RAGGED_PAIR), row["measured"], clock)


def judged(rows: list[Row], of_lines: list[Row], clock: str) -> list[Row]:
    """Those that there is a line for: two sizes have none."""
    return [row for row in timed(rows, clock) if modelled(row, of_lines, clock)]


def times_modelled(row: Row, of_lines: list[Row], clock: str) -> float:
    """How many times as long as the model says, of a row that is judged."""
    line = modelled(row, of_lines, clock)
    assert line is not None
    return seconds(row, clock) / line.seconds(row["bytes"])


def ragged(rows: list[Row], of_lines: list[Row]) -> list[Row]:
    """How many times as long as the model says, which has not seen these batches."""
    found = []
    clock = best_clock(rows)
    for sweep in ("images", "slots", "distributions"):
        for variant in LAYOUTS:
            for measured in (FORWARD, BOTH):
                points = chosen(rows, sweep=sweep, variant=variant, measured=measured)
                times = [
                    times_modelled(row, of_lines, clock) for row in judged(points, of_lines, clock)
                ]
                if not times:
                    continue
                found.append(
                    {
                        "sweep": sweep,
                        "variant": variant,
                        "measured": measured,
                        "lowest": min(times),
                        "highest": max(times),
                    }
                )
    return found


def distributions(rows: list[Row]) -> list[Row]:
    """How many times as long the heavy-tailed one takes as the uniform one, with as many boxes."""
    found = []
    clock = best_clock(rows)
    drawn = timed(chosen(rows, sweep="distributions"), clock)
    for heavy in chosen(drawn, distribution=HEAVY_TAILED):
        same = {key: heavy[key] for key in ("mean", "variant", "measured")}
        if heavy["variant"] in LAYOUTS:
            for even in chosen(drawn, distribution=EVEN, **same):
                found.append(same | {"times": seconds(heavy, clock) / seconds(even, clock)})
    return found


def of_ranks(rows: list[Row], ranks: int) -> dict[str, Any]:
    collectives = chosen(rows, part="collective")
    collective = fit(
        [row["bytes"] for row in collectives], [seconds(row, "wall") for row in collectives]
    )
    parameters = [row["bytes"] // 4 for row in collectives if row["step"] != COUNT]
    steps = {(row["step"], row["boxes"]): row for row in chosen(rows, part="step")}
    shares = []
    off = []
    for boxes in dict.fromkeys(boxes for _, boxes in steps):
        times = {name: seconds(row, "wall") for (name, n), row in steps.items() if n == boxes}
        share = {
            "boxes": boxes,
            "normalizer": times[NORMALIZED] / times[LOSS] - 1,
            "count": (times[NORMALIZED] - times[LOSS]) / times[STEP],
        }
        for n in parameters:
            share[gradient_of(n)] = 1 - times[STEP] / times[step_with(n)]
            parts = times[STEP] + collective.seconds(4 * n)
            off.append(abs(parts / times[step_with(n)] - 1))
        shares.append(share)
    step_rows = chosen(rows, part="step", step=STEP)
    step = fit([row["bytes"] for row in step_rows], [seconds(row, "wall") for row in step_rows])
    of_box = bytes_of_box(PAIR, BOTH)
    equal = {gradient_of(n): step.bytes_in(collective.seconds(4 * n)) / of_box for n in parameters}
    return {
        "collective": asdict(collective),
        "step": asdict(step),
        "shares": shares,
        "parts_off": max(off),
        "boxes_like": equal,
        "cluster": [_predicted(step, collective, ranks, parameters, gpus) for gpus in CLUSTER],
    }


def _predicted(
    step: Line, collective: Line, measured: int, parameters: list[int], gpus: int
) -> Row:
    """Of CLUSTER_BOXES on each GPU; the step's line has the latency of the measured ranks in it."""
    count, before = (all_reduce_seconds(collective, measured, 4, n) for n in (gpus, measured))
    own = step.seconds(CLUSTER_BOXES * bytes_of_box(PAIR, BOTH))
    gradients = {
        gradient_of(n): all_reduce_seconds(collective, measured, 4 * n, gpus) for n in parameters
    }
    return {
        "gpus": gpus,
        "extrapolated": gpus != measured,
        "step": own + count - before,
        "count": count,
        "gradients": gradients,
    }
