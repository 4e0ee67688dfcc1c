# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Draws the pictures of benchmarks/results anew, from the figures that lie beside them.

python -m benchmarks.redraw
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .common.groups import groups_in
from .conditional.plot import plot as plot_conditional
from .cpu.plot import plot as plot_cpu
from .detectors.plot import plot as plot_detectors
from .detectors.plot import plot_before_and_after
from .dtypes.plot import plot as plot_dtypes
from .face_detector.plot import plot_times as plot_article
from .loss_only.plot import plot as plot_loss_only
from .precision.report import plot as plot_precision
from .scale.plot import plot as plot_scale
from .timeline.plot import plot as plot_timeline
from .trained_detector.plot import plot as plot_trained
from .trained_detector.plot import plot_pictures

RESULTS = Path(__file__).with_name("results")

Report = dict[str, Any]


def loss_only(report: Report, path: Path) -> None:
    plot_loss_only(groups_in(report), report["machine"], path)


def cpu(report: Report, path: Path) -> None:
    plot_cpu(groups_in(report), report["machine"], path)


def precision(report: Report, path: Path) -> None:
    errors = [{key: _number(value) for key, value in row.items()} for row in report["errors"]]
    plot_precision(errors, report["machine"], path)


def _number(value: Any) -> Any:
    return float("nan") if value is None else value  # JSON has none


# Each picture, from the figures of which file, by what.
PICTURES: dict[str, tuple[str, Callable[[Report, Path], None]]] = {
    "h200/article.svg": ("h200/article.json", plot_article),
    "h200/before-and-after.svg": ("h200/detectors.json", plot_before_and_after),
    "h200/conditional.svg": ("h200/conditional.json", plot_conditional),
    "h200/dense-dtypes.svg": ("h200/dense-dtypes.json", loss_only),
    "h200/dense.svg": ("h200/dense.json", loss_only),
    "h200/detectors.svg": ("h200/detectors.json", plot_detectors),
    "h200/dtypes.svg": ("h200/dtypes.json", plot_dtypes),
    "h200/scale.svg": ("h200/scale.json", plot_scale),
    "h200/seed.svg": ("h200/seed.json", loss_only),
    "h200/timeline.svg": ("h200/timeline.json", plot_timeline),
    "h200/trained-pictures.png": ("h200/trained.json", plot_pictures),
    "h200/trained.svg": ("h200/trained.json", plot_trained),
    "two-cores/cpu-dense.svg": ("two-cores/cpu-dense.json", cpu),
    "two-cores/detectors.svg": ("two-cores/detectors.json", plot_detectors),
    "two-cores/precision.svg": ("two-cores/precision.json", precision),
}


def redraw(picture: str, folder: Path) -> Path:
    figures, draw = PICTURES[picture]
    path = folder / picture
    path.parent.mkdir(exist_ok=True)
    draw(json.loads((RESULTS / figures).read_text()), path)
    return path


def main() -> None:
    for picture in PICTURES:
        print(redraw(picture, RESULTS))


if __name__ == "__main__":
    main()
