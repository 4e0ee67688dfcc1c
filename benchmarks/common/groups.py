# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Times that were measured side by side, their ratios, and how they are written as JSON."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from .spread import summary

PASSES = FORWARD, BOTH = ("forward", "forward + backward")
CLOCKS = ("gpu", "stream", "wall", "host")  # the first that a row has is the one it is judged by
CLOCK_WORDS = {"gpu": "GPU time", "stream": "wall time in a stream", "wall": "wall time"}
# Below this many bytes a launch, not the memory, decides.
LARGE = 2**23


@dataclass(frozen=True)
class Row:
    """One peer or limit in one pass over one case."""

    name: str
    seconds: dict[str, float]  # by clock; the clocks that apply
    note: str = ""
    limit: bool = False  # of the hardware, no peer
    counts: dict[str, float] = field(default_factory=dict)  # per call, where they are of interest
    # By clock, the quartiles around the median, where they are of interest.
    spread: dict[str, tuple[float, float]] = field(default_factory=dict)


def timed_rows(
    clocks: Mapping[str, Mapping[str, float]],
    notes: Mapping[str, str] = MappingProxyType({}),
    limits: Collection[str] = (),
) -> list[Row]:
    """From each clock's times by name, of which the first clock has all names."""
    names, *_ = clocks.values()
    return [
        Row(
            name,
            {clock: times[name] for clock, times in clocks.items() if name in times},
            notes.get(name, ""),
            name in limits,
        )
        for name in names
    ]


def sampled_rows(
    clocks: Mapping[str, Mapping[str, Sequence[float]]],
    notes: Mapping[str, str] = MappingProxyType({}),
) -> list[Row]:
    """As `timed_rows`, from each clock's samples by name: medians with their quartiles."""
    rows = []
    for name in next(iter(clocks.values())):
        found = {c: summary(samples[name]) for c, samples in clocks.items() if name in samples}
        medians = {clock: each["median"] for clock, each in found.items()}
        spread = {
            clock: (each["lower_quartile"], each["upper_quartile"]) for clock, each in found.items()
        }
        rows.append(Row(name, medians, notes.get(name, ""), spread=spread))
    return rows


@dataclass(frozen=True)
class Group:
    """All that was measured side by side; the first row is what ratios are taken to."""

    case: str
    kind: str
    pair: str
    boxes: int
    measured: str  # of PASSES
    bytes: int | None  # the least that must be moved, where that is of interest
    rows: list[Row]

    def row(self, name: str) -> Row | None:
        return next((row for row in self.rows if row.name == name), None)

    @property
    def clocks(self) -> list[str]:
        """Those that any row has."""
        return [clock for clock in CLOCKS if any(clock in row.seconds for row in self.rows)]

    def clock(self, row: Row) -> str:
        return next(clock for clock in CLOCKS if clock in row.seconds)

    def ratio(self, row: Row, clocks: Sequence[str] = CLOCKS) -> float | None:
        """How many times the first row's time, by the best clock that both have."""
        for clock in clocks:
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
                        "limit": row.limit,
                        "microseconds": {c: s * 1e6 for c, s in row.seconds.items()},
                        "times_first": group.ratio(row),
                        "note": row.note,
                        **({"counts": row.counts} if row.counts else {}),
                        **({"spread": _scaled(row.spread, 1e6)} if row.spread else {}),
                    }
                    for row in group.rows
                ],
            }
            for group in groups
        ],
    }


def groups_in(document: Mapping[str, Any]) -> list[Group]:
    """What `document` wrote."""
    return [
        Group(
            group["case"],
            group["kind"],
            group["dtypes"],
            group["boxes"],
            group["measured"],
            group["bytes"],
            [
                Row(
                    row["name"],
                    {clock: each * 1e-6 for clock, each in row["microseconds"].items()},
                    row["note"],
                    row["limit"],
                    row.get("counts", {}),
                    _scaled(row.get("spread", {}), 1e-6),
                )
                for row in group["rows"]
            ],
        )
        for group in document["groups"]
    ]


def _scaled(spread: Mapping[str, Sequence[float]], factor: float) -> dict[str, tuple[float, float]]:
    return {clock: (low * factor, high * factor) for clock, (low, high) in spread.items()}


def pairs_of(groups: Iterable[Group]) -> list[str]:
    """The pairs of dtypes, each once, in the order of the groups."""
    return list(dict.fromkeys(group.pair for group in groups))


def or_dash(value: float | None, pattern: str) -> str:
    return "-" if value is None else pattern.format(value)


def digits(microseconds: float) -> str:
    decimals = 2 if microseconds < 10 else 1 if microseconds < 1000 else 0
    return f"{microseconds:,.{decimals}f}"
