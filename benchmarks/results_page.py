# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/results.md, from the figures in benchmarks/results.

python -m benchmarks.results_page
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .conditional.page import section as conditional
from .dtypes.page import section as dtypes
from .face_detector.page import section as article
from .redraw import RESULTS
from .scale.page import section as scale
from .timeline.page import section as timeline
from .trained_detector.page import section as trained

PAGE = Path(__file__).parent.parent / "docs" / "results.md"
INTRODUCTION = """\
# Results

What was measured, and what it means. `python -m benchmarks.results_page` writes this page out of
the files in `benchmarks/results`, each of which was written by the command that stands below its
section; none of its figures was typed.
"""

# In the order of the page: the figures of which file, by what.
SECTIONS: dict[str, Callable[[dict[str, Any]], str]] = {
    "h200/article.json": article,
    "h200/trained.json": trained,
    "h200/timeline.json": timeline,
    "h200/dtypes.json": dtypes,
    "h200/scale.json": scale,
    "h200/conditional.json": conditional,
}


def page() -> str:
    sections = (
        section(json.loads((RESULTS / figures).read_text()))
        for figures, section in SECTIONS.items()
    )
    return "\n".join((INTRODUCTION, *sections))


def main() -> None:
    PAGE.write_text(page())
    print(PAGE)


if __name__ == "__main__":
    main()
