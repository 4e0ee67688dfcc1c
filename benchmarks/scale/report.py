# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Shows what was found, as tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from rich.table import Table

from ..common.groups import BOTH, FORWARD, digits
from .findings import best_clock, chosen, seconds, timed
from .model import Line

CLOCKS = {"gpu": "GPU time", "wall": "wall time", "stream": "time in a stream"}
SWEEPS = {
    "images": "images of a batch",
    "slots": "slots of an image",
    "distributions": "boxes per image",
}


def layout_name(layout: str) -> str:
    """As readers know it."""
    return "ragged" if layout == "offsets" else layout


def tables(report: dict[str, Any]) -> Iterator[Table]:
    rows = report.get("one", {}).get("rows", [])
    if rows:
        yield _dense(rows)
        for sweep, title in SWEEPS.items():
            yield _ragged(chosen(rows, sweep=sweep), title)
        yield _lines(report["findings"]["lines"])
    if "several" in report:
        yield _several(report["several"])


def _table(title: str, *columns: str) -> Table:
    shown = Table(title=title, title_justify="left")
    for column in columns:
        shown.add_column(column, justify="right", no_wrap=True)
    return shown


def _cell(row: dict[str, Any] | None, clock: str) -> str:
    """Median, and where 80 % of the samples are."""
    if row is None or clock not in row["microseconds"]:
        return "-"
    each = row["microseconds"][clock]
    return f"{digits(each['median'])} [{digits(each['p10'])}, {digits(each['p90'])}]"


def _median(row: dict[str, Any] | None, clock: str) -> str:
    return _cell(row, clock).partition(" ")[0]


def _first(rows: Iterable[dict[str, Any]]) -> dict[str, Any] | None:
    return next(iter(rows), None)


def _dense(rows: list[dict[str, Any]]) -> Table:
    clock = best_clock(rows)
    names = (FORWARD, BOTH)
    shown = _table(
        f"dense pairs, {CLOCKS[clock]}, µs [80 % of the samples]",
        *("pairs", "dtypes", *names, f"{BOTH}, wall", "GB/s", "eager / boxloss"),
    )
    for ours in timed(chosen(rows, sweep="pairs", variant="boxloss", measured=BOTH), clock):
        where = {"sweep": "pairs", "pair": ours["pair"], "size": ours["size"]}
        passes = [_first(chosen(rows, variant="boxloss", measured=n, **where)) for n in names]
        eager = _first(timed(chosen(rows, variant="eager", measured=BOTH, **where), clock))
        ratio = seconds(eager, clock) / seconds(ours, clock) if eager else math.nan
        shown.add_row(
            f"{ours['boxes']:,}",
            ours["pair"],
            *(_cell(row, clock) for row in passes),
            _cell(ours, "wall"),
            f"{ours['bytes'] / seconds(ours, clock) / 1e9:,.3g}",
            f"{ratio:.3g}" if eager else "-",
        )
    return shown


def _ragged(rows: list[dict[str, Any]], title: str) -> Table:
    clock = best_clock(rows)
    variants = list(dict.fromkeys(row["variant"] for row in rows))
    shown = _table(
        f"{title}: {CLOCKS[clock]}, µs",
        *(title, "boxes", "most", "pass", *variants),
    )
    points = {(point_name(row), row["measured"]): row for row in rows}
    for (point, measured), row in points.items():
        same = [each for each in rows if point_name(each) == point and each["measured"] == measured]
        cells = (_median(_first(chosen(same, variant=name)), clock) for name in variants)
        shown.add_row(point, f"{row['boxes']:,}", f"{row['longest']:,}", measured, *cells)
    return shown


def point_name(row: dict[str, Any]) -> str:
    if "size" in row:
        return f"{row['size']:,}"
    return f"{row['distribution']}, mean {row['mean']:g}"


def _lines(found: list[dict[str, Any]]) -> Table:
    shown = _table(
        "seconds = launch + bytes / rate, boxloss on dense pairs",
        *("dtypes", "pass", "clock", "launch, µs", "GB/s", "R²", "worst", "equal at boxes"),
    )
    for each in found:
        line = Line(**each["line"])
        shown.add_row(
            each["pair"],
            each["measured"],
            CLOCKS[each["clock"]],
            digits(line.fixed * 1e6),
            f"{line.rate / 1e9:,.0f}",
            f"{line.r_squared:.4f}",
            f"{line.worst:.0%}",
            f"{each['balance_boxes']:,.0f}",
        )
    return shown


def _several(part: dict[str, Any]) -> Table:
    shown = _table(
        f"{part['ranks']} ranks, {part['backend']}, µs [80 % of the samples]",
        *("boxes of each", "step", CLOCKS["wall"], CLOCKS["stream"]),
    )
    for row in part["rows"]:
        boxes = f"{row['boxes']:,}" if "boxes" in row else "-"
        shown.add_row(boxes, row["step"], _cell(row, "wall"), _cell(row, "stream"))
    return shown
