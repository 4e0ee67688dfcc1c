# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Draws the loss benchmark: a bar for each peer on the padded batch, a line on dense boxes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..common.groups import Group
from ..common.output import BLUE, DARK, GREY, LINES, PALE, pyplot, quiet_axes, save_figure
from .peers import COPY, LIMITS, SUM

STYLES = {COPY: "--", SUM: ":"}
MEASURES = ("forward", "forward + backward")

Panel = Any  # matplotlib's Axes; matplotlib is imported only to draw
Draw = Callable[[Panel, list[Group]], None]


def plot(groups: list[Group], machine: dict[str, str], path: Path) -> None:
    """Forward above, forward + backward below; a column for each view of the figures."""
    columns = _columns(groups)
    figure, panels = pyplot().subplots(
        len(MEASURES),
        len(columns),
        squeeze=False,
        figsize=(5 * len(columns), 6.6),
        layout="constrained",
    )
    for row, measured in zip(panels, MEASURES, strict=True):
        for panel, (title, chosen, draw) in zip(row, columns, strict=True):
            draw(panel, [group for group in chosen if group.measured == measured])
            panel.set_title(f"{title}, {measured}", fontsize=10, loc="left")
            quiet_axes(panel)
    where = machine.get("gpu", machine["cpu"])
    figure.suptitle(f"{where}, torch {machine['torch']}", fontsize=11, x=0.005, ha="left")
    save_figure(figure, path)


def _columns(groups: list[Group]) -> list[tuple[str, list[Group], Draw]]:
    """Title, figures and way to draw them: the padded batch for each dtype pair, dense boxes for
    each peer on the first pair, and boxloss for each of several pairs."""
    seed = [group for group in groups if group.kind == "seed"]
    dense = [group for group in groups if group.kind == "dense"]
    columns: list[tuple[str, list[Group], Draw]] = [
        (f"padded, {pair}", [group for group in seed if group.pair == pair], _bars)
        for pair in _pairs(seed)
    ]
    for pair in _pairs(dense)[:1]:
        chosen = [group for group in dense if group.pair == pair]
        columns.append((f"dense, {pair}", chosen, _peer_lines))
    if len(_pairs(dense)) > 1:
        columns.append(("dense, boxloss", dense, _pair_lines))
    return columns


def _pairs(groups: list[Group]) -> list[str]:
    return list(dict.fromkeys(group.pair for group in groups))


def _bars(panel: Panel, groups: list[Group]) -> None:
    (group,) = groups
    clock = group.clock(group.rows[0])
    rows = [row for row in group.rows if clock in row.seconds and row.name not in (COPY, SUM)]
    times = [row.seconds[clock] * 1e6 for row in rows]
    colours = [BLUE if row.name.startswith("boxloss") else GREY for row in rows]
    bars = panel.barh([row.name for row in rows], times, color=colours, height=0.68)
    labels = [f"{time:,.3g}" if time < 1000 else f"{time:,.0f}" for time in times]
    panel.bar_label(bars, labels, padding=3, fontsize=8)
    panel.set_xscale("log")
    panel.set_xlim(min(times) / 2, max(times) * 4)  # room for the figures beside the bars
    panel.invert_yaxis()
    panel.set_xlabel(f"{clock} time, µs", fontsize=9, color=DARK)


def _peer_lines(panel: Panel, groups: list[Group]) -> None:
    names = dict.fromkeys(row.name for group in groups for row in group.rows)
    peers = [name for name in names if name not in LIMITS]
    for name, colour in zip(peers, LINES, strict=False):
        _line(panel, name, _points(groups, name), color=colour)
    for name in (name for name in names if name in STYLES):
        _line(panel, name, _points(groups, name), color=GREY, linestyle=STYLES[name], marker="")
    _finish_lines(panel)


def _pair_lines(panel: Panel, groups: list[Group]) -> None:
    for pair, colour in zip(_pairs(groups), LINES, strict=False):
        chosen = [group for group in groups if group.pair == pair]
        _line(panel, pair, _points(chosen, chosen[0].rows[0].name), color=colour)
    _finish_lines(panel)


def _points(groups: list[Group], name: str) -> list[tuple[int, float]]:
    """Boxes, and GB/s of the least bytes that have to be moved for them."""
    found = ((group, group.row(name)) for group in groups)
    return [
        (group.boxes, group.bytes / row.seconds[group.clock(row)] / 1e9)
        for group, row in found
        if row and group.bytes
    ]


def _line(panel: Panel, label: str, points: list[tuple[int, float]], **style: str) -> None:
    panel.plot(
        *zip(*points, strict=True),
        label=label,
        **{"marker": "o", "markersize": 3.5, "linewidth": 1.7} | style,
    )


def _finish_lines(panel: Panel) -> None:
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.grid(axis="y", color=PALE, linewidth=0.6)
    panel.set_xlabel("boxes", fontsize=9, color=DARK)
    panel.set_ylabel("GB/s of the least bytes to move", fontsize=9, color=DARK)
    panel.legend(fontsize=7, frameon=False)
