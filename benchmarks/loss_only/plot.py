# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Draws the loss benchmark: bars for the padded batch and for dense boxes of one number, lines over
several numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..common.bars import HEIGHT, bars, dtypes
from ..common.groups import CLOCK_WORDS, PASSES, Group, pairs_of
from ..common.output import (
    BLUE,
    DARK,
    GREY,
    LINES,
    PALE,
    pyplot,
    quiet_axes,
    save_figure,
    title_figure,
    where,
)
from .peers import COPY, EMPTY, LIMITS, SUM

LIMIT_STYLES = {COPY: "--", SUM: ":"}
# Lines that lie on each other are told apart by their marks, and boxloss is the broad one below.
MARKERS = "osD^vX"
NAMES = {
    "eager": "eager PyTorch",
    COPY: "copying as many bytes",
    SUM: "summing as many bytes",
    EMPTY: "an empty kernel",
}
LIMIT_NAMES = [NAMES[name] for name in LIMITS]
OURS = {"color": BLUE, "alpha": 0.45, "linewidth": 6, "markersize": 9}

Panel = Any  # matplotlib's Axes; matplotlib is imported only to draw


@dataclass(frozen=True)
class View:
    """A row of panels, one for each pass."""

    title: str
    groups: list[Group]
    draw: Callable[[Panel, list[Group]], None]
    height: float  # inches


def plot(groups: list[Group], machine: dict[str, str], path: Path) -> None:
    """Forward left, forward + backward right."""
    views = _views(groups)
    heights = [view.height for view in views]
    figure, panels = pyplot().subplots(
        len(views),
        len(PASSES),
        squeeze=False,
        figsize=(11, 0.4 + sum(heights)),
        height_ratios=heights,
        layout="constrained",
    )
    for row, view in zip(panels, views, strict=True):
        for panel, measured in zip(row, PASSES, strict=True):
            view.draw(panel, [group for group in view.groups if group.measured == measured])
            panel.set_title(f"{view.title}: {measured}", fontsize=9, loc="left")
    title_figure(figure, f"GIoU loss, {where(machine)}")
    save_figure(figure, path)


def _views(groups: list[Group]) -> list[View]:
    seed = [group for group in groups if group.kind == "seed"]
    dense = [group for group in groups if group.kind == "dense"]
    views = []
    for pair in pairs_of(seed):
        chosen = [group for group in seed if group.pair == pair]
        views.append(_of_bars("padded batch", chosen, _time_bars))
    if len({group.boxes for group in dense}) == 1:
        for pair in pairs_of(dense):
            chosen = [group for group in dense if group.pair == pair]
            views.append(_of_bars(f"{chosen[0].boxes:,} pairs", chosen, _bandwidth_bars))
    elif dense:
        first, *others = pairs_of(dense)
        chosen = [group for group in dense if group.pair == first]
        views.append(View(f"pairs of {dtypes(first)}", chosen, _peer_lines, 3.6))
        if others:
            views.append(View("boxloss by dtypes", dense, _pair_lines, 3.2))
    return views


def _of_bars(title: str, groups: list[Group], draw: Callable[[Panel, list[Group]], None]) -> View:
    most = max(len(group.rows) for group in groups)
    return View(f"{title}, {dtypes(groups[0].pair)}", groups, draw, 0.8 + HEIGHT * most)


def _time_bars(panel: Panel, groups: list[Group]) -> None:
    (group,) = groups
    clock = group.clock(group.rows[0])
    rows = [row for row in group.rows if clock in row.seconds and row.name not in LIMIT_STYLES]
    times = {NAMES.get(row.name, row.name): row.seconds[clock] * 1e6 for row in rows}
    bars(panel, times, f"{CLOCK_WORDS[clock]}, µs", LIMIT_NAMES)


def _bandwidth_bars(panel: Panel, groups: list[Group]) -> None:
    (group,) = groups
    rows = [row for row in group.rows if not row.limit or row.name in LIMIT_STYLES]
    rates = {
        NAMES.get(row.name, row.name): (group.bytes or 0) / row.seconds[group.clock(row)] / 1e9
        for row in rows
    }
    bars(panel, rates, "GB/s of the bytes that have to be moved: more is better", LIMIT_NAMES)


def _peer_lines(panel: Panel, groups: list[Group]) -> None:
    names = dict.fromkeys(row.name for group in groups for row in group.rows)
    peers = [name for name in names if name not in LIMITS]
    for place, name in enumerate(peers):
        style = OURS if name == "boxloss" else {"color": LINES[place]}
        _line(panel, name, _points(groups, name), marker=MARKERS[place], **style)
    for name in (name for name in names if name in LIMIT_STYLES):
        _line(panel, name, _points(groups, name), color=GREY, linestyle=LIMIT_STYLES[name])
    _finish_lines(panel)


def _pair_lines(panel: Panel, groups: list[Group]) -> None:
    for place, pair in enumerate(pairs_of(groups)):
        chosen = [group for group in groups if group.pair == pair]
        points = _points(chosen, chosen[0].rows[0].name)
        _line(panel, dtypes(pair), points, color=LINES[place], marker=MARKERS[place])
    _finish_lines(panel)


def _points(groups: list[Group], name: str) -> list[tuple[int, float]]:
    """Boxes, and GB/s of the least bytes that have to be moved for them."""
    found = ((group, group.row(name)) for group in groups)
    return [
        (group.boxes, group.bytes / row.seconds[group.clock(row)] / 1e9)
        for group, row in found
        if row and group.bytes
    ]


def _line(panel: Panel, label: str, points: list[tuple[int, float]], **style: Any) -> None:
    style = {"markersize": 4, "linewidth": 1.4} | style
    panel.plot(*zip(*points, strict=True), label=NAMES.get(label, label), **style)


def _finish_lines(panel: Panel) -> None:
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.grid(axis="y", color=PALE, linewidth=0.6)
    panel.set_xlabel("pairs of boxes", fontsize=8, color=DARK)
    panel.set_ylabel("GB/s of the bytes to be moved", fontsize=8, color=DARK)
    panel.legend(fontsize=7, frameon=False, handlelength=4)
    quiet_axes(panel)
