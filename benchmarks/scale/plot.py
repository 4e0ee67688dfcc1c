# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Draws from the report: dense pairs with the fitted model, batches, and several GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..common.bars import dtypes
from ..common.groups import BOTH, FORWARD
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
from .cases import LAYOUTS, RAGGED_PAIR, Row
from .findings import best_clock, bytes_of_box, chosen, line_of, seconds, timed
from .ranks import COUNT, LOSS, NORMALIZED, STEP, millions, step_with
from .report import CLOCKS, layout_name, point_name

# Lines that lie on each other are told apart by their marks, and lengths' is the broad one below.
STYLES: dict[str, dict[str, Any]] = {
    "padded": {"color": LINES[1], "marker": "s"},
    "lengths": {"color": BLUE, "marker": "o", "markersize": 9, "alpha": 0.45},
    "offsets": {"color": LINES[2], "marker": "^"},
    "eager": {"color": GREY, "marker": "."},
}

NAME_POINTS = 9  # of height that a name needs
NAME_ROOM = 3000  # times the largest number of boxes: where names at the right of lines end

Panel = Any  # matplotlib's Axes; matplotlib is imported only to draw


def plot(report: dict[str, Any], path: Path) -> None:
    figure, panels = pyplot().subplots(2, 3, figsize=(15, 8.4), layout="constrained")
    rows, settings = report.get("one", {}).get("rows", []), report["settings"]
    (own_time, wall_time, several), (images, slots, distributions) = panels
    of_lines = report["findings"]["lines"]
    clock = best_clock(rows)
    _dense(own_time, rows, of_lines, clock)
    own_time.set_ylim(bottom=own_time.get_ylim()[0] / 20)  # room for the names, of both panels
    own_time.legend(fontsize=7, frameon=False, loc="lower right")
    if clock == "wall":  # without a GPU they are the same
        wall_time.set_axis_off()
    else:
        _dense(wall_time, rows, of_lines, "wall")
    _ranks(several, report.get("several"))
    article_images, article_slots = settings["article"]
    each = f"images of {article_slots:,} slots"
    _sweep(images, chosen(rows, sweep="images"), each, clock)
    _sweep(slots, chosen(rows, sweep="slots"), f"slots of each of {article_images:,} images", clock)
    _distributions(distributions, rows, settings["crowd"], clock)
    title_figure(figure, f"How the GIoU loss scales: {where(report['machine'])}", fontsize=12)
    save_figure(figure, path)


def _dense(panel: Panel, rows: list[Row], of_lines: list[Row], clock: str) -> None:
    """Points are measured, lines are the model."""
    dense = timed(chosen(rows, sweep="pairs"), clock)
    ours = chosen(dense, variant="boxloss")
    pairs = list(dict.fromkeys(row["pair"] for row in ours))
    place = iter(LINES)
    for measured in (BOTH, FORWARD):
        for pair in pairs:
            colour = next(place)
            points = chosen(ours, pair=pair, measured=measured)
            boxes = [row["boxes"] for row in points]
            label = f"{dtypes(pair)}, {measured}"
            _points(panel, points, clock, color=colour, label=label)
            if line := line_of(of_lines, pair, measured, clock):
                many = np.geomspace(boxes[0], boxes[-1], 100).tolist()
                of_box = bytes_of_box(pair, measured)
                modelled = [line.seconds(number * of_box) * 1e6 for number in many]
                panel.plot(many, modelled, color=colour, linewidth=1.2)
    if pairs:
        eager = chosen(dense, variant="eager", pair=pairs[0], measured=BOTH)
        _points(
            panel, eager, clock, color=GREY, marker="s", label=f"eager, {dtypes(pairs[0])}, {BOTH}"
        )
    _log_axes(panel, "pairs of boxes", clock)
    if pairs:
        _shade(panel, of_lines, pairs[0], clock)
    panel.set_title(
        f"Dense pairs, {CLOCKS[clock]}: points measured, lines the model", fontsize=9, loc="left"
    )


def _points(panel: Panel, points: list[Row], clock: str, **style: Any) -> None:
    values = [row["microseconds"][clock] for row in points]
    medians = [each["median"] for each in values]
    errors = [
        [each["median"] - each["p10"] for each in values],
        [each["p90"] - each["median"] for each in values],
    ]
    panel.errorbar(
        [row["boxes"] for row in points],
        medians,
        yerr=errors,
        **({"marker": "o", "markersize": 4, "linestyle": "none", "elinewidth": 0.8} | style),
    )


def _shade(panel: Panel, of_lines: list[Row], pair: str, clock: str) -> None:
    """Where the launch dominates, and where the memory does, of one kind of call."""
    found = chosen(of_lines, pair=pair, measured=BOTH, clock=clock)
    if not found:
        return
    balance = found[0]["balance_boxes"]
    first, last = panel.get_xlim()
    if not first < balance < last:
        return
    panel.axvspan(first, balance, color=PALE, alpha=0.5, linewidth=0)
    panel.set_xlim(first, last)
    style = {"fontsize": 8, "color": DARK, "transform": panel.get_xaxis_transform(), "y": 0.98}
    style |= {"va": "top"}
    of = f"{dtypes(pair)},\n{BOTH}:"
    panel.text(x=balance / 1.3, s=f"{of}\nthe launch dominates", ha="right", **style)
    panel.text(x=balance * 1.3, s="\n\nthe memory", ha="left", **style)


