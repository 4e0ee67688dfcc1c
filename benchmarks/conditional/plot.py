# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Draws what the branch leaves of the time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..common.output import (
    BLUE,
    DARK,
    LINES,
    PALE,
    pyplot,
    quiet_axes,
    save_figure,
    title_figure,
    where,
)
from .cases import batch_name
from .report import Report, percent, ratio

LABEL_GAP = 0.06
LAYOUT_TITLES = {
    "front": "valid slots in front of each image",
    "scattered": "valid slots scattered at random",
}


def plot(document: dict[str, Any], path: Path) -> None:
    """A row for each batch, a column for each layout, a line for each share of valid slots."""
    report = Report(document)
    images, layouts = report.settings["images"], report.settings["layouts"]
    figure, panels = pyplot().subplots(
        len(images),
        len(layouts),
        sharex=True,
        sharey=True,
        squeeze=False,
        figsize=(10, 1 + 3.6 * len(images)),
        layout="constrained",
    )
    for line, count in zip(panels, images, strict=True):
        for panel, layout in zip(line, layouts, strict=True):
            _lines(panel, report, count, layout)
            _finish(panel, f"{batch_name(count)}: {LAYOUT_TITLES[layout]}", report)
        line[0].set_ylabel("time with a branch / without", fontsize=9, color=DARK)
    for panel in panels[-1]:
        panel.set_xlabel("repetitions of the formula for each pair", fontsize=9, color=DARK)
    title_figure(
        figure,
        "What a branch over invalid slots leaves of a kernel's time, by the share of valid slots; "
        f"dotted: the model\n{where(document['machine'])}",
    )
    save_figure(figure, path)


def _lines(panel: Any, report: Report, images: int, layout: str) -> None:
    shares, repetitions = report.settings["shares"], report.settings["repetitions"]
    ramp = pyplot().matplotlib.colors.LinearSegmentedColormap.from_list("", [BLUE, LINES[1]])
    ends = []
    for place, share in enumerate(shares):
        colour = ramp(place / max(len(shares) - 1, 1))
        cells = report.row(images, layout, share)
        measured = [ratio(cell) for cell in cells]
        panel.plot(repetitions, measured, color=colour, linewidth=1.8, marker="o", markersize=3)
        expected = [report.expected(cell) for cell in cells]
        panel.plot(repetitions, expected, color=colour, linewidth=1, linestyle=(0, (2, 3)))
        ends.append((share, measured[-1], colour))
    for words, height, colour in _labels(ends):
        panel.text(1.15 * repetitions[-1], height, words, color=colour, fontsize=8, va="center")


def _labels(ends: Sequence[tuple[float, float, Any]]) -> list[tuple[str, float, Any]]:
    """Of lines by their shares; those that end together have one."""
    together = [[ends[0]]]
    for end in ends[1:]:
        if abs(end[1] - together[-1][-1][1]) < LABEL_GAP / 2:
            together[-1].append(end)
        else:
            together.append([end])
    labels: list[tuple[str, float, Any]] = []
    for group in sorted(together, key=lambda group: group[0][1]):
        first, last = (percent(group[place][0]) for place in (0, -1))
        words = first if first == last else f"{first.removesuffix(' %')} to {last}"
        height = group[len(group) // 2][1]
        lowest = labels[-1][1] + LABEL_GAP if labels else height
        labels.append((words, max(height, lowest), group[-1][2]))
    return labels


def _finish(panel: Any, title: str, report: Report) -> None:
    repetitions = report.settings["repetitions"]
    highest = max(1.2, 1.05 * max(ratio(cell) for cell in report.cells))
    panel.axhspan(1, highest, color=PALE, alpha=0.5, linewidth=0, zorder=0)
    panel.text(repetitions[0], highest - 0.03, "the branch costs", fontsize=8, color=DARK, va="top")
    panel.hlines(1, repetitions[0], repetitions[-1], color=DARK, linewidth=0.8)
    panel.set_title(title, fontsize=9, loc="left")
    panel.set_xscale("log", base=2)
    panel.set_xlim(0.9 * repetitions[0], 3 * repetitions[-1])  # room for the labels
    panel.set_xticks(repetitions, [str(each) for each in repetitions])
    panel.set_ylim(0, highest)
    quiet_axes(panel)
