# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Shows what the loss benchmark measured: as tables."""

from __future__ import annotations

from rich.table import Table

from ..common.groups import LARGE, Group, Row, digits, or_dash
from ..common.report import titled
from .peers import COPY, EMPTY, SUM


def table(group: Group) -> Table:
    clocks = group.clocks
    baseline = group.rows[0].name
    shown = titled(group)
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
        times = (digits(row.seconds[c] * 1e6) if c in row.seconds else "-" for c in clocks)
        cells = [row.name, *times, or_dash(group.ratio(row), "{:.3g}")]
        if large:
            bandwidth = None if row.name == EMPTY else group.bandwidth(row)
            cells.append(or_dash(bandwidth and bandwidth / 1e12, "{:.3g}"))
            for limit in shares:
                share = None if bandwidth is None else group.share(row, limit)
                cells.append(or_dash(share, "{:.1%}"))
        shown.add_row(*cells, end_section=_last_peer(group, row))
    return shown


def _last_peer(group: Group, row: Row) -> bool:
    peers = [each for each in group.rows if not each.limit]
    return row is peers[-1] and len(peers) < len(group.rows)
