# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Bars that can be compared: from zero, on a linear axis, each with its number."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from .output import BLUE, DARK, GREY, PALE, quiet_axes

HEIGHT = 0.27  # inches for a bar
DTYPES = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "u8": "uint8"}


def bars(panel: Any, values: Mapping[str, float], unit: str, limits: Collection[str] = ()) -> None:
    """One for each name, boxloss' own in blue; `limits` are of the hardware."""
    colours = [
        BLUE if name.startswith("boxloss") else PALE if name in limits else GREY for name in values
    ]
    drawn = panel.barh(list(values), list(values.values()), color=colours, height=0.68)
    panel.bar_label(drawn, [number(value) for value in values.values()], padding=3, fontsize=8)
    panel.set_xlim(0, 1.2 * max(values.values()))  # room for the numbers
    panel.invert_yaxis()
    panel.set_xlabel(unit, fontsize=8, color=DARK)
    quiet_axes(panel)


def number(value: float) -> str:
    """With three digits, or all of those before the point."""
    decimals = 3 if value < 1 else 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:,.{decimals}f}"


def dtypes(pair: str) -> str:
    """Of predictions and true boxes, in words."""
    return " / ".join(DTYPES[each] for each in pair.split("/"))
