# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What the pieces of this study's section are written with."""

from __future__ import annotations

from ..common.bars import number
from ..common.page import spread
from .cases import Row

MOSTLY_CALLS = 10**7  # boxes of each GPU: up to so many, a step is what its calls cost
# Bytes a second: "GPU memory bandwidth" in NVIDIA's data sheet of the H200.
MEMORY_RATES = {"NVIDIA H200": 4.8e12}


def time(value: float) -> str:
    """Of seconds."""
    unit, name = (1e-3, "ms") if value >= 1e-3 else (1e-6, "µs")
    return f"{number(value / unit)} {name}"


def rounded(boxes: float) -> str:
    """Two digits: no model knows more."""
    return f"{float(f'{boxes:.2g}'):,.0f}"


def cell(rows: list[Row], clock: str) -> str:
    if not rows or clock not in rows[0]["microseconds"]:
        return "-"
    return spread(rows[0]["microseconds"][clock])


def memory_of(machine: dict[str, str]) -> tuple[str, float] | None:
    """The machine's GPU and what its memory moves, if that is known here."""
    named = machine.get("gpu", "").split(",")[0]
    rate = MEMORY_RATES.get(named)
    return (named.removeprefix("NVIDIA "), rate) if rate else None


def mostly_calls(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["boxes"] <= MOSTLY_CALLS]
