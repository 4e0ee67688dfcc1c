# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""This study's section of docs/results.md. Every figure in it is taken from the report."""

from __future__ import annotations

from typing import Any

from ..common.bars import dtypes, number
from ..common.page import measured, paragraphs, table
from .cases import RAGGED_PAIR, Row
from .findings import CLUSTER_BOXES, best_clock, bytes_of_box, chosen, line_of, seconds, timed
from .measure import BOTH, FORWARD
from .model import Line
from .ranks import PAIR
from .report import CLOCKS

PICTURE = "../benchmarks/results/h200/scale.svg"
WORTH_A_WORD = 0.05  # of a time
PART_SLOTS = 256  # core/lanes/image_parts.hpp
SWEEPS = {
    "images": "numbers of images",
    "slots": "numbers of slots",
    "distributions": "three distributions",
}


def section(report: dict[str, Any]) -> str:
    rows, found = report["one"]["rows"], report["findings"]
    clock = best_clock(rows)
    several = (
        [
            _ranks(report["several"], found["ranks"]),
            _cluster(report["several"]["ranks"], found["ranks"]),
        ]
        if "ranks" in found
        else [f"Several GPUs were not measured: {report['skipped'].get('several', '')}."]
    )
    return paragraphs(
        "## Scale: boxes, images, slots and GPUs",
        _answer(rows, found, clock),
        f"![Time over the number of boxes, images, slots and GPUs]({PICTURE})",
        _table(rows, clock),
        _model(rows, found, clock),
        _batches(found),
        *several,
        _conditions(report),
    )


def time(value: float) -> str:
    """Of seconds."""
    unit, name = (1e-3, "ms") if value >= 1e-3 else (1e-6, "µs")
    return f"{number(value / unit)} {name}"


def rounded(boxes: float) -> str:
    """Two digits: no model knows more."""
    return f"{float(f'{boxes:.2g}'):,.0f}"


def _largest(rows: list[Row], clock: str) -> Row:
    points = chosen(rows, sweep="pairs", variant="boxloss", pair=PAIR, measured=BOTH)
    return max(timed(points, clock), key=lambda row: row["boxes"])


def _balance(found: dict[str, Any], pair: str, clock: str) -> float:
    (each,) = chosen(found["lines"], pair=pair, measured=BOTH, clock=clock)
    boxes: float = each["balance_boxes"]
    return boxes


def _answer(rows: list[Row], found: dict[str, Any], clock: str) -> str:
    largest = _largest(rows, clock)
    took = seconds(largest, clock)
    words = (
        f"**{largest['boxes']:,} pairs take {time(took)} forward and backward "
        f"({dtypes(PAIR)}, {CLOCKS[clock]}), {number(largest['bytes'] / took / 1e12)} TB/s. Up to "
        f"some {rounded(_balance(found, PAIR, clock))} the launch decides, above it the memory"
    )
    if clock != "wall":
        words += f"; by the wall clock up to {rounded(_balance(found, PAIR, 'wall'))}"
    if "ranks" not in found:
        return words + ".**"
    share = found["ranks"]["shares"][0]
    return words + (
        f". Of loss and backward on several GPUs, with as few as {share['boxes']:,} boxes each, "
        f"adding up their number is {share['count']:.0%}.**"
    )


def _table(rows: list[Row], clock: str) -> str:
    """Medians, and between which 80 % of the samples are."""
    pairs = list(dict.fromkeys(row["pair"] for row in chosen(rows, sweep="pairs")))
    head = ["pairs", *(f"{dtypes(pair)}, {each}" for pair in pairs for each in (FORWARD, BOTH))]
    lines = []
    for size in dict.fromkeys(row["size"] for row in chosen(rows, sweep="pairs")):
        cells = [f"{size:,}"]
        at = chosen(rows, sweep="pairs", size=size)
        for pair in pairs:
            for each in (FORWARD, BOTH):
                cells.append(_cell(chosen(at, variant="boxloss", pair=pair, measured=each), clock))
        cells.append(_ratio(chosen(at, pair=pairs[0], measured=BOTH), clock))
        lines.append(cells)
    what = f"{CLOCKS[clock][0].upper()}{CLOCKS[clock][1:]}"
    worst = max(row["difference"] for row in rows)
    return (
        f"{what}, µs: the median, and the range of 80 % of the samples. No loss is further than "
        f"{worst:.1g} from the formula in fp64.\n\n" + table([*head, "eager / boxloss"], lines)
    )


def _cell(rows: list[Row], clock: str) -> str:
    if not rows or clock not in rows[0]["microseconds"]:
        return "-"
    each = rows[0]["microseconds"][clock]
    return f"{number(each['median'])} ({number(each['p10'])} to {number(each['p90'])})"


def _ratio(rows: list[Row], clock: str) -> str:
    times = {row["variant"]: seconds(row, clock) for row in timed(rows, clock)}
    if times.keys() < {"boxloss", "eager"}:
        return "-"
    return f"{times['eager'] / times['boxloss']:.1f}"