def _log_axes(panel: Panel, across: str, clock: str) -> None:
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlabel(across, fontsize=8, color=DARK)
    panel.set_ylabel(f"{CLOCKS[clock]}, µs", fontsize=8, color=DARK)
    panel.grid(axis="y", color=PALE, linewidth=0.6)
    quiet_axes(panel)


def _ranks(panel: Panel, part: Row | None) -> None:
    if part is None:
        panel.set_axis_off()
        return
    steps = chosen(part["rows"], part="step")
    sizes = list(dict.fromkeys(row["boxes"] for row in steps))
    (count,) = chosen(part["rows"], step=COUNT)
    alone = seconds(count, "wall") * 1e6
    panel.plot([sizes[0], sizes[-1]], [alone, alone], color=DARK, linestyle=":", linewidth=1)
    ends = [(f"{COUNT} alone", alone, DARK)]
    words = _words(part["settings"]["parameters"])
    for (name, shown), colour in zip(
        words.items(), (GREY, LINES[2], BLUE, *LINES[3:]), strict=False
    ):
        points = chosen(steps, step=name)
        _points(panel, points, "wall", color=colour, linestyle="-", linewidth=1.2)
        ends.append((shown, seconds(points[-1], "wall") * 1e6, DARK if colour == GREY else colour))
    _log_axes(panel, "pairs of boxes on each GPU", "wall")
    panel.set_xlim(right=sizes[-1] * NAME_ROOM)
    panel.set_xticks(sizes)
    _names(panel, sizes[-1], ends)
    panel.set_title(f"A step of {part['ranks']} ranks, {part['backend']}", fontsize=9, loc="left")


def _words(parameters: Sequence[int]) -> dict[str, str]:
    """Of each step: what it has beside the one before."""
    shorter = {LOSS: "loss", NORMALIZED: "and one normalizer", STEP: "and backward"}
    return shorter | {step_with(n): f"and {millions(n)} gradients" for n in parameters}


def _names(panel: Panel, last: float, ends: list[tuple[str, float, str]]) -> None:
    """At the right of their lines, from below, each at least its height above the one before."""
    panel.figure.draw_without_rendering()  # lays out the panel, whose height is asked for
    to_points = 72 / panel.figure.dpi
    free = 0.0
    for words, time, colour in sorted(ends, key=lambda each: each[1]):
        end = float(panel.transData.transform((last, time))[1]) * to_points
        place = max(end, free)
        free = place + NAME_POINTS
        panel.annotate(
            words,
            (last, time),
            (7, place - end),
            textcoords="offset points",
            va="center",
            fontsize=7,
            color=colour,
        )


def _sweep(panel: Panel, rows: list[Row], across: str, clock: str) -> None:
    points = timed(chosen(rows, measured=BOTH), clock)
    for name in dict.fromkeys(row["variant"] for row in points):
        drawn = [{**row, "boxes": row["size"]} for row in chosen(points, variant=name)]
        style = {"linestyle": "-", "linewidth": 5 if name == "lengths" else 1.2} | STYLES[name]
        _points(panel, drawn, clock, label=layout_name(name), **style)
    _log_axes(panel, across, clock)
    title = f"{BOTH.capitalize()}, by {across} ({dtypes(RAGGED_PAIR)})"
    panel.set_title(title, fontsize=9, loc="left")
    panel.legend(fontsize=7, frameon=False)


def _distributions(panel: Panel, rows: list[Row], crowd: tuple[int, int], clock: str) -> None:
    points = timed(chosen(rows, sweep="distributions", measured=FORWARD), clock)
    points = [row for row in points if row["variant"] in LAYOUTS]
    names = list(dict.fromkeys(point_name(row) for row in points))
    for variant in LAYOUTS:
        drawn = chosen(points, variant=variant)
        panel.plot(
            [seconds(row, clock) * 1e6 for row in drawn],
            _places(names, drawn),
            linestyle="none",
            label=layout_name(variant),
            **STYLES[variant],
        )
    longest = {point_name(row): row["longest"] for row in points}
    panel.set_yticks(range(len(names)), [f"{name}\nat most {longest[name]:,}" for name in names])
    panel.set_ylim(len(names) - 0.5, -0.5)
    panel.set_xlim(0, 1.1 * max((seconds(row, clock) * 1e6 for row in points), default=1))
    panel.set_xlabel(f"{CLOCKS[clock]}, µs", fontsize=8, color=DARK)
    panel.grid(axis="x", color=PALE, linewidth=0.6)
    images, slots = crowd
    panel.set_title(
        "Forward, by the distribution of boxes among images\n"
        f"({dtypes(RAGGED_PAIR)}, {images:,} images of {slots:,} slots)",
        fontsize=9,
        loc="left",
    )
    panel.legend(fontsize=7, frameon=False)
    quiet_axes(panel)


def _places(names: Sequence[str], rows: list[Row]) -> list[int]:
    return [names.index(point_name(row)) for row in rows]
