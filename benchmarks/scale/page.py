# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""This study's section of docs/results.md. Every figure in it is taken from the report."""

from __future__ import annotations

from itertools import takewhile
from statistics import median
from typing import Any

from ..common.bars import dtypes, number
from ..common.groups import BOTH, FORWARD
from ..common.page import details, measured, paragraphs, picture, table
from .cases import Row
from .findings import best_clock, chosen, seconds, timed
from .page_layouts import layout_words
from .page_model import batch_words, model_words, off_words
from .page_ranks import cluster_words, rank_words
from .ranks import PAIR
from .report import CLOCKS
from .words import cell, memory_of, mostly_calls, rounded, time


def section(report: dict[str, Any]) -> str:
    rows, found = report["one"]["rows"], report["findings"]
    clock = best_clock(rows)
    several = (
        [
            rank_words(report["several"], found["ranks"]),
            cluster_words(report["several"], found["ranks"]),
        ]
        if "ranks" in found
        else [f"Several GPUs were not measured: {report['skipped'].get('several', '')}."]
    )
    off = paragraphs(
        off_words(rows, found, report["machine"], clock), batch_words(rows, found, clock)
    )
    return paragraphs(
        "## Scale: boxes, images, slots and GPUs",
        _answer(report, clock),
        picture("Time over the number of boxes, images, slots and GPUs", "h200/scale.svg"),
        _table(rows, clock),
        layout_words(rows, report["one"]["settings"], found, clock),
        model_words(found, clock),
        details("Where the model holds, and where it does not", off.rstrip()),
        *several,
        _conditions(report),
    )


def in_short(report: dict[str, Any]) -> tuple[str, str]:
    rows, found = report["one"]["rows"], report["findings"]
    clock = best_clock(rows)
    most = _largest(rows, clock)
    return (
        "From how many boxes on do bytes decide?",
        f"From some {rounded(_balance(found, PAIR, clock))} pairs on ({dtypes(PAIR)}, {BOTH}, "
        f"{CLOCKS[clock]}), of fewer it is the launch; {most['boxes']:,} take "
        f"{time(seconds(most, clock))}, {_rate(most, report['machine'], clock)}.",
    )


def _largest(rows: list[Row], clock: str) -> Row:
    points = chosen(rows, sweep="pairs", variant="boxloss", pair=PAIR, measured=BOTH)
    return max(timed(points, clock), key=lambda row: row["boxes"])


def _balance(found: dict[str, Any], pair: str, clock: str) -> float:
    (each,) = chosen(found["lines"], pair=pair, measured=BOTH, clock=clock)
    boxes: float = each["balance_boxes"]
    return boxes


def _rate(row: Row, machine: dict[str, str], clock: str) -> str:
    words = f"{number(row['bytes'] / seconds(row, clock) / 1e12)} TB/s"
    memory = memory_of(machine)
    return f"{words} of the {memory[0]}'s {memory[1] / 1e12:g}" if memory else words


def _answer(report: dict[str, Any], clock: str) -> str:
    rows, found = report["one"]["rows"], report["findings"]
    most = _largest(rows, clock)
    words = (
        f"**{most['boxes']:,} pairs take {time(seconds(most, clock))} forward and backward "
        f"({dtypes(PAIR)}, {CLOCKS[clock]}), {_rate(most, report['machine'], clock)}. Up to "
        f"some {rounded(_balance(found, PAIR, clock))} the launch decides, above it the bytes"
    )
    if "ranks" not in found:
        return words + ".**"
    shares = mostly_calls(found["ranks"]["shares"])
    return words + (
        f". Of loss and backward on {report['several']['ranks']} GPUs, with up to "
        f"{shares[-1]['boxes']:,} boxes on each, adding up their number is about "
        f"{median(each['count'] for each in shares):.0%}.**"
    )


def _table(rows: list[Row], clock: str) -> str:
    """Medians, and between which 80 % of the samples are."""
    pairs = list(dict.fromkeys(row["pair"] for row in chosen(rows, sweep="pairs")))
    head = ["pairs", *(f"{dtypes(pair)}, {each}" for pair in pairs for each in (FORWARD, BOTH))]
    head.append(f"eager / boxloss, {dtypes(pairs[0])}, {BOTH}")
    lines = []
    for size in dict.fromkeys(row["size"] for row in chosen(rows, sweep="pairs")):
        cells = [f"{size:,}"]
        at = chosen(rows, sweep="pairs", size=size)
        for pair in pairs:
            for each in (FORWARD, BOTH):
                cells.append(cell(chosen(at, variant="boxloss", pair=pair, measured=each), clock))
        cells.append(_ratio(chosen(at, pair=pairs[0], measured=BOTH), clock))
        lines.append(cells)
    what = f"{CLOCKS[clock][0].upper()}{CLOCKS[clock][1:]}"
    worst = max(row["difference"] for row in rows)
    eager = max(row["boxes"] for row in chosen(rows, sweep="pairs", variant="eager"))
    words = (
        f"{what}, µs: the median, and the range of 80 % of the samples. The eager formula was "
        f"measured up to {eager:,} pairs. No loss, which is at most 2, is further than "
        f"{worst:.1g} (absolute) from the formula in fp64."
    )
    return paragraphs(words, table(head, lines), *_narrow(rows, pairs, clock)).rstrip()


def _narrow(rows: list[Row], pairs: list[str], clock: str) -> list[str]:
    """What the last of the pairs, which has the fewest bytes, gains and loses beside the first."""
    wide, narrow = (
        {
            row["boxes"]: row
            for row in timed(
                chosen(rows, sweep="pairs", variant="boxloss", pair=pair, measured=BOTH), clock
            )
        }
        for pair in (pairs[0], pairs[-1])
    )
    both = sorted(wide.keys() & narrow.keys())
    times = {boxes: (seconds(narrow[boxes], clock), seconds(wide[boxes], clock)) for boxes in both}
    slower = list(takewhile(lambda boxes: times[boxes][0] > times[boxes][1], both))
    words = []
    if slower:
        most = max(times[boxes][0] - times[boxes][1] for boxes in slower)
        words.append(
            f"Up to {slower[-1]:,} pairs, {dtypes(pairs[-1])} takes up to {time(most)} longer "
            f"than {dtypes(pairs[0])} ({BOTH})."
        )
    last = both[-1]
    if last not in slower:
        words.append(
            f"With {last:,} it moves {narrow[last]['bytes'] / wide[last]['bytes']:.0%} of the "
            f"bytes in {times[last][0] / times[last][1]:.0%} of the time."
        )
    return [" ".join(words)]


def _ratio(rows: list[Row], clock: str) -> str:
    times = {row["variant"]: seconds(row, clock) for row in timed(rows, clock)}
    if times.keys() < {"boxloss", "eager"}:
        return "-"
    return f"{times['eager'] / times['boxloss']:.1f}"


def _conditions(report: dict[str, Any]) -> str:
    parts = [report[name] for name in ("one", "several") if name in report]
    machines = dict.fromkeys(measured(part, "h200/scale.json") for part in parts)
    left_out = "".join(
        f" Left out: {name}: {reason}." for name, reason in report["one"]["skipped"].items()
    )
    return " ".join(machines) + left_out
