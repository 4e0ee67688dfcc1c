# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What was measured side by side, as a table for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table

from .results import Row, number


def table(rows: Sequence[Row], columns: Row, ratios: Sequence[str] | None = None) -> Table:
    """A line for each variant, with its quantities and how many times the first one's each is."""
    words = [each if isinstance(each, str) else f"{each:,} {n}" for n, each in columns.items()]
    shown = Table(title=", ".join(words), title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    shown.add_column("variant", no_wrap=True)
    found = {(row.get("variant", ""), row["quantity"]): row for row in rows}
    variants = list(dict.fromkeys(variant for variant, _ in found))
    quantities = {row["quantity"]: row["unit"] for row in rows}
    compared = [] if len(variants) < 2 else list(quantities) if ratios is None else ratios
    for quantity, unit in quantities.items():
        shown.add_column(f"{quantity} {unit}".strip(), justify="right", no_wrap=True)
        if quantity in compared:
            shown.add_column("ratio", justify="right")
    for variant in variants:
        cells = [variant]
        for quantity in quantities:
            row, first = (found.get((each, quantity)) for each in (variant, variants[0]))
            cells.append(_cell(row) if row else "-")
            if quantity in compared:
                known = row and first and first["median"]
                cells.append(f"{row['median'] / first['median']:.3g}" if known else "-")
        shown.add_row(*cells)
    return shown


def _cell(row: Row) -> str:
    value = row["median"]
    is_count = not row["unit"] and float(value).is_integer()
    return f"{int(value):,}" if is_count else number(value)
