# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Shows what was measured side by side: as tables."""

from __future__ import annotations

from rich.table import Table

from .groups import Group, Row, digits, or_dash

# Their headings, patterns and units.
COUNTS = {
    "operators": ("operators", "{:.4g}", 1),
    "kernels": ("kernels", "{:.4g}", 1),
    "launches": ("launches", "{:.4g}", 1),
    "waits": ("waits", "{:.4g}", 1),
    "busy_microseconds": ("busy µs", "{:,.1f}", 1),
    "least_bytes": ("moved MiB", "{:,.3f}", 2**20),
    "peak_bytes": ("peak MiB", "{:,.3f}", 2**20),
}


def titled(group: Group) -> Table:
    """Without columns yet; the notes stand below."""
    return Table(
        title=group.measured,
        title_justify="left",
        caption_justify="left",
        caption="\n".join(f"{row.name}: {row.note}" for row in group.rows if row.note) or None,
    )


def table(group: Group, limit: str) -> Table:
    """Times, what was counted and, of what moves much memory, the share of a limit's bandwidth."""
    clocks = group.clocks
    counted = [name for name in COUNTS if any(name in row.counts for row in group.rows)]
    moves = any(group.bandwidth(row) for row in group.rows if row.seconds)
    shown = titled(group)
    shown.add_column("variant", no_wrap=True)
    # Each clock's ratio stands beside it: a variant that no graph can hold has no GPU time.
    for clock in clocks:
        shown.add_column(f"{clock} µs", justify="right", no_wrap=True)
        if len(group.rows) > 1:
            shown.add_column("ratio", justify="right", no_wrap=True)
    for heading in ("GB/s", f"of {limit}") if moves else ():
        shown.add_column(heading, justify="right")
    for name in counted:
        shown.add_column(COUNTS[name][0], justify="right")
    for row in group.rows:
        cells = [row.name]
        for clock in clocks:
            seconds = row.seconds.get(clock)
            cells.append("-" if seconds is None else digits(seconds * 1e6))
            if len(group.rows) > 1:
                cells.append(or_dash(group.ratio(row, [clock]), "{:.3g}"))
        if moves:
            bandwidth = group.bandwidth(row)
            cells.append(or_dash(bandwidth and bandwidth / 1e9, "{:.3g}"))
            cells.append(or_dash(group.share(row, limit), "{:.1%}"))
        shown.add_row(*cells, *(_count(row, name) for name in counted))
    return shown


def _count(row: Row, name: str) -> str:
    _, pattern, unit = COUNTS[name]
    value = row.counts.get(name)
    return or_dash(None if value is None else value / unit, pattern)
