# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Draws dense pairs with the fitted model, batches, and several GPUs."""

from __future__ import annotations

from math import inf, log10
from typing import Any

import matplotlib.pyplot as plt
from pandas import DataFrame

from ...runner.pictures import (
    BLUE,
    DARK,
    GREY,
    LINES,
    PALE,
    dtypes,
    pick,
    quiet_axes,
    title_figure,
    where,
)
from ...runner.run import BOTH, FORWARD
from . import DTYPES, EAGER, LAYOUTS, RAGGED_DTYPES, bytes_of_box
from .model import Line
from .ranks import COUNT, LOSS, NORMALIZED, STEP

RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
CLOCKS = {"gpu": "GPU time", "wall": "wall time"}
# Lines that lie on each other are told apart by their marks, and lengths' is the broad one below.
STYLES: dict[str, dict[str, Any]] = {
    "padded": {"color": LINES[1], "marker": "s", "markersize": 4},
    "lengths": {"color": BLUE, "marker": "o", "markersize": 9, "alpha": 0.45, "linewidth": 4},
    "ragged": {"color": LINES[2], "marker": "^", "markersize": 4},
    EAGER: {"color": GREY, "marker": "."},
}


def draw_all(frame: DataFrame, machine: dict[str, str]) -> Any:
    figure, panels = plt.subplots(2, 3, figsize=(15, 8.4), layout="constrained")
    (own_time, wall_time, several), (images, slots, distributions) = panels
    clock = "gpu" if "gpu" in set(frame["quantity"]) else "wall"
    sweeps = set(frame["sweep"])
    if "pairs" in sweeps:
        _dense(own_time, frame, clock)
        own_time.set_ylim(bottom=own_time.get_ylim()[0] / 20)  # room for the names
        own_time.legend(fontsize=7, frameon=False, loc="lower right")
        _sweep(images, pick(frame, sweep="images", quantity=clock), "images", clock)
        _sweep(slots, pick(frame, sweep="slots", quantity=clock), "slots of each image", clock)
        _distributions(distributions, pick(frame, sweep="distributions", quantity=clock), clock)
    if clock == "gpu":  # without a GPU they are the same
        _dense(wall_time, frame, "wall")
    if "ranks" in sweeps:
        _ranks(several, frame)
    for panel in panels.flat:
        if not panel.has_data():
            panel.set_axis_off()
    title_figure(figure, f"How the GIoU loss scales: {where(machine)}", fontsize=12)
    return figure


def _dense(panel: Any, frame: DataFrame, clock: str) -> None:
    """Points are measured, lines are the model."""
    dense = pick(frame, sweep="pairs", quantity=clock)
    model = frame[(frame["sweep"] == "model") & (frame.get("clock") == clock)]
    colours = iter(LINES)
    for measured in (BOTH, FORWARD):
        for pair in DTYPES:
            about = {"dtypes": pair, "pass": measured}
            points = pick(dense, variant="boxloss", **about)
            colour = next(colours)
            label = f"{dtypes(pair)}, {measured}"
            panel.plot(points["boxes"], points["median"], "o", ms=4, color=colour, label=label)
            found = pick(model, **about).set_index("quantity")["median"]
            if len(found):
                line = Line(found["fixed"], 1e-6 / found.get("rate", inf))
                first, last = points["boxes"].min(), points["boxes"].max()
                many = [first * (last / first) ** (k / 20) for k in range(21)]
                of_box = bytes_of_box(pair)[measured]
                modelled = [line.microseconds(n * of_box) for n in many]
                panel.plot(many, modelled, color=colour, linewidth=1.2)
    eager = pick(dense, variant=EAGER, dtypes=DTYPES[0], **{"pass": BOTH})
    label = f"eager, {dtypes(DTYPES[0])}, {BOTH}"
    panel.plot(eager["boxes"], eager["median"], "s", ms=4, color=GREY, label=label)
    _log_axes(panel, "pairs of boxes", clock)
    of_first = pick(model, dtypes=DTYPES[0], quantity="balance", **{"pass": BOTH})
    _shade(panel, of_first["median"].tolist())
    panel.set_title(
        f"Dense pairs, {CLOCKS[clock]}: points measured, lines the model", fontsize=9, loc="left"
    )


