# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The cost model, and where it does not hold, in words."""

from __future__ import annotations

from typing import Any

from ..common.bars import dtypes, number
from ..common.groups import BOTH, FORWARD
from .cases import LAYOUTS, RAGGED_PAIR, Row
from .findings import (
    bytes_of_box,
    chosen,
    judged,
    line_of,
    modelled,
    seconds,
    times_modelled,
)
from .ranks import PAIR
from .report import CLOCKS, layout_name
from .words import memory_of, time

HOLDS = 0.2  # a model that is off by no more needs no excuse


def model_words(found: dict[str, Any], clock: str) -> str:
    line = line_of(found["lines"], PAIR, BOTH, clock)
    assert line is not None
    return (
        "**The model** is `seconds = launch + bytes / rate`, by the least squares of relative "
        f"deviations. For {dtypes(PAIR)}, {BOTH}, {bytes_of_box(PAIR, BOTH)} bytes a pair, the "
        f"launch is {time(line.fixed)} and the rate {number(line.rate / 1e12)} TB/s "
        f"(R² {line.r_squared:.3f} of the logarithms, at most {line.worst:.0%} off)."
    )


def off_words(rows: list[Row], found: dict[str, Any], machine: dict[str, str], clock: str) -> str:
    dense = chosen(rows, sweep="pairs", variant="boxloss")
    words = [
        _furthest(dense, found, clock),
        *_cached(dense, found, machine),
        "By the wall clock the host comes first: [what a call costs it]"
        "(cuda.md#what-a-call-costs-the-host).",
    ]
    return " ".join(words)


def _furthest(dense: list[Row], found: dict[str, Any], clock: str) -> str:
    """With which two numbers of pairs; with one, if it holds for the second."""
    off: dict[int, tuple[float, Row]] = {}
    for row in judged(dense, found["lines"], clock):
        here = 1 / times_modelled(row, found["lines"], clock) - 1
        if row["boxes"] not in off or abs(here) > abs(off[row["boxes"]][0]):
            off[row["boxes"]] = here, row
    first, second = sorted(off.values(), key=lambda each: -abs(each[0]))[:2]
    places = [_place(*each) for each in (first, second) if each is first or abs(each[0]) > HOLDS]
    return f"By {CLOCKS[clock]} it is furthest off with {' and with '.join(places)}."


def _place(off: float, row: Row) -> str:
    more = "more" if off > 0 else "less"
    return (
        f"{row['boxes']:,} pairs ({dtypes(row['pair'])}, {row['measured']}: it says {abs(off):.0%} "
        f"{more} than was measured)"
    )


def _cached(dense: list[Row], found: dict[str, Any], machine: dict[str, str]) -> list[str]:
    """Whose bytes come faster, beside the launch, than the memory gives them."""
    memory = memory_of(machine)
    if memory is None:
        return []
    faster = {}
    for row in judged(dense, found["lines"], "gpu"):
        line = modelled(row, found["lines"], "gpu")
        assert line is not None
        moving = seconds(row, "gpu") - line.fixed
        # Of fewer bytes the launch is most, and what is beside it mostly noise.
        if row["bytes"] > line.balance and row["bytes"] > memory[1] * (1 + HOLDS) * moving > 0:
            faster[row["bytes"] / moving] = row
    if not faster:
        return []
    rate = max(faster)
    row = faster[rate]
    return [
        f"It knows nothing of caches, from which inputs of middle sizes come: those of "
        f"{row['boxes']:,} pairs ({dtypes(row['pair'])}, {row['measured']}) at "
        f"{number(rate / 1e12)} TB/s beside the launch, where the memory has {memory[1] / 1e12:g}."
    ]


def batch_words(rows: list[Row], found: dict[str, Any], clock: str) -> str:
    """How far the model holds for batches of images, which it was not fitted to."""
    points = [
        row
        for row in judged(rows, found["lines"], clock)
        if row["sweep"] != "pairs" and row["variant"] in LAYOUTS
    ]
    if not points:
        return ""
    kinds = dict.fromkeys((layout, each) for layout in LAYOUTS for each in (BOTH, FORWARD))
    worst = {
        (layout, each): max(
            chosen(points, variant=layout, measured=each),
            key=lambda row: times_modelled(row, found["lines"], clock),
        )
        for layout, each in kinds
    }
    times = {kind: times_modelled(row, found["lines"], clock) for kind, row in worst.items()}
    lists = ", ".join(
        f"{layout_name(layout)} {times[layout, BOTH]:.2f} and {times[layout, FORWARD]:.2f}"
        for layout in LAYOUTS
    )
    best, last = min(times, key=lambda kind: times[kind]), max(times, key=lambda kind: times[kind])
    words = (
        f"Batches of images ({dtypes(RAGGED_PAIR)}), which it was not fitted to, take up to so "
        f"many times what it says, {BOTH} and {FORWARD} alone: {lists}. It holds best "
        f"{_kind(best)}"
    )
    at = worst[last]
    if at["sweep"] != "images" or last[0] == "padded":
        return f"{words}, and worst {_kind(last)}."
    return (
        f"{words}, and worst {_kind(last)}, with {at['size']:,} images: an image costs time "
        "whatever its boxes."
    )


def _kind(kind: tuple[str, str]) -> str:
    return f"{layout_name(kind[0])}, {kind[1]}"
