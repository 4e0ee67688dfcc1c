# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What the cells say together: ratios, where a branch pays, and what a simple model expects."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from math import comb
from typing import Any

from rich.table import Table

from .cases import batch_name
from .kernels import BEFORE_READING, NO_BRANCH
from .measure import Cell

WORTH = 0.05  # of the time: what less saves or costs is called no difference


class Report:
    """A document with its cells by what was measured."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document
        self.settings: dict[str, Any] = document["settings"]
        self.cells: list[Cell] = document["cells"]
        self._by_key: dict[tuple[int, str, float, int], Cell] = {
            key(cell): cell for cell in self.cells
        }
        alone = (times["median"] for times in document["one_warp_microseconds"])
        self._alone: dict[int, float] = dict(zip(self.settings["repetitions"], alone, strict=True))

    def cell(self, images: int, layout: str, share: float, times: int) -> Cell:
        return self._by_key[images, layout, share, times]

    def row(self, images: int, layout: str, share: float) -> list[Cell]:
        """By the number of repetitions."""
        return [self.cell(images, layout, share, k) for k in self.settings["repetitions"]]

    def alone(self, times: int) -> float:
        """What one warp takes alone, in microseconds."""
        return self._alone[times]

    def expected(self, cell: Cell) -> float:
        """The ratio by a simple model, of both times. A kernel takes as long as the longest of:
        its reading, as what it takes with the fewest repetitions; one warp alone, which waits for
        each result; and the formula, in proportion to repetitions and to warps with work."""
        row = self.row(cell["images"], cell["layout"], cell["share"])
        *_, before, last = row
        more = last["times"] - before["times"]
        each = (median(last, NO_BRANCH) - median(before, NO_BRANCH)) / more
        launch, alone = (self.alone(k) for k in (row[0]["times"], cell["times"]))

        def modelled(variant: str, warps: float) -> float:
            reading = median(row[0], variant)
            return max(reading, alone, launch + warps * each * cell["times"]) if warps else reading

        return modelled(BEFORE_READING, cell["active_warps"]) / modelled(NO_BRANCH, 1)

    def pays_for(self, images: int, layout: str, share: float) -> str:
        """The numbers of repetitions for which the branch pays, in words."""
        every = self.settings["repetitions"]
        paying = [cell["times"] for cell in self.row(images, layout, share) if pays(cell)]
        rest = [times for times in every if times not in paying]
        if not paying:
            return "never"
        if not rest:
            return "always"
        if len(paying) == 1:
            return f"only {paying[0]}"
        if paying == every[-len(paying) :]:
            return f"from {paying[0]}"
        if paying == every[: len(paying)]:
            return f"up to {paying[-1]}"
        few, words = (rest, "all but ") if len(rest) < len(paying) else (paying, "")
        return words + ", ".join(map(str, few))


def key(cell: Cell) -> tuple[int, str, float, int]:
    return cell["images"], cell["layout"], cell["share"], cell["times"]


def median(cell: Cell, variant: str) -> float:
    """In microseconds."""
    return float(cell["microseconds"][variant]["median"])


def ratio(cell: Cell, variant: str = BEFORE_READING) -> float:
    """How many times the time without a branch."""
    return median(cell, variant) / median(cell, NO_BRANCH)


def pays(cell: Cell, variant: str = BEFORE_READING) -> bool:
    """Does it save WORTH, and more than the times spread?"""
    ours, other = (cell["microseconds"][each] for each in (variant, NO_BRANCH))
    return ratio(cell, variant) < 1 - WORTH and bool(ours["p90"] < other["p10"])


def costs(cell: Cell, variant: str = BEFORE_READING) -> bool:
    """The same the other way round."""
    ours, other = (cell["microseconds"][each] for each in (variant, NO_BRANCH))
    return ratio(cell, variant) > 1 + WORTH and bool(ours["p10"] > other["p90"])


def fullest(share: float, warps: int, schedulers: int) -> float:
    """How much of its warps has work on the scheduler that has most, if chance gives work to a
    share of all warps: the mean of the largest of as many binomial numbers."""
    chances = (comb(warps, k) * share**k * (1 - share) ** (warps - k) for k in range(warps))
    return sum(1 - up_to**schedulers for up_to in accumulate(chances)) / warps


def percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def table(report: Report, images: int, layout: str) -> Table:
    """The time without a branch, and what the branch takes of it."""
    settings = report.settings
    shown = Table(
        title=f"{batch_name(images)}, valid ones {layout}: time with a branch / without",
        title_justify="left",
    )
    shown.add_column("repetitions", no_wrap=True)
    for times in settings["repetitions"]:
        shown.add_column(str(times), justify="right")
    most = report.row(images, layout, settings["shares"][-1])
    shown.add_row(f"{NO_BRANCH}, µs", *(f"{median(cell, NO_BRANCH):.2f}" for cell in most))
    for share in settings["shares"]:
        row = report.row(images, layout, share)
        shown.add_row(f"{percent(share)} valid", *(f"{ratio(cell):.3f}" for cell in row))
    return shown
