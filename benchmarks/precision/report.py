# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Shows what was found: as tables, and as a picture."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch
from rich.table import Table

from ..common.output import (
    BLUE,
    DARK,
    LINES,
    PALE,
    pyplot,
    quiet_axes,
    save_figure,
    title_figure,
)
from .losses import BOXLOSS, ORIGINALS

Row = dict[str, Any]  # where it was measured, and the fields of Errors

DTYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16}
SIDES = (4, 8, 16, 32, 64, 128, 256, 512)  # pixels
ROUNDING = "rounding the exact gradient"
MEASURES = {
    "gradient": "gradient",
    "median": "gradient of the median pair",
    "worst": "gradient of the worst pair",
    "loss": "loss",
}

PLOTTED = {"gradient": "all pairs together", "median": "median pair"}
PERCENTS = (0.01, 0.1, 1, 10, 100)
# Lines that may lie on each other, each in the others' gaps.
DASHES = {
    name: {"linestyle": (start, (4, 8)), "linewidth": 2.5}
    for name, start in (("torchvision GIoU", 0), ("torchvision CIoU", 4), ("mmdetection GIoU", 8))
}


def table(rows: list[Row], dtype: str, measured: str) -> Table:
    shown = Table(title=f"{dtype}: error of the {MEASURES[measured]}, %", title_justify="left")
    shown.add_column("sides in pixels", no_wrap=True)
    for side in SIDES:
        shown.add_column(str(side), justify="right")
    for name in dict.fromkeys(row["variant"] for row in rows):
        if (name, measured) != (ROUNDING, "loss"):
            shown.add_row(name, *(_percent(each) for each in _errors(rows, dtype, name, measured)))
    return shown


def table_of_large(rows: list[Row]) -> Table:
    side = rows[0]["side"]
    shown = Table(title=f"float16, boxes of about {side} x {side} pixels", title_justify="left")
    shown.add_column("", no_wrap=True)
    for heading in ("mean loss", "exact", "error of the gradient, %"):
        shown.add_column(heading, justify="right")
    for row in rows:
        means = (f"{row[key]:.3f}" for key in ("mean_loss", "exact_mean_loss"))
        shown.add_row(row["variant"], *means, _percent(row["gradient"]))
    return shown


def _errors(rows: list[Row], dtype: str, name: str, measured: str) -> list[float]:
    """By side."""
    chosen = (row for row in rows if row["dtype"] == dtype and row["variant"] == name)
    return [row[measured] for row in chosen]


def _percent(error: float) -> str:
    if not math.isfinite(error):
        return "not finite"
    return f"{100 * error:.2g}" if error < 1 else f"{100 * error:.0f}"


def plot(rows: list[Row], machine: dict[str, str], path: Path) -> None:
    """A column for each dtype, a line for each original; boxloss' is that of its worst variant."""
    figure, panels = pyplot().subplots(
        len(PLOTTED), len(DTYPES), sharex=True, sharey=True, figsize=(10, 8), layout="constrained"
    )
    for line, (measured, title) in zip(panels, PLOTTED.items(), strict=True):
        for panel, dtype in zip(line, DTYPES, strict=True):
            _lines(panel, rows, dtype, measured)
            _finish(panel, f"{dtype}, {title}")
        line[0].set_ylabel("relative error of the gradient, %", fontsize=9, color=DARK)
    for panel in panels[-1]:
        panel.set_xlabel("side of the box, pixels", fontsize=9, color=DARK)
    figure.legend(
        *panels[0, 0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=4,
        fontsize=8,
        handlelength=4,
        frameon=False,
    )
    title = f"What half precision leaves of a loss' gradient, torch {machine['torch']}"
    title_figure(figure, title, fontsize=11)
    save_figure(figure, path)


def _lines(panel: Any, rows: list[Row], dtype: str, measured: str) -> None:
    def line(label: str, errors: list[float], **style: Any) -> None:
        panel.plot(SIDES, [100 * error for error in errors], label=label, **style)

    ours = (_errors(rows, dtype, name, measured) for name in BOXLOSS)
    worst = [max(each) for each in zip(*ours, strict=True)]
    line("boxloss, the worst of its variants", worst, color=BLUE, alpha=0.5, linewidth=8)
    for name, colour in zip(ORIGINALS, LINES[1:], strict=True):
        if errors := _errors(rows, dtype, name, measured):
            line(name, errors, color=colour, **DASHES.get(name, {}))
    line(ROUNDING, _errors(rows, dtype, ROUNDING, measured), color="black", linewidth=0.8)


def _finish(panel: Any, title: str) -> None:
    panel.set_title(title, fontsize=10, loc="left")
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    panel.set_ylim(PERCENTS[0], 2 * PERCENTS[-1])
    panel.set_xticks(SIDES, [str(side) for side in SIDES])
    panel.set_yticks(PERCENTS, [f"{percent:g}" for percent in PERCENTS])
    panel.grid(axis="y", color=PALE, linewidth=0.6)
    quiet_axes(panel)
