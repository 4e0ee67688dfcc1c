# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Shows what the loss benchmark measured: as tables and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rich.table import Table

from .peers import COPY, EMPTY, LIMITS, SUM

CLOCKS = ("gpu", "wall", "host")  # the first that a row has is the one it is judged by
# Below this many bytes a launch, not the memory, decides.
LARGE = 2**23


@dataclass(frozen=True)
class Row:
    """One peer or limit in one pass over one case."""

    name: str
    seconds: dict[str, float]  # by clock; the clocks that apply
    note: str = ""


@dataclass(frozen=True)
class Group:
    """All that was measured side by side; the first row is what ratios are taken to."""

    case: str
    kind: str
    pair: str
    boxes: int
    measured: str  # "forward", "forward + backward"
    bytes: int | None  # the least that must be moved, where that is of interest
    rows: list[Row]

    def row(self, name: str) -> Row | None:
        return next((row for row in self.rows if row.name == name), None)

    def clock(self, row: Row) -> str:
        return next(clock for clock in CLOCKS if clock in row.seconds)

    def ratio(self, row: Row) -> float | None:
        """How many times the first row's time, by the best clock that both have."""
        for clock in CLOCKS:
            if clock in row.seconds and clock in self.rows[0].seconds:
                return row.seconds[clock] / self.rows[0].seconds[clock]
        return None

    def bandwidth(self, row: Row) -> float | None:
        """Bytes per second, of these bytes whether or not the peer moves more."""
        if self.bytes is None or self.bytes < LARGE:
            return None
        return self.bytes / row.seconds[self.clock(row)]

    def share(self, row: Row, limit: str) -> float | None:
        """Of a limit's bandwidth."""
        bandwidth, reached = self.bandwidth(row), self.row(limit)
        if bandwidth is None or reached is None:
            return None
        best = self.bandwidth(reached)
        return None if best is None else bandwidth / best


def table(group: Group) -> Table:
    clocks = [clock for clock in CLOCKS if any(clock in row.seconds for row in group.rows)]
    baseline = group.rows[0].name
    shown = Table(
        title=group.measured,
        title_justify="left",
        caption_justify="left",
        caption="\n".join(f"{row.name}: {row.note}" for row in group.rows if row.note) or None,
    )
    shown.add_column("peer", no_wrap=True)
    for clock in clocks:
        shown.add_column(f"{clock} µs", justify="right", no_wrap=True)
    shown.add_column(f"x {baseline}", justify="right")
    large = group.bytes is not None and group.bytes >= LARGE
    shares = [limit for limit in (COPY, SUM) if large and group.row(limit)]
    if large:
        shown.add_column("TB/s", justify="right")
        for limit in shares:
            shown.add_column(f"of {limit}", justify="right")
    for row in group.rows:
        times = (_digits(row.seconds[c] * 1e6) if c in row.seconds else "-" for c in clocks)
        cells = [row.name, *times, _or_dash(group.ratio(row), "{:.3g}")]
        if large:
            bandwidth = None if row.name == EMPTY else group.bandwidth(row)
            cells.append(_or_dash(bandwidth and bandwidth / 1e12, "{:.3g}"))
            for limit in shares:
                share = None if bandwidth is None else group.share(row, limit)
                cells.append(_or_dash(share, "{:.1%}"))
        shown.add_row(*cells, end_section=_last_peer(group, row))
    return shown


def document(
    command: str, machine: dict[str, str], skipped: dict[str, str], groups: list[Group]
) -> dict[str, Any]:
    return {
        "command": command,
        "machine": machine,
        "skipped": skipped,
        "groups": [
            {
                "case": group.case,
                "kind": group.kind,
                "dtypes": group.pair,
                "boxes": group.boxes,
                "measured": group.measured,
                "bytes": group.bytes,
                "rows": [
                    {
                        "name": row.name,
                        "limit": row.name in LIMITS,
                        "microseconds": {c: s * 1e6 for c, s in row.seconds.items()},
                        "times_first": group.ratio(row),
                        "note": row.note,
                    }
                    for row in group.rows
                ],
            }
            for group in groups
        ],
    }


def _last_peer(group: Group, row: Row) -> bool:
    peers = [each for each in group.rows if each.name not in LIMITS]
    return row is peers[-1] and len(peers) < len(group.rows)


def _or_dash(value: float | None, pattern: str) -> str:
    return "-" if value is None else pattern.format(value)


def _digits(microseconds: float) -> str:
    decimals = 2 if microseconds < 10 else 1 if microseconds < 1000 else 0
    return f"{microseconds:,.{decimals}f}"
