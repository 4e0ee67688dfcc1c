# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Which layout of the true boxes is faster where, in words."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from typing import Any

from ..common.bars import dtypes
from ..common.groups import BOTH, FORWARD
from .cases import LAYOUTS, RAGGED_PAIR, Row
from .findings import chosen, seconds, timed
from .report import CLOCKS, layout_name
from .words import time

WORTH_A_WORD = 0.05  # of a time
PART_SLOTS = 256  # core/lanes/image_parts.hpp


def layout_words(
    rows: list[Row], settings: dict[str, Any], found: dict[str, Any], clock: str
) -> str:
    parts = [
        *_first_padded(chosen(rows, sweep="images"), settings["article"][1], clock),
        *_sparse(chosen(rows, sweep="images"), "images are many and few slots", "images", clock),
        *_sparse(chosen(rows, sweep="slots"), "slots are many and few of them", "slots", clock),
        *_crowded(chosen(rows, sweep="distributions"), settings["crowd"], clock),
        "Padded targets are read whole, with lengths or ragged only those that are there; the "
        "gradient is written for all slots in each layout.",
        _imbalance(found["distributions"]),
    ]
    return f"**Which layout?** ({dtypes(RAGGED_PAIR)}, {CLOCKS[clock]}.) {' '.join(parts)}".rstrip()


def _first_padded(rows: list[Row], slots: int, clock: str) -> list[str]:
    """Up to how many images of few boxes."""

    def times(size: int, each: str) -> dict[str, float]:
        return _by_layout(chosen(rows, size=size, measured=each), clock)

    sizes = dict.fromkeys(row["size"] for row in rows)
    first = list(takewhile(lambda size: _fastest(times(size, BOTH)) == "padded", sizes))
    if not first:
        return []
    behind = max(
        times(size, FORWARD)["padded"] - min(times(size, FORWARD).values()) for size in first
    )
    ahead = [sorted(times(size, BOTH).values()) for size in first]
    most = max(second - one for one, second, *_ in ahead)
    also = f"and forward at most {time(behind)} behind" if behind else "and forward"
    boxes = chosen(rows, size=first[-1])[0]["boxes"] / first[-1]
    return [
        f"Up to {first[-1]:,} images of {slots:,} slots, {boxes:.1f} of them valid, padded is "
        f"first {BOTH}, by up to {time(most)}, {also}."
    ]


def _sparse(rows: list[Row], where: str, what: str, clock: str) -> list[str]:
    """The largest of a sweep over images of few boxes, or over their slots."""
    size = max(row["size"] for row in rows)
    times = {
        each: _by_layout(chosen(rows, size=size, measured=each), clock) for each in (FORWARD, BOTH)
    }
    first = _fastest(times[BOTH])
    if first == "padded" or _fastest(times[FORWARD]) != first:
        return []
    passes = " and ".join(
        f"{time(each[first])} beside {time(each['padded'])} padded ({name})"
        for name, each in times.items()
    )
    win = "lengths win" if first == "lengths" else f"{layout_name(first)} wins"
    return [f"Where {where} valid, {win}: {size:,} {what} take {passes}."]


def _crowded(rows: list[Row], crowd: tuple[int, int], clock: str) -> list[str]:
    """Where padding is most of it all the same."""
    most = max(row["mean"] for row in rows)
    drawn = chosen(rows, mean=most, measured=BOTH)
    times = [
        _by_layout(chosen(drawn, distribution=name), clock)
        for name in dict.fromkeys(row["distribution"] for row in drawn)
    ]
    if any(_fastest(each) != "padded" for each in times):
        return []
    padded = [each["padded"] for each in times]
    others = [value for each in times for name, value in each.items() if name != "padded"]
    return [
        f"With {most:g} boxes in {crowd[1]:,} slots padded is first although "
        f"{1 - most / crowd[1]:.0%} of it is padding: {_range(padded)} {BOTH} beside "
        f"{_range(others)}, presumably because with lengths or ragged a warp walks an image's "
        "boxes one group after the other (not measured)."
    ]


def _imbalance(rows: list[Row]) -> str:
    if not rows:
        return ""
    times = [row["times"] for row in rows]
    words = (
        "As many boxes, heavy-tailed among the images instead of uniform, take "
        f"{min(times):.2f} to {max(times):.2f} times as long: "
    )
    why = f"a warp takes at most {PART_SLOTS} slots of an image, "
    if max(times) < 1 + WORTH_A_WORD:
        return f"{words}{why}so a crowded one holds up nobody."
    return f"{words}{why}and presumably the one with the most boxes ends last."


def _by_layout(rows: list[Row], clock: str) -> dict[str, float]:
    return {
        row["variant"]: seconds(row, clock)
        for row in timed(rows, clock)
        if row["variant"] in LAYOUTS
    }


def _fastest(times: dict[str, float]) -> str:
    return min(times, key=lambda layout: times[layout])


def _range(values: Iterable[float]) -> str:
    low, *_, high = sorted(values)
    return f"{time(low).rpartition(' ')[0]} to {time(high)}"
