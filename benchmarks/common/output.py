# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Where a program puts what it measured: the files that --json and --plot name."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PLOT_SUFFIXES = (".svg", ".png", ".pdf")

BLUE, GREY, DARK, PALE = "#2a78b5", "#b4bcc4", "#70777e", "#dfe3e7"
PALE_BLUE = "#9cc3e0"
LINES = (BLUE, "#c2571a", "#3b8a4d", "#8a5fa8", "#a58a2b", "#444b52", "#c76a8a")


def check_paths(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Before anything is measured: a path that nothing can be written to would lose it all."""
    plot = getattr(options, "plot", None)
    if plot and plot.suffix not in PLOT_SUFFIXES:
        parser.error(f"--plot: '{plot}' given; allowed: {', '.join(PLOT_SUFFIXES)}")
    for name in ("plot", "json"):
        path = getattr(options, name, None)
        if path and not path.parent.is_dir():
            parser.error(f"--{name}: there is no directory '{path.parent}'")


def write_json(path: Path, document: dict[str, Any]) -> None:
    unfinished = path.with_name(f"{path.name}.part")
    unfinished.write_text(json.dumps(document, indent=2) + "\n")
    unfinished.replace(path)  # at once: whoever stops a program leaves the old file or the new one


def pyplot() -> Any:
    """matplotlib.pyplot, which is imported only to draw."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.fonttype"] = "none"  # text stays text: small, searchable files
    matplotlib.rcParams["svg.hashsalt"] = "boxloss"  # the same figures make the same file
    import matplotlib.pyplot as plt

    return plt


def quiet_axes(panel: Any) -> None:
    """What the figures are seen by stands out."""
    panel.spines[["top", "right"]].set_visible(False)
    panel.spines[["left", "bottom"]].set_color(GREY)
    panel.tick_params(labelsize=8, colors=DARK)
    panel.minorticks_off()


def outline(panel: Any, box: Sequence[float], **style: Any) -> None:
    """An xyxy box over what imshow drew."""
    x1, y1, x2, y2 = box
    corner = x1 - 0.5, y1 - 0.5  # imshow has the first pixel's middle at 0
    panel.add_patch(pyplot().Rectangle(corner, x2 - x1, y2 - y1, fill=False, **style))


def where(machine: dict[str, str]) -> str:
    """What measured, as a title says it."""
    return f"{machine.get('gpu', machine['cpu'])}, torch {machine['torch']}"


def title_figure(figure: Any, words: str, **style: Any) -> None:
    """Above all panels, where reading begins."""
    figure.suptitle(words, **({"fontsize": 10, "x": 0.005, "ha": "left"} | style))


def save_figure(figure: Any, path: Path) -> None:
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot().close(figure)
