# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Draws what python -m benchmarks.detectors --json wrote: in how many times boxloss' time.

    python -m benchmarks.detectors.plot detectors.json detectors.svg

Of each group that was timed: forward and backward, wall time of a call in a stream of calls.
"""

from __future__ import annotations

import argparse
import json
from math import floor, log10
from pathlib import Path
from typing import Any

from ..common.output import BLUE, DARK, GREY, PALE, check_paths, pyplot, quiet_axes, save_figure

COLOURS = {
    "boxloss, compiled": BLUE,
    "torch.compile": PALE,
    "aligned": GREY,
    "original": DARK,
}
TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
HEIGHT = 0.2  # of a bar; a group has 1


def plot(report: dict[str, Any], path: Path) -> None:
    groups = [group for group in report["groups"] if "counts" not in group["rows"][0]]
    figure, panel = pyplot().subplots(figsize=(7, 1 + 0.75 * len(groups)), layout="constrained")
    for name, colour in COLOURS.items():
        places, ratios = _bars(groups, name)
        # From 1, where boxloss is: what is faster reaches to the left.
        widths = [ratio - 1 for ratio in ratios]
        bars = panel.barh(places, widths, HEIGHT, left=1, color=colour, label=name)
        labels = [f"{r:.{max(0, 1 - floor(log10(r)))}f} times" for r in ratios]
        panel.bar_label(bars, labels, padding=3, fontsize=7, color=DARK)
    panel.axvline(1, color=BLUE, linewidth=1)
    panel.set_xscale("log")
    panel.set_yticks(range(len(groups)), [f"{g['kind']}\n{g['measured']}" for g in groups])
    panel.invert_yaxis()
    panel.margins(x=0.15)
    low, high = panel.get_xlim()
    ticks = [tick for tick in TICKS if low <= tick <= high]
    panel.set_xticks(ticks, [str(tick) for tick in ticks])
    panel.set_xlabel(
        "wall time of forward + backward, in times that of boxloss", fontsize=9, color=DARK
    )
    quiet_axes(panel)
    panel.legend(fontsize=7, frameon=False)
    machine = report["machine"]
    title = f"{machine.get('gpu', machine['cpu'])}, torch {machine['torch']}"
    figure.suptitle(title, fontsize=10, x=0.005, ha="left")
    save_figure(figure, path)


def _bars(groups: list[dict[str, Any]], name: str) -> tuple[list[float], list[float]]:
    """Where they lie, and their ratios; those of a group lie close together."""
    places, ratios = [], []
    for place, group in enumerate(groups):
        shown = [row["name"] for row in group["rows"] if row["name"] in COLOURS]
        for row in group["rows"]:
            if row["name"] == name:
                places.append(place + HEIGHT * (shown.index(name) - (len(shown) - 1) / 2))
                ratios.append(row["times_first"])
    return places, ratios


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
