# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What a study measured: the rows of one table, and the JSON file that holds them.

A row is one quantity of one variant: the study's own columns (case, dtypes, pass...), "variant",
"quantity" (a clock, "peak", an error...), "unit", and "median", "low" and "high": the quartiles,
null where there was one sample. "run" counts the runs, each with command, commit and machine.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pandas import DataFrame

Row = dict[str, Any]

STATISTICS = ("median", "low", "high")
OWN = ("variant", "quantity", "unit", *STATISTICS)  # others are shared by many rows
DIGITS = 5


def summary(samples: Sequence[float], scale: float = 1.0) -> dict[str, float | None]:
    """The median and the quartiles, times `scale`."""
    if len(samples) == 1:
        return {"median": samples[0] * scale, "low": None, "high": None}
    low, median, high = statistics.quantiles(samples, method="inclusive")
    return {"median": median * scale, "low": low * scale, "high": high * scale}


@dataclass
class Results:
    study: str
    runs: list[dict[str, Any]] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)

    def add(self, row: Row) -> None:
        """Replaces the row that differs in its figures alone, if there is one."""
        key = _key(row)
        self.rows = [each for each in self.rows if _key(each) != key]
        self.rows.append(row)

    @property
    def machine(self) -> dict[str, str]:
        """Of the last run that has rows."""
        machine: dict[str, str] = self.runs[max(row["run"] for row in self.rows)]["machine"]
        return machine

    def frame(self) -> DataFrame:
        import pandas

        return pandas.DataFrame(self.rows)

    def write(self, path: Path) -> None:
        """Rows that share all columns but OWN are a group, which has these once. A run of which no
        row is left is dropped, unless it is the last."""
        kept = sorted({row["run"] for row in self.rows} | {len(self.runs) - 1})
        groups: dict[str, list[str]] = {}
        for row in self.rows:
            shared = {name: each for name, each in row.items() if name not in OWN}
            shared["run"] = kept.index(row["run"])
            cells = [_rounded(row[name]) for name in OWN if row[name] is not None]
            groups.setdefault(_json(shared), []).append(_json(cells))
        lines = [
            f'{{"shared": {g},\n   "rows": [{_lines(rows, 4)}]}}' for g, rows in groups.items()
        ]
        head = {"study": self.study, "runs": [self.runs[i] for i in kept], "own": OWN}
        text = json.dumps(head, indent=1, ensure_ascii=False).removesuffix("\n}")
        # At once: whoever stops a program leaves the old file or the new one.
        unfinished = path.with_name(f"{path.name}.part")
        unfinished.write_text(f'{text},\n "groups": [{_lines(lines, 2)}]\n}}\n')
        unfinished.replace(path)


def read_results(path: Path) -> Results:
    document = json.loads(path.read_text())
    rows = [
        group["shared"] | dict(zip_longest(OWN, cells))
        for group in document["groups"]
        for cells in group["rows"]
    ]
    return Results(document["study"], document["runs"], rows)


def number(value: float) -> str:
    """With three digits, or all of those before the point."""
    size = abs(value)
    if size and size < 1e-3:
        return f"{value:.2e}"
    decimals = 3 if size < 1 else 2 if size < 10 else 1 if size < 100 else 0
    return f"{value:,.{decimals}f}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _lines(items: list[str], indent: int) -> str:
    return ",".join(f"\n{' ' * indent}{item}" for item in items)


def _key(row: Row) -> Row:
    return {name: each for name, each in row.items() if name not in (*STATISTICS, "run")}


def _rounded(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short.is_integer() else short
