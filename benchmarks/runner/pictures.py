# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""How all pictures look: matplotlib's, with text as text, so that files stay small."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from pandas import DataFrame
from scour.scour import generateDefaultOptions, scourString

from .results import number

plt.switch_backend("Agg")
plt.rcParams["svg.fonttype"] = "none"
plt.rcParams["font.sans-serif"] = ["DejaVu Sans"]  # each text names all there are
plt.rcParams["svg.hashsalt"] = "boxloss"  # the same figures make the same file

BLUE, GREY, DARK, PALE = "#2a78b5", "#b4bcc4", "#70777e", "#dfe3e7"
PALE_BLUE, DARK_BLUE = "#9cc3e0", "#1b4f7a"
SMALL = generateDefaultOptions()
SMALL.digits = 5
SMALL.shorten_ids = SMALL.strip_ids = SMALL.strip_xml_prolog = True
SMALL.indent_type, SMALL.newlines = "none", False


def pick(frame: DataFrame, **columns: Any) -> DataFrame:
    """The rows that have these values; a list allows several."""
    for name, wanted in columns.items():
        frame = frame[frame[name].isin(wanted if isinstance(wanted, list) else [wanted])]
    return frame


def medians(frame: DataFrame, by: str = "variant", **columns: Any) -> dict[Any, float]:
    """Of the rows that have these values, in their order."""
    chosen = pick(frame, **columns)
    return dict(zip(chosen[by], chosen["median"], strict=True))


def bars(panel: Any, values: Mapping[str, float], longest: float = math.inf) -> None:
    """Bars that can be compared: from zero, each with its number, boxloss' own in blue. What is
    `longest` or more runs out of the panel."""

    def colour(name: str) -> str:  # an implementation's name has a slash in it
        return BLUE if name.startswith("boxloss") else PALE_BLUE if "/" in name else GREY

    edge = 1.25 * max(each for each in values.values() if each < longest)
    lengths = [min(each, edge) for each in values.values()]
    drawn = panel.barh(list(values), lengths, color=[*map(colour, values)], height=0.68)
    words = [number(each) if each < edge else "" for each in values.values()]
    panel.bar_label(drawn, words, padding=3, fontsize=8)
    for place, each in enumerate(values.values()):
        if each >= edge:
            panel.text(edge, place, f"{number(each)} → ", ha="right", va="center", fontsize=8)
    panel.set_xlim(0, edge)
    panel.set_ylim(len(values) - 0.5, -0.5)
    quiet_axes(panel)


def quiet_axes(panel: Any) -> None:
    """What the figures are seen by stands out."""
    panel.spines[["top", "right"]].set_visible(False)
    panel.spines[["left", "bottom"]].set_color(GREY)
    panel.tick_params(labelsize=8, colors=DARK)
    panel.minorticks_off()


def where(machine: Mapping[str, str]) -> str:
    """What measured, as a title says it."""
    return f"{machine.get('gpu', machine['cpu'])}, torch {machine['torch']}"


def title_figure(figure: Any, words: str) -> None:
    """Above all panels, where reading begins."""
    figure.suptitle(words, fontsize=10, x=0.005, ha="left")


def save_figure(figure: Any, path: Path) -> None:
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    path.write_text(scourString(path.read_text(), SMALL))
