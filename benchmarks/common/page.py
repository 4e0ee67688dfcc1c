# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Pieces of docs/results.md: Markdown, of which every figure comes out of a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .bars import number
from .output import where

RESULTS = "../benchmarks/results"  # from docs

Spread = Mapping[str, float]  # as common.spread has it


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """The first column to the left, the others to the right."""
    lines = [headings, ["---", *["--:"] * (len(headings) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def spread(each: Spread) -> str:
    """The median, and in brackets what a summary has around it where three digits tell it apart."""
    middle = number(each["median"])
    low, high = (number(end) for name, end in each.items() if name != "median")
    return middle if low == middle == high else f"{middle} ({low} to {high})"


def picture(words: str, file: str) -> str:
    return f"![{words}]({RESULTS}/{file})"


def measured(report: Mapping[str, Any], file: str) -> str:
    """By which machine and command, and where all figures are."""
    machine = report["machine"]
    return f"`{report['command']}` on {where(machine)} ([figures]({RESULTS}/{file}))."


def details(words: str, hidden: str) -> str:
    """Folded, under `words`: for those who want all of it."""
    return f"<details><summary>{words}</summary>\n\n{hidden}\n\n</details>"


def paragraphs(*parts: str) -> str:
    return "\n\n".join(parts) + "\n"
