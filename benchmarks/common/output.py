# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Where a program puts what it measured: the files that --json and --plot name."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

PLOT_SUFFIXES = (".svg", ".png", ".pdf")


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
    path.write_text(json.dumps(document, indent=2) + "\n")


def pyplot() -> Any:
    """matplotlib.pyplot, which is imported only to draw."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.fonttype"] = "none"  # text stays text: small, searchable files
    matplotlib.rcParams["svg.hashsalt"] = "boxloss"  # the same figures make the same file
    import matplotlib.pyplot as plt

    return plt


def save_figure(figure: Any, path: Path) -> None:
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot().close(figure)
