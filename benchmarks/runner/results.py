# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What a study measured: the rows of one table, and the JSON file that holds them.

A row is one quantity of one variant: the study's own columns (case, dtypes, pass...), "variant",
"quantity" (a clock, "peak", an error...), "unit", and "median", "low" and "high": the quartiles,
null where there was one sample. "run" counts the runs, each with command, commit and machine.
A file keeps the rows of all its runs. What is shown are pooled ones: of a row that several runs
have, the median and the quartiles of their medians.
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
SAME = ("cpu", "gpu", "torch", "boxloss")  # of machines whose runs are pooled
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
        """Replaces the row of its run that differs in its figures alone, if there is one."""
        key = _key(row)
        self.rows = [each for each in self.rows if _key(each) != key]
        self.rows.append(row)

    def merge(self, other: Results) -> None:
        """Adds the runs of another file. ValueError if one is here already."""
        for place, run in enumerate(other.runs):
            rows = other.rows_of(place)
            if any(run == mine and rows == self.rows_of(i) for i, mine in enumerate(self.runs)):
                raise ValueError(f"this run is there already: {run['command']}")
            self.runs.append(run)
            self.rows += [row | {"run": len(self.runs) - 1} for row in rows]

    def rows_of(self, run: int) -> list[Row]:
        """Without its number."""
        return [
            {name: each for name, each in row.items() if name != "run"}
            for row in self.rows
            if row["run"] == run
        ]

    def pooled(self) -> list[Row]:
        """In the order of the first runs. ValueError if runs of one row are of several commits or
        kinds of machine."""
        alike: dict[str, list[Row]] = {}
        for row in self.rows:
            alike.setdefault(_json(_key(row) | {"run": None}), []).append(row)
        return [self._pooled(rows) for rows in alike.values()]

    def _pooled(self, rows: list[Row]) -> Row:
        if len(rows) == 1:
            return rows[0]
        runs = [self.runs[row["run"]] for row in rows]
        kinds = {(run["commit"], *map(run["machine"].get, SAME)) for run in runs}
        if len(kinds) > 1:
            raise ValueError(f"{_key(rows[0])} is of several commits or machines: {kinds}")
        return rows[-1] | summary([row["median"] for row in rows])

    @property
    def machine(self) -> dict[str, str]:
        """Of the last run that has rows."""
        machine: dict[str, str] = self.runs[max(row["run"] for row in self.rows)]["machine"]
        return machine

    def frame(self) -> DataFrame:
        import pandas

        return pandas.DataFrame(self.pooled())

    def write(self, path: Path) -> None:
        """Rows that share all columns but OWN are a group, which has these once."""
        groups: dict[str, list[str]] = {}
        for row in self.rows:
            shared = {name: each for name, each in row.items() if name not in OWN}
            cells = [_rounded(row[name]) for name in OWN if row[name] is not None]
            groups.setdefault(_json(shared), []).append(_json(cells))
        lines = [
            f'{{"shared": {g},\n   "rows": [{_lines(rows, 4)}]}}' for g, rows in groups.items()
        ]
        head = {"study": self.study, "runs": self.runs, "own": OWN}
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
    return {name: each for name, each in row.items() if name not in STATISTICS}


def _rounded(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short.is_integer() else short
