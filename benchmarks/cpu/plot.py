# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Draws the dense pairs: the time for a pair, beside what the memory allows."""

from __future__ import annotations

from pathlib import Path

from ..common.bars import HEIGHT, bars, dtypes
from ..common.groups import BOTH, FORWARD, Group, pairs_of
from ..common.output import pyplot, save_figure, title_figure, where
from .variants import IN_NEW, SUMS

COLUMNS = {FORWARD: SUMS, BOTH: IN_NEW}
SHOWN = ("boxloss", "torch.compile")
LIMITS = {SUMS: "as many bytes summed", IN_NEW: "summed twice, zeros made"}


def plot(groups: list[Group], machine: dict[str, str], path: Path) -> None:
    """Of the most boxes, which are the likeliest to be in no cache."""
    most = max(group.boxes for group in groups)
    dense = [group for group in groups if group.kind == "dense" and group.boxes == most]
    pairs = pairs_of(dense)
    figure, panels = pyplot().subplots(
        len(pairs),
        len(COLUMNS),
        squeeze=False,
        figsize=(10, 0.6 + len(pairs) * (0.75 + 3 * HEIGHT)),
        layout="constrained",
    )
    for row, pair in zip(panels, pairs, strict=True):
        for panel, (measured, limit) in zip(row, COLUMNS.items(), strict=True):
            (group,) = (each for each in dense if (each.pair, each.measured) == (pair, measured))
            rows = [row for name in (*SHOWN, limit) if (row := group.row(name))]
            times = {
                LIMITS.get(row.name, row.name): row.seconds[group.clock(row)] / group.boxes * 1e9
                for row in rows
            }
            bars(panel, times, "wall time for a pair, ns", LIMITS.values())
            title = f"{dtypes(pair)}, {measured}: {(group.bytes or 0) // group.boxes} bytes"
            panel.set_title(title, fontsize=9, loc="left")
    title = f"GIoU of {most:,} pairs, and the bytes that a pair needs at least"
    title_figure(figure, f"{title}\n{where(machine)}")
    save_figure(figure, path)
