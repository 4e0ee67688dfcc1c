# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/results.md, from the figures in benchmarks/results.

python -m benchmarks.results_page
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

from .common.output import where
from .common.page import paragraphs, table
from .conditional import page as conditional
from .dtypes import page as dtypes
from .face_detector import page as article
from .redraw import RESULTS
from .scale import page as scale
from .timeline import page as timeline
from .trained_detector import page as trained

PAGE = Path(__file__).parent.parent / "docs" / "results.md"
INTRODUCTION = """\
*The article* is the experiment that boxloss began with: a toy detector whose pictures have few true
boxes and 256 predicted ones, and five ways to compute its loss. A *slot* is a predicted box; it is
valid if it has a true box, and the two are a *pair*. boxloss takes true boxes *padded* with zeros,
padded with their *lengths*, or *ragged*: all in one list, with offsets. *Wall time* is what a
program waits for; *GPU time* is that of replayed CUDA graphs, without the host."""
SOURCE = """\
`python -m benchmarks.results_page` writes this page out of the files in `benchmarks/results`, each
of which was written by the command that stands below its section. But for the article's own
figures, nothing that was measured was typed."""

# In the order of the page: the figures of which file, by what.
SECTIONS: dict[str, ModuleType] = {
    "h200/article.json": article,
    "h200/trained.json": trained,
    "h200/timeline.json": timeline,
    "h200/dtypes.json": dtypes,
    "h200/scale.json": scale,
    "h200/conditional.json": conditional,
}


def page() -> str:
    reports = {figures: json.loads((RESULTS / figures).read_text()) for figures in SECTIONS}
    sections = {figures: each.section(reports[figures]) for figures, each in SECTIONS.items()}
    answers = []
    for figures, each in SECTIONS.items():
        question, answer = each.in_short(reports[figures])
        answers.append((f"[{question}]({_anchor(sections[figures])})", answer))
    machine = reports["h200/article.json"]["machine"]
    first = paragraphs(
        "# Results",
        table(("question", "answer"), answers).replace("--:", "---"),
        INTRODUCTION,
        f"{_machine(machine)} {SOURCE}",
    )
    return "\n".join((first, *sections.values()))


def _anchor(section: str) -> str:
    """Of its heading, as Markdown's readers make it."""
    heading = section.partition("\n")[0].removeprefix("## ").lower()
    return "#" + re.sub(r"[^\w -]", "", heading).replace(" ", "-")


def _machine(machine: dict[str, Any]) -> str:
    packages = ", ".join(f"{name} {machine[name]}" for name in ("boxloss", "triton", "torchvision"))
    return f"It was measured on {where(machine)}, {packages}; {machine['cpu']}."


def main() -> None:
    PAGE.write_text(page())
    print(PAGE)


if __name__ == "__main__":
    main()
