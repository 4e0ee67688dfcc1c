# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Shows the errors that were found: as tables."""

from __future__ import annotations

from rich.table import Table

from ..precision.report import SIDES
from .errors import PAIRS, ROUNDING, Row

MEASURES = ("loss", "gradient")


def error_table(rows: list[Row], box_format: str) -> Table:
    """Of the median pair."""
    shown = Table(title=f"{box_format}: relative error of the median pair", title_justify="left")
    for heading in ("dtypes", "error of", "", "sides in pixels:"):
        shown.add_column(heading, no_wrap=True)
    for side in SIDES:
        shown.add_column(str(side), justify="right", no_wrap=True)
    for pair in PAIRS[box_format]:
        names = dict.fromkeys(row["variant"] for row in rows if row["dtypes"] == pair)
        for measured in MEASURES:
            for name in names:
                if (name, measured) != (ROUNDING, "loss"):
                    found = by_side(rows, box_format, pair, name, measured)
                    cells = (scientific(found[side]) if side in found else "-" for side in SIDES)
                    shown.add_row(pair, measured, name, "", *cells)
        shown.add_section()
    return shown


def by_side(
    rows: list[Row], box_format: str, pair: str, name: str, measured: str, share: str = "median"
) -> dict[int, float | None]:
    """The error that `share` of the pairs are within."""
    where = (box_format, pair, name)
    return {
        row["side"]: row[measured][share]
        for row in rows
        if (row["format"], row["dtypes"], row["variant"]) == where
    }


def scientific(error: float | None) -> str:
    return "not finite" if error is None else f"{error:.1e}"