def _shade(panel: Any, balance: list[float]) -> None:
    """Where the launch dominates, and where the memory does, of one kind of call."""
    first, last = panel.get_xlim()
    if not balance or not first < balance[0] < last:
        return
    panel.axvspan(first, balance[0], color=PALE, alpha=0.5, linewidth=0)
    panel.set_xlim(first, last)
    style = {"fontsize": 8, "color": DARK, "transform": panel.get_xaxis_transform(), "va": "top"}
    launch = f"{dtypes(DTYPES[0])},\n{BOTH}:\nthe launch dominates"
    panel.text(balance[0] / 1.3, 0.98, launch, ha="right", **style)
    panel.text(balance[0] * 1.3, 0.98, "\n\nthe memory", ha="left", **style)


def _log_axes(panel: Any, across: str, clock: str) -> None:
    panel.set(xscale="log", yscale="log")
    for axis in (panel.xaxis, panel.yaxis):
        # Mathematical text takes a tenth of the file.
        axis.set_major_formatter(lambda value, _: f"10{str(round(log10(value))).translate(RAISED)}")
    panel.set_xlabel(across, fontsize=8, color=DARK)
    panel.set_ylabel(f"{CLOCKS[clock]}, µs", fontsize=8, color=DARK)
    panel.grid(axis="y", color=PALE, linewidth=0.6)
    quiet_axes(panel)


def _sweep(panel: Any, rows: DataFrame, across: str, clock: str) -> None:
    for name in (*LAYOUTS, EAGER):
        drawn = pick(rows, variant=name, **{"pass": BOTH})
        panel.plot(drawn["size"], drawn["median"], label=name, **STYLES[name])
    _log_axes(panel, across, clock)
    title = f"{BOTH.capitalize()}, by {across} ({dtypes(RAGGED_DTYPES)})"
    panel.set_title(title, fontsize=9, loc="left")
    panel.legend(fontsize=7, frameon=False)


def _distributions(panel: Any, rows: DataFrame, clock: str) -> None:
    rows = pick(rows, **{"pass": FORWARD})
    names = [
        f"{row['distribution']}, mean {row['mean']:g}"
        for row in pick(rows, variant=LAYOUTS[0]).to_dict("records")
    ]
    for name in LAYOUTS:
        times = pick(rows, variant=name)["median"]
        panel.plot(times, names, **(STYLES[name] | {"linestyle": "none"}), label=name)
    panel.invert_yaxis()
    panel.set_xlim(left=0)
    panel.set_xlabel(f"{CLOCKS[clock]}, µs", fontsize=8, color=DARK)
    panel.grid(axis="x", color=PALE, linewidth=0.6)
    title = f"Forward, by the distribution of boxes\namong images ({dtypes(RAGGED_DTYPES)})"
    panel.set_title(title, fontsize=9, loc="left")
    panel.legend(fontsize=7, frameon=False)
    quiet_axes(panel)


def _ranks(panel: Any, frame: DataFrame) -> None:
    rows = pick(frame, sweep="ranks")
    (alone,) = pick(frame, sweep="all-reduce", variant=COUNT)["median"]
    panel.axhline(alone, color=DARK, linestyle=":", linewidth=1, label=f"{COUNT} alone")
    shorter = {LOSS: "loss", NORMALIZED: "and one normalizer", STEP: "and backward"}
    colours = (GREY, LINES[2], BLUE, *LINES[3:])
    for name, colour in zip(dict.fromkeys(rows["variant"]), colours, strict=False):
        drawn = pick(rows, variant=name)
        label = shorter.get(name, "and" + name.removeprefix(f"{STEP} +"))
        style = {"marker": "o", "markersize": 4, "linewidth": 1.2, "color": colour}
        panel.plot(drawn["boxes"], drawn["median"], label=label, **style)
    _log_axes(panel, "pairs of boxes on each GPU", "wall")
    panel.set_ylim(top=panel.get_ylim()[1] * 10)  # room for the names
    panel.legend(fontsize=7, frameon=False, loc="upper left", reverse=True)
    panel.set_title(f"A step of {rows['ranks'].iloc[0]:.0f} ranks", fontsize=9, loc="left")
