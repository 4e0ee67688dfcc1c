# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Draws what python -m benchmarks.detectors --json wrote.

    python -m benchmarks.detectors.plot detectors.json detectors.svg

Of each group that was timed: forward and backward, wall time of a call in a stream of calls.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from ..common.bars import HEIGHT, bars, number
from ..common.output import (
    BLUE,
    DARK,
    GREY,
    check_paths,
    pyplot,
    save_figure,
    title_figure,
    where,
)

COLUMNS = 3
KINDS = {
    "detr": "DETR",
    "rtdetr": "RT-DETR",
    "rtdetr-dense": "RT-DETR, crowded",
    "fcos": "FCOS",
    "retinanet": "RetinaNet",
    "yolo": "YOLO",
}
NAMES = {"aligned": "aligned plain torch", "torch.compile": "aligned, compiled"}
TITLE = "Losses of one training step, forward + backward"
MEASURED = {"criterion": "all losses", "matcher and boxes": "matcher and box losses"}


def plot(report: dict[str, Any], path: Path) -> None:
    """A panel for each group, in milliseconds."""
    groups = _timed(report)
    rows = -(-len(groups) // COLUMNS)
    most = max(len(group["rows"]) for group in groups)
    figure, panels = pyplot().subplots(
        rows,
        COLUMNS,
        squeeze=False,
        figsize=(12, 0.5 + rows * (0.7 + HEIGHT * most)),
        layout="constrained",
    )
    for panel in panels.flat[len(groups) :]:
        panel.set_axis_off()
    for panel, group in zip(panels.flat, groups, strict=False):
        times = {NAMES.get(name, name): each for name, each in _milliseconds(group).items()}
        bars(panel, times, "wall time, ms")
        panel.set_title(f"{KINDS[group['kind']]}: {group['measured']}", fontsize=9, loc="left")
    title_figure(figure, f"{TITLE}: {where(report['machine'])}")
    save_figure(figure, path)


def plot_before_and_after(report: dict[str, Any], path: Path) -> None:
    """How much is left of the original's time, one group for each detector."""
    groups: dict[str, dict[str, Any]] = {}
    for group in _timed(report):
        groups.setdefault(group["kind"], group)
    times = [_milliseconds(group) for group in groups.values()]
    left = [each["boxloss"] / each["original"] for each in times]
    figure, panel = pyplot().subplots(figsize=(9, 0.9 + 0.62 * len(groups)), layout="constrained")
    places = range(len(groups))
    before = panel.barh([place - 0.2 for place in places], [1] * len(left), 0.36, color=GREY)
    after = panel.barh([place + 0.2 for place in places], left, 0.36, color=BLUE)
    its_own = [f"{number(each['original'])} ms, its own code" for each in times]
    panel.bar_label(before, its_own, padding=4)
    ours = [
        f"{number(each['boxloss'])} ms with boxloss: {_times(1 / part)} as fast"
        for each, part in zip(times, left, strict=True)
    ]
    panel.bar_label(after, ours, padding=4, color=BLUE, weight="bold")
    labels = [
        f"{KINDS[kind]}\n{MEASURED.get(group['measured'], group['measured'])}"
        for kind, group in groups.items()
    ]
    panel.set_yticks(places, labels)
    panel.tick_params(axis="y", length=0)
    panel.set_xlim(0, 1.35)
    panel.set_xticks([])
    panel.invert_yaxis()
    panel.spines[:].set_visible(False)
    title_figure(figure, f"{TITLE}\n{where(report['machine'])}", fontsize=11, color=DARK)
    save_figure(figure, path)


def _timed(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [group for group in report["groups"] if "counts" not in group["rows"][0]]


def _milliseconds(group: dict[str, Any]) -> dict[str, float]:
    return {row["name"]: row["microseconds"]["stream"] / 1000 for row in group["rows"]}


def _times(ratio: float) -> str:
    return f"{ratio:.{0 if ratio >= 10 else 1}f} times"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.detectors.plot",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("report", type=Path, help="what --json wrote")
    parser.add_argument("plot", type=Path, help="an SVG, PNG or PDF file to write")
    options = parser.parse_args(arguments)
    check_paths(parser, options)
    plot(json.loads(options.report.read_text()), options.plot)


if __name__ == "__main__":
    main()
