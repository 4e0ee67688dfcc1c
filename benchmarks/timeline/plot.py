# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Draws who is busy when: each variant's first milliseconds, on one axis."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..common.bars import number
from ..common.output import (
    BLUE,
    DARK,
    GREY,
    LINES,
    pyplot,
    quiet_axes,
    save_figure,
    title_figure,
    where,
)
from .events import AUTOGRAD, GPU, LANES, PYTHON

COLOURS = {PYTHON: GREY, AUTOGRAD: LINES[4], GPU: BLUE}
SHOWN = 2.5  # milliseconds


def plot(report: dict[str, Any], path: Path) -> None:
    """A panel for each variant: forward, then backward, as they follow each other; of a variant
    that takes far longer, what is kept of its forward."""
    timelines = report["timelines"]
    figure, panels = pyplot().subplots(
        len(timelines), 1, sharex=True, squeeze=False, figsize=(10, 5), layout="constrained"
    )
    for panel, (name, parts) in zip(panels[:, 0], timelines.items(), strict=True):
        whole = sum(each["milliseconds"] for each in parts.values())
        kernels = sum(each["kernels"] for each in parts.values())
        busy = sum(each["busy_milliseconds"][GPU] for each in parts.values())
        title = (
            f"{name}: {number(whole)} ms, {kernels:,} kernels and copies, "
            f"the GPU busy for {number(busy)} ms"
        )
        forward, backward = parts.values()
        _stretches(panel, forward, 0)
        if forward["shown_from"]:
            title += f"; shown are {SHOWN} ms of its forward"
        else:
            _stretches(panel, backward, forward["milliseconds"])
            if whole > SHOWN:
                title += f"; its backward goes on until {number(whole)} ms"
            _mark(panel, forward["milliseconds"], "forward is done ", "right")
            _mark(panel, whole, " backward is done", "left")
        panel.set_title(title, fontsize=9, loc="left")
        panel.set_yticks(range(len(LANES)), LANES)
        panel.set_ylim(len(LANES) - 0.5, -0.75)
        quiet_axes(panel)
    panels[-1, 0].set_xlim(0, SHOWN)
    panels[-1, 0].set_xlabel("milliseconds, under the profiler", fontsize=8, color=DARK)
    title_figure(figure, f"One loss and its backward: {where(report['machine'])}")
    save_figure(figure, path)


def _mark(panel: Any, milliseconds: float, words: str, side: str) -> None:
    if milliseconds < SHOWN:
        panel.axvline(milliseconds, color=DARK, linewidth=0.8, linestyle=":")
        panel.text(milliseconds, -0.52, words, ha=side, fontsize=7, color=DARK)


def _stretches(panel: Any, part: dict[str, Any], begins: float) -> None:
    for place, lane in enumerate(LANES):
        stretches = [each.split("-") for each in part["shown_microseconds"][lane].split()]
        spans = [
            (begins + float(start) * 1e-3, (float(end) - float(start)) * 1e-3)
            for start, end in stretches
        ]
        shown = [(start, length) for start, length in spans if start < SHOWN]
        panel.broken_barh(shown, (place - 0.35, 0.7), facecolor=COLOURS[lane])
