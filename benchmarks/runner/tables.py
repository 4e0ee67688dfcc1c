# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What was measured side by side, as a table for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from .results import Row

# Of fewer bytes a launch, not the memory, decides.
LARGE = 2**23


def table(rows: Sequence[Row], columns: Row) -> Table:
    """A line for each variant, with its quantities and how many times the first one's each is."""
    shown = Table(title=", ".join(str(each) for each in columns.values()), title_justify="left")
    shown.add_column("variant", no_wrap=True)
    found = {(row.get("variant", ""), row["quantity"]): row for row in rows}
    variants = list(dict.fromkeys(variant for variant, _ in found))
    quantities = {row["quantity"]: row["unit"] for row in rows}
    moved = columns.get("bytes", 0)
    for quantity, unit in quantities.items():
        shown.add_column(f"{quantity} {unit}".strip(), justify="right", no_wrap=True)
        if len(variants) > 1:
            shown.add_column("ratio", justify="right")
    if moved >= LARGE:
        shown.add_column("GB/s", justify="right")
    for variant in variants:
        cells = [variant]
        for quantity in quantities:
            row, first = (found.get((each, quantity)) for each in (variant, variants[0]))
            cells.append(number(row["median"]) if row else "-")
            if len(variants) > 1:
                cells.append(_ratio(row, first))
        if moved >= LARGE:
            times = [found.get((variant, clock)) for clock in ("gpu", "stream", "wall")]
            time: Any = next((each for each in times if each), None)
            cells.append(number(moved / time["median"] / 1e3) if time else "-")
        shown.add_row(*cells)
    return shown


def _ratio(row: Row | None, first: Row | None) -> str:
    return f"{row['median'] / first['median']:.3g}" if row and first and first["median"] else "-"


def number(value: float) -> str:
    """With three digits, or all of those before the point."""
    size = abs(value)
    if size and size < 1e-3:
        return f"{value:.2e}"
    decimals = 3 if size < 1 else 2 if size < 10 else 1 if size < 100 else 0
    return f"{value:,.{decimals}f}"
