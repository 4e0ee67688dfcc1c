# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Draws what the face detector benchmark measured, and what the detector sees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..common.bars import number
from ..common.losses import giou
from ..common.output import (
    BLUE,
    DARK,
    GREY,
    LINES,
    PALE_BLUE,
    outline,
    pyplot,
    quiet_axes,
    save_figure,
    title_figure,
    where,
)
from .report import Report, times
from .training import HELD_OUT_BATCHES, SHOWN
from .variants import BASELINE

FAR = 5


def plot_times(report: dict[str, Any], path: Path) -> None:
    """The loss alone, and the whole step, as bars, from what `document` wrote. What takes FAR times
    as long as the baseline runs out of the picture, or the others' bars would all be alike."""
    variants = report["variants"]
    names = list(variants)
    figure, panels = pyplot().subplots(
        1, 2, sharey=True, figsize=(10, 1.5 + 0.34 * len(names)), layout="constrained"
    )
    # An implementation's name has a slash in it.
    colours = [
        BLUE if name.startswith("boxloss") else PALE_BLUE if "/" in name else GREY for name in names
    ]
    for panel, title, measured in (
        (panels[0], "copy of the boxes, loss and backward, ms (speed-up)", "together"),
        (panels[1], "the whole step, network and loss, ms", "step"),
    ):
        milliseconds = [variants[name][measured]["median"] for name in names]
        far = FAR * variants.get(BASELINE, variants[names[0]])[measured]["median"]
        edge = 1.25 * max(each for each in milliseconds if each < far)
        bars = panel.barh(names, [min(each, edge) for each in milliseconds], color=colours)
        labels = [number(each) if each < edge else "" for each in milliseconds]
        panel.bar_label(bars, labels, padding=3, fontsize=9)
        for place, each in enumerate(milliseconds):
            if each >= edge:
                panel.text(edge, place, f"{number(each)} → ", ha="right", va="center")
        panel.set_xlim(0, edge)
        panel.set_title(title, fontsize=10, loc="left")
        quiet_axes(panel)
    panels[0].invert_yaxis()
    panels[0].set_yticks(
        range(len(names)), [_with_speed_up(name, variants[name]) for name in names]
    )
    batch, slots = report["settings"]["batch"], report["settings"]["slots"]
    title_figure(
        figure,
        f"A training step with {batch:,} pictures of {slots} predicted boxes: "
        f"{where(report['machine'])}",
    )
    save_figure(figure, path)


def plot_pictures(report: Report, path: Path) -> None:
    """The first held-out pictures that have a true box."""
    figure, panels = pyplot().subplots(
        1, SHOWN, squeeze=False, figsize=(2.2 * SHOWN, 3), layout="constrained"
    )
    for panel in panels[0]:
        panel.set_axis_off()
    for panel, each in zip(panels[0], report.result.shown, strict=False):
        panel.imshow(each.picture.numpy(), cmap="gray", vmin=0, vmax=255)
        for box in each.boxes.tolist():
            outline(panel, box, edgecolor=LINES[2], linewidth=1.8)
        for box in each.predictions.tolist():
            outline(panel, box, edgecolor=LINES[1], linewidth=1.8, linestyle="--")
        mean = giou(each.predictions, each.boxes.float()).mean().item()
        panel.set_title(f"GIoU {mean:.2f}", fontsize=9)
    steps, mean = report.settings["steps"], report.result.held_out_mean_giou
    batch = report.settings["batch"]
    figure.suptitle(
        f"After {steps} training steps, held-out pictures: mean GIoU {mean:.2f} "
        f"(of {HELD_OUT_BATCHES * batch} pictures; 1 is perfect)\n"
        "true boxes solid, predicted ones dashed; the toy is told how many faces there are",
        fontsize=10,
        color=DARK,
    )
    save_figure(figure, path)


def _with_speed_up(name: str, variant: dict[str, Any]) -> str:
    speed_up = variant["speed_up"]
    return name if speed_up is None else f"{name}  ({times(speed_up)})"
