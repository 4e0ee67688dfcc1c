# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Draws what python -m benchmarks.dtypes --json wrote: time that casts take, and errors by side."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..common.bars import dtypes, number
from ..common.groups import BOTH, CLOCK_WORDS, Group, groups_in
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
from ..precision.report import SIDES
from .errors import BOXLOSS, STORAGE, USUAL, WRAPPING
from .report import by_side
from .variants import CAST, NATIVE

Panel = Any  # matplotlib's Axes; matplotlib is imported only to draw

THICKNESS = 0.36
LEAST_ERROR, LARGEST_ERROR = 5e-9, 100


@dataclass(frozen=True)
class Line:
    variant: str
    label: str
    colour: str
    labelled: int  # the side that the label stands at
    offset: int  # points above the line


OURS = Line(BOXLOSS, "boxloss adds", BLUE, 16, -15)
ORANGE = LINES[1]
# By format and dtypes.
ERRORS = {
    ("xyxy", "bf16/bf16"): (
        Line(STORAGE, "storing boxes in bfloat16", DARK, 16, 9),
        Line(USUAL, "the formula in bfloat16 adds", ORANGE, 16, -15),
        OURS,
    ),
    ("cxcywh", "bf16/f32"): (
        Line(STORAGE, "storing predictions in bfloat16", DARK, 16, 9),
        Line(USUAL, "corners formed in bfloat16 add", ORANGE, 32, -27),
        OURS,
    ),
    ("xyxy", "f32/u8"): (
        Line(STORAGE, "storing true boxes in uint8", DARK, 64, -17),
        Line(WRAPPING, "areas in uint8 add", ORANGE, 64, 9),
        OURS,
    ),
}


def plot(report: dict[str, Any], path: Path) -> None:
    """Bars of the largest dense case, then the errors on one scale."""
    figure, panels = pyplot().subplots(2, 2, figsize=(11, 8), layout="constrained")
    first, *others = panels.flat
    _bars(first, largest(report))
    for panel, ((box_format, pair), lines) in zip(others, ERRORS.items(), strict=True):
        exact = []
        for line in lines:
            errors = by_side(report["errors"], box_format, pair, line.variant, "loss")
            _line(panel, line, errors)
            exact += [f"{line.label} 0 at {side} pixels" for side, e in errors.items() if e == 0]
        # Zero has no place on this axis; the middle of it is empty.
        panel.text(0.03, 0.3, "\n".join(exact), fontsize=8, color=DARK, transform=panel.transAxes)
        _finish(panel, f"{dtypes(pair)}, {box_format}: relative error of the loss, median")
    title_figure(figure, f"What dtypes save and cost: GIoU loss, {where(report['machine'])}")
    save_figure(figure, path)


def largest(report: dict[str, Any]) -> list[Group]:
    """Of the dense cases, forward and backward."""
    groups = [group for group in groups_in(report) if group.kind == "dense"]
    boxes = max(group.boxes for group in groups)
    return [group for group in groups if (group.boxes, group.measured) == (boxes, BOTH)]


def _bars(panel: Panel, groups: list[Group]) -> None:
    clock = groups[0].clocks[0]
    for variant, colour, shift in ((NATIVE, BLUE, -THICKNESS / 2), (CAST, GREY, THICKNESS / 2)):
        rows = [group.row(variant) for group in groups]
        times = [row.seconds[clock] * 1e3 for row in rows if row]
        spreads = [row.spread[clock] for row in rows if row]
        ends = [
            (time - low * 1e3, high * 1e3 - time)
            for time, (low, high) in zip(times, spreads, strict=True)
        ]
        drawn = panel.barh(
            [place + shift for place in range(len(groups))],
            times,
            THICKNESS,
            color=colour,
            xerr=list(zip(*ends, strict=True)),
            error_kw={"elinewidth": 0.8, "ecolor": DARK},
        )
        labels = [number(time) for time in times]
        labels[0] += f"  {variant}"
        panel.bar_label(drawn, labels, padding=3, fontsize=8)
    panel.set_yticks(range(len(groups)), [dtypes(group.pair) for group in groups])
    panel.invert_yaxis()
    panel.set_xlim(0, 1.2 * panel.get_xlim()[1])  # room for the numbers
    panel.set_xlabel(f"{CLOCK_WORDS[clock]}, ms", fontsize=8, color=DARK)
    panel.set_title(f"{groups[0].boxes:,} pairs, forward + backward", fontsize=9, loc="left")
    quiet_axes(panel)


def _line(panel: Panel, line: Line, errors: dict[int, float | None]) -> None:
    # What is exact or not finite has no place on this axis.
    shown = {side: error for side, error in errors.items() if error}
    panel.plot(list(shown), list(shown.values()), color=line.colour, marker="o", markersize=3)
    if line.labelled in shown:
        panel.annotate(
            line.label,
            (line.labelled, shown[line.labelled]),
            xytext=(0, line.offset),
            textcoords="offset points",
            color=line.colour,
            fontsize=8,
        )


def _finish(panel: Panel, title: str) -> None:
    panel.set_title(title, fontsize=9, loc="left")
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    panel.set_xlim(SIDES[0] / 1.2, SIDES[-1] * 1.2)
    panel.set_ylim(LEAST_ERROR, LARGEST_ERROR)
    panel.set_xticks(SIDES, [str(side) for side in SIDES])
    panel.set_xlabel("side of the box, pixels", fontsize=8, color=DARK)
    panel.grid(axis="y", color=PALE, linewidth=0.6)
    quiet_axes(panel)