def _model(rows: list[Row], found: dict[str, Any], clock: str) -> str:
    line = line_of(found["lines"], PAIR, BOTH, clock)
    assert line is not None
    wall = [row for row in found["lines"] if row["clock"] == "wall"]
    words = (
        "The model is `seconds = launch + bytes / rate`, by the least squares of relative "
        f"deviations. For {dtypes(PAIR)}, {BOTH}, {bytes_of_box(PAIR, BOTH)} bytes a pair, the "
        f"launch is {time(line.fixed)} and the rate {number(line.rate / 1e12)} TB/s "
        f"(R² {line.r_squared:.3f} of the logarithms, at most {line.worst:.0%} off)"
    )
    if clock != "wall":
        both = line_of(wall, PAIR, BOTH, "wall")
        assert both is not None
        points = chosen(rows, sweep="pairs", variant="boxloss", pair=PAIR, measured=BOTH)
        fewest = min(points, key=lambda row: row["boxes"])
        words += (
            f"; of a single call, the host and its wait included, the fixed part is "
            f"{time(both.fixed)}; for {fewest['boxes']:,} pairs the host works "
            f"{time(seconds(fewest, 'host'))} of it, and then waits"
        )
    worst = max(row["line"]["worst"] for row in chosen(found["lines"], clock=clock))
    return words + f". Over all dtypes and passes it is at most {worst:.0%} off." + _cached(worst)


def _cached(worst: float) -> str:
    if worst < 0.2:
        return ""
    return " It knows nothing of caches, from which inputs of middle sizes are read."


def _batches(found: dict[str, Any]) -> str:
    lines = []
    for sweep, words in SWEEPS.items():
        if each := chosen(found["ragged"], sweep=sweep):
            low, high = min(row["lowest"] for row in each), max(row["highest"] for row in each)
            lines.append(f"{low:.2f} to {high:.2f} over the {words}")
    words = (
        f"Batches of images ({dtypes(RAGGED_PAIR)}), which it was not fitted to, take so many "
        f"times what it says: {', '.join(lines)}. Padded targets are read whole, with lengths or "
        "offsets only those that are there; the gradient is written for all slots in each layout."
    )
    return f"{words} {_imbalance(found['distributions'])}"


def _imbalance(rows: list[Row]) -> str:
    if not rows:
        return ""
    times = [row["times"] for row in rows]
    words = (
        "As many boxes, heavy-tailed among the images instead of uniform, take "
        f"{min(times):.2f} to {max(times):.2f} times as long: "
    )
    why = f"a warp takes at most {PART_SLOTS} slots of an image, "
    if max(times) < 1 + WORTH_A_WORD:
        return f"{words}{why}so a crowded one holds up nobody."
    return f"{words}{why}and the one with the most boxes ends last."


def _ranks(part: Row, found: dict[str, Any]) -> str:
    collective = Line(**found["collective"])
    steps = chosen(part["rows"], part="step")
    names = list(dict.fromkeys(row["step"] for row in steps))
    lines = [
        [
            f"{boxes:,}",
            *(_cell(chosen(steps, boxes=boxes, step=name), "wall") for name in names),
        ]
        for boxes in dict.fromkeys(row["boxes"] for row in steps)
    ]
    first, last = found["shares"][0], found["shares"][-1]
    longer = (
        f"{name}: {f'from {rounded(boxes)} boxes on' if boxes else 'with any number of boxes'}"
        for name, boxes in found["boxes_like"].items()
    )
    words = (
        f"**{part['ranks']} GPUs, {part['backend']}.** An all-reduce takes "
        f"{time(collective.fixed)}, and {number(collective.rate / 1e9)} GB/s of what it adds up. "
        f"With the normalizer the loss alone takes {first['normalizer']:.0%} longer for "
        f"{first['boxes']:,} boxes each, {last['normalizer']:.0%} for {last['boxes']:,}. The loss "
        "with its backward takes longer than adding up the gradients of a network "
        f"({'; '.join(longer)}, on each GPU). Parts stand one behind the other here, and their "
        f"sum is within {found['parts_off']:.0%} of the step; DistributedDataParallel lets "
        "gradients travel during the network's backward."
    )
    return "\n\n".join(
        [words, "Wall time, µs, of the slowest rank.", table(["boxes of each", *names], lines)]
    )


def _cluster(ranks: int, found: dict[str, Any]) -> str:
    names = list(found["cluster"][0]["gradients"])
    head = ["GPUs", "loss + backward", "of it the count", *names]
    lines = [
        [
            f"{row['gpus']:,}{' *' if row['extrapolated'] else ''}",
            time(row["step"]),
            f"{row['count'] / row['step']:.0%}",
            *(time(row["gradients"][name]) for name in names),
        ]
        for row in found["cluster"]
    ]
    most = found["cluster"][-1]
    times = [most["gradients"][name] / most["step"] for name in names]
    words = (
        f"**For a cluster**, with {CLUSTER_BOXES:,} boxes on each GPU; * is extrapolated from "
        f"{ranks} GPUs: latency grows like log2 of their number, as in a tree, traffic as in a "
        "ring, and every link is taken to be as fast as theirs, which it is not between hosts. "
        "Boxes stay where they are, so the loss' own work does not grow; four bytes travel, and "
        f"only their latency grows. On {most['gpus']:,} GPUs the gradients of these networks take "
        f"{min(times):.1f} to {max(times):.1f} times as long as the loss, its normalizer and its "
        "backward together"
    )
    decides = (
        "it is the network's size that decides, not the boxes"
        if min(times) > 1
        else "with a small network the latencies of the loss count, too"
    )
    return f"{words}: {decides}.\n\n" + table(head, lines)


def _conditions(report: dict[str, Any]) -> str:
    parts = [report[name] for name in ("one", "several") if name in report]
    machines = dict.fromkeys(measured(part, "h200/scale.json") for part in parts)
    left_out = "".join(
        f" Left out: {name}: {reason}." for name, reason in report["one"]["skipped"].items()
    )
    return " ".join(machines) + left_out
