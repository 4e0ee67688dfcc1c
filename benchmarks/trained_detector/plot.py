# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Draws what python -m benchmarks.trained_detector --json wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PIL import Image

from ..common.bars import number
from ..common.output import (
    BLUE,
    DARK,
    LINES,
    outline,
    pyplot,
    quiet_axes,
    save_figure,
    title_figure,
    where,
)
from ..face_detector.data import FacePictures
from .pictures import MOST_FACES
from .report import reached, threshold
from .variants import EAGER, FUSED, SLOWEST, VARIANTS

COLOURS = {FUSED: BLUE, EAGER: LINES[1], SLOWEST: DARK}
# The curves lie on one another: the lower ones are wide, the upper ones thin or broken.
CURVES: dict[str, dict[str, Any]] = {
    SLOWEST: {"linewidth": 3.6, "alpha": 0.35},
    EAGER: {"linewidth": 1.8},
    FUSED: {"linewidth": 1.2, "linestyle": (0, (2, 1.5))},
}
COLOURS_IN_PICTURES = 96
LABEL = {"facecolor": LINES[1], "edgecolor": "none", "pad": 0.6}  # of a score


def plot(report: dict[str, Any], path: Path) -> None:
    """Held-out quality over the seconds of training, and the losses over the steps."""
    figure, (left, right) = pyplot().subplots(1, 2, figsize=(11, 4), layout="constrained")
    runs = {name: report["variants"][name] for name in CURVES if name in report["variants"]}
    _quality(left, runs)
    _losses(right, runs)
    settings = report["settings"]
    title_figure(
        figure,
        f"A face detector trained for {_steps(runs):,} steps of {settings['batch']} pictures: "
        f"{where(report['machine'])}",
    )
    save_figure(figure, path)


def _steps(runs: dict[str, Any]) -> int:
    return int(max(run["history"][-1]["step"] for run in runs.values()))


def _quality(panel: Any, runs: dict[str, Any]) -> None:
    enough = threshold(runs)
    panel.axhline(enough, color=DARK, linewidth=0.8, linestyle=":")
    for name, run in runs.items():
        trained = [each for each in run["history"] if each["step"]]  # no zero on a log axis
        seconds, precisions = ([each[key] for each in trained] for key in ("seconds", "ap50"))
        panel.plot(seconds, precisions, color=COLOURS[name], linewidth=1.6)
        first = reached(run, enough)
        panel.plot(first["seconds"], first["ap50"], "o", color=COLOURS[name], markersize=5)
    for row, (name, run) in enumerate(reversed(runs.items())):
        words = f"{VARIANTS[name].summary}: {number(reached(run, enough)['seconds'])} s"
        panel.text(
            0.98,
            0.3 - 0.09 * row,
            f"{words} to {enough:.3f}",
            transform=panel.transAxes,
            ha="right",
            fontsize=9,
            color=COLOURS[name],
            weight="bold" if name == FUSED else None,
        )
    panel.set_xscale("log")
    panel.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    panel.set_ylim(0, 1)
    panel.set_xlabel("seconds of training, logarithmic", fontsize=8, color=DARK)
    panel.set_title("Average precision (IoU 0.5) on held-out pictures", fontsize=9, loc="left")
    quiet_axes(panel)


def _losses(panel: Any, runs: dict[str, Any]) -> None:
    for name, run in runs.items():
        together = run["steps_together"]
        steps = [together * (index + 0.5) for index in range(len(run["box_losses"]))]
        panel.plot(
            steps,
            run["box_losses"],
            color=COLOURS[name],
            label=VARIANTS[name].summary,
            **CURVES[name],
        )
    panel.legend(frameon=False, fontsize=9)
    panel.set_ylim(bottom=0)
    panel.set_xlabel("training step", fontsize=8, color=DARK)
    panel.set_title(
        f"Training loss of the boxes, 1 − GIoU, mean of {together} steps", fontsize=9, loc="left"
    )
    quiet_axes(panel)


def plot_pictures(report: dict[str, Any], path: Path) -> None:
    """The same held-out pictures above before and below after training."""
    source = FacePictures("test", report["settings"]["seed"], MOST_FACES)
    run, shown = report["variants"][FUSED], report["shown"]
    figure, panels = pyplot().subplots(
        2, len(shown), squeeze=False, figsize=(2.1 * len(shown), 4.9), layout="constrained"
    )
    for panel_row, when, detections in zip(
        panels, ("before", "after"), (run["before"], run["after"]), strict=True
    ):
        for panel, index, found in zip(panel_row, shown, detections, strict=True):
            picture, truths = source[index]
            panel.imshow(picture.numpy(), cmap="gray", vmin=0, vmax=255, interpolation="nearest")
            for box in truths.tolist():
                outline(panel, box, edgecolor=LINES[2], linewidth=2.2)
            for *box, score in found:
                outline(panel, box, edgecolor=LINES[1], linewidth=1.4, linestyle="--")
                panel.text(
                    *box[:2], f"{score:.2f}", color="white", fontsize=6, va="top", bbox=LABEL
                )
            panel.set(xticks=[], yticks=[], xlim=(-0.5, 255.5), ylim=(255.5, -0.5))
        panel_row[0].set_ylabel(f"{when} training", fontsize=10)
    last = run["history"][-1]
    title_figure(
        figure,
        f"Held-out pictures: true boxes solid, predicted ones dashed, with their scores. After "
        f"training AP50 is {last['ap50']:.2f}, mean IoU {last['mean_iou']:.2f}",
    )
    save_figure(figure, path)
    with Image.open(path) as drawn:  # few colours are enough, in half the bytes
        drawn.convert("RGB").quantize(COLOURS_IN_PICTURES).save(path, optimize=True)
