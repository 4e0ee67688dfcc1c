# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Draws the dense pairs: time for a box over the bytes that it needs, and what memory allows."""

from __future__ import annotations

from pathlib import Path

from ..common.groups import Group
from ..common.output import BLUE, DARK, GREY, PALE, pyplot, quiet_axes, save_figure
from .variants import IN_NEW, SUMS

MARKERS = {"forward": "o", "forward + backward": "s"}
LABELS = {"forward": (0, -13), "forward + backward": (0, 7)}  # where they stand, in points
COLOURS = {"boxloss": BLUE, "torch.compile": GREY}


def plot(groups: list[Group], machine: dict[str, str], path: Path) -> None:
    """Of the most boxes, which are the likeliest to be in no cache."""
    most = max(group.boxes for group in groups)
    dense = [group for group in groups if group.kind == "dense" and group.boxes == most]
    figure, panel = pyplot().subplots(figsize=(7, 4.6), layout="constrained")
    for name, colour in COLOURS.items():
        for measured, marker in MARKERS.items():
            points = _points(dense, name, measured)
            if points[0]:
                panel.plot(*points, marker, color=colour, label=f"{name}, {measured}")
            if name == "boxloss":
                pairs = [group.pair for group in dense if group.measured == measured]
                for pair, x, y in zip(pairs, *points, strict=True):
                    panel.annotate(
                        pair,
                        (x, y),
                        LABELS[measured],
                        textcoords="offset points",
                        ha="center",
                        fontsize=7,
                        color=DARK,
                    )
    for limit, measured, style, label in (
        (SUMS, "forward", "-", "as many bytes summed"),
        (IN_NEW, "forward + backward", ":", "summed, summed again, and zeros made"),
    ):
        x, y = max(zip(*_points(dense, limit, measured), strict=True))
        panel.axline((0, 0), (x, y), color=DARK, linestyle=style, linewidth=1, label=label)
    panel.set_xlim(left=0)
    panel.set_ylim(bottom=0)
    panel.grid(color=PALE, linewidth=0.6)
    panel.set_xlabel("bytes that a box needs at least", fontsize=9, color=DARK)
    panel.set_ylabel("wall time for a box, ns", fontsize=9, color=DARK)
    quiet_axes(panel)
    panel.legend(fontsize=7, frameon=False)
    title = f"GIoU of {most:,} pairs, torch {machine['torch']}\n{machine['cpu']}"
    figure.suptitle(title, fontsize=10, x=0.005, ha="left")
    save_figure(figure, path)


def _points(groups: list[Group], name: str, measured: str) -> tuple[list[float], list[float]]:
    """Bytes and nanoseconds for a box, of each dtype pair."""
    found = [
        (group, row)
        for group in groups
        if group.measured == measured and (row := group.row(name)) and group.bytes
    ]
    return (
        [(group.bytes or 0) / group.boxes for group, _ in found],
        [row.seconds[group.clock(row)] / group.boxes * 1e9 for group, row in found],
    )
