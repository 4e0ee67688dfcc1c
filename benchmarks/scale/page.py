# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""This study's section of docs/results.md. Every figure in it is taken from the report."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import takewhile
from statistics import median
from typing import Any

from ..common.bars import dtypes, number
from ..common.page import details, measured, paragraphs, table
from .cases import LAYOUTS, RAGGED_PAIR, Row
from .findings import (
    CLUSTER_BOXES,
    best_clock,
    bytes_of_box,
    chosen,
    line_of,
    modelled,
    seconds,
    timed,
)
from .measure import BOTH, FORWARD
from .model import Line
from .ranks import LOSS, NORMALIZED, PAIR, STEP, gradient_of, millions
from .report import CLOCKS, SHOWN

PICTURE = "../benchmarks/results/h200/scale.svg"
WORTH_A_WORD = 0.05  # of a time
HOLDS = 0.2  # a model that is off by no more needs no excuse
PART_SLOTS = 256  # core/lanes/image_parts.hpp
MOSTLY_CALLS = 10**7  # boxes of each GPU: up to so many, a step is what its calls cost
# Bytes a second, by what NVIDIA's data sheet of the H200 calls "GPU memory bandwidth".
MEMORY_RATES = {"NVIDIA H200": 4.8e12}


def section(report: dict[str, Any]) -> str:
    rows, found = report["one"]["rows"], report["findings"]
    clock = best_clock(rows)
    several = (
        [_ranks(report["several"], found["ranks"]), _cluster(report["several"], found["ranks"])]
        if "ranks" in found
        else [f"Several GPUs were not measured: {report['skipped'].get('several', '')}."]
    )
    off = paragraphs(_off(rows, found, report["machine"], clock), _batches(rows, found, clock))
    return paragraphs(
        "## Scale: boxes, images, slots and GPUs",
        _answer(report, clock),
        f"![Time over the number of boxes, images, slots and GPUs]({PICTURE})",
        _table(rows, clock),
        _layouts(rows, report["one"]["settings"], found, clock),
        _model(found, clock),
        details("Where the model holds, and where it does not", off.rstrip()),
        *several,
        _conditions(report),
    )


def in_short(report: dict[str, Any]) -> tuple[str, str]:
    rows, found = report["one"]["rows"], report["findings"]
    clock = best_clock(rows)
    most = _largest(rows, clock)
    return (
        "From how many boxes on does memory decide?",
        f"From some {rounded(_balance(found, PAIR, clock))} pairs on ({dtypes(PAIR)}, {BOTH}, "
        f"{CLOCKS[clock]}), of fewer it is the launch; {most['boxes']:,} take "
        f"{time(seconds(most, clock))}, {_rate(most, report['machine'], clock)}.",
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


def _memory(machine: dict[str, str]) -> tuple[str, float] | None:
    """The machine's GPU and what its memory moves, if that is known here."""
    named = machine.get("gpu", "").split(",")[0]
    rate = MEMORY_RATES.get(named)
    return (named.removeprefix("NVIDIA "), rate) if rate else None


def _rate(row: Row, machine: dict[str, str], clock: str) -> str:
    words = f"{number(row['bytes'] / seconds(row, clock) / 1e12)} TB/s"
    memory = _memory(machine)
    return f"{words} of the {memory[0]}'s {memory[1] / 1e12:g}" if memory else words


def _answer(report: dict[str, Any], clock: str) -> str:
    rows, found = report["one"]["rows"], report["findings"]
    most = _largest(rows, clock)
    words = (
        f"**{most['boxes']:,} pairs take {time(seconds(most, clock))} forward and backward "
        f"({dtypes(PAIR)}, {CLOCKS[clock]}), {_rate(most, report['machine'], clock)}. Up to "
        f"some {rounded(_balance(found, PAIR, clock))} the launch decides, above it the memory"
    )
    if clock != "wall":
        words += f"; by the wall clock up to {rounded(_balance(found, PAIR, 'wall'))}"
    if "ranks" not in found:
        return words + ".**"
    shares = _mostly_calls(found["ranks"]["shares"])
    return words + (
        f". Of loss and backward on {report['several']['ranks']} GPUs, with up to "
        f"{shares[-1]['boxes']:,} boxes on each, adding up their number is about "
        f"{median(each['count'] for each in shares):.0%}.**"
    )


def _mostly_calls(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["boxes"] <= MOSTLY_CALLS]


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
                cells.append(_cell(chosen(at, variant="boxloss", pair=pair, measured=each), clock))
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
            f"than {dtypes(pairs[0])} ({BOTH}): its groups of 4 boxes a thread "
            "[leave threads idle](cuda.md#speed-and-what-limits-it)."
        )
    last = both[-1]
    if last not in slower:
        words.append(
            f"With {last:,} it moves {narrow[last]['bytes'] / wide[last]['bytes']:.0%} of the "
            f"bytes in {times[last][0] / times[last][1]:.0%} of the time."
        )
    return [" ".join(words)]


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


def _model(found: dict[str, Any], clock: str) -> str:
    line = line_of(found["lines"], PAIR, BOTH, clock)
    assert line is not None
    return (
        "**The model** is `seconds = launch + bytes / rate`, by the least squares of relative "
        f"deviations. For {dtypes(PAIR)}, {BOTH}, {bytes_of_box(PAIR, BOTH)} bytes a pair, the "
        f"launch is {time(line.fixed)} and the rate {number(line.rate / 1e12)} TB/s "
        f"(R² {line.r_squared:.3f} of the logarithms, at most {line.worst:.0%} off)."
    )


def _off(rows: list[Row], found: dict[str, Any], machine: dict[str, str], clock: str) -> str:
    dense = chosen(rows, sweep="pairs", variant="boxloss")
    words = [_furthest(dense, found, clock), *_cached(dense, found, machine)]
    if clock != "wall":
        both = line_of(found["lines"], PAIR, BOTH, "wall")
        assert both is not None
        fewest = min(chosen(dense, pair=PAIR, measured=BOTH), key=lambda row: row["boxes"])
        words += [
            _furthest(dense, found, "wall"),
            f"Of a single call ({dtypes(PAIR)}, {BOTH}), the host and its wait included, the fixed "
            f"part is {time(both.fixed)}; for {fewest['boxes']:,} pairs the host works "
            f"{time(seconds(fewest, 'host'))} of it, and then waits.",
        ]
    return " ".join(words)


def _furthest(dense: list[Row], found: dict[str, Any], clock: str) -> str:
    """With which two numbers of pairs; with one, if it holds for the second."""
    off: dict[int, tuple[float, Row]] = {}
    for row in _judged(dense, found, clock):
        here = 1 / _times_modelled(row, found, clock) - 1
        if row["boxes"] not in off or abs(here) > abs(off[row["boxes"]][0]):
            off[row["boxes"]] = here, row
    first, second = sorted(off.values(), key=lambda each: -abs(each[0]))[:2]
    places = [_place(*each) for each in (first, second) if each is first or abs(each[0]) > HOLDS]
    return f"By {CLOCKS[clock]} it is furthest off with {' and with '.join(places)}."


def _place(off: float, row: Row) -> str:
    more = "more" if off > 0 else "less"
    return (
        f"{row['boxes']:,} pairs ({dtypes(row['pair'])}, {row['measured']}: it says {abs(off):.0%} "
        f"{more} than was measured)"
    )


def _cached(dense: list[Row], found: dict[str, Any], machine: dict[str, str]) -> list[str]:
    """Whose bytes come faster, beside the launch, than the memory gives them."""
    memory = _memory(machine)
    if memory is None:
        return []
    faster = {}
    for row in _judged(dense, found, "gpu"):
        line = _its_line(row, found, "gpu")
        moving = seconds(row, "gpu") - line.fixed
        # Of fewer bytes the launch is most, and what is beside it mostly noise.
        if row["bytes"] > line.balance and row["bytes"] > memory[1] * (1 + HOLDS) * moving > 0:
            faster[row["bytes"] / moving] = row
    if not faster:
        return []
    rate = max(faster)
    row = faster[rate]
    return [
        f"It knows nothing of caches, from which inputs of middle sizes come: those of "
        f"{row['boxes']:,} pairs ({dtypes(row['pair'])}, {row['measured']}) at "
        f"{number(rate / 1e12)} TB/s beside the launch, where the memory has {memory[1] / 1e12:g}."
    ]


def _batches(rows: list[Row], found: dict[str, Any], clock: str) -> str:
    """How far the model holds for batches of images, which it was not fitted to."""
    points = [
        row
        for row in _judged(rows, found, clock)
        if row["sweep"] != "pairs" and row["variant"] in LAYOUTS
    ]
    if not points:
        return ""
    kinds = dict.fromkeys((layout, each) for layout in LAYOUTS for each in (BOTH, FORWARD))
    worst = {
        (layout, each): max(
            chosen(points, variant=layout, measured=each),
            key=lambda row: _times_modelled(row, found, clock),
        )
        for layout, each in kinds
    }
    times = {kind: _times_modelled(row, found, clock) for kind, row in worst.items()}
    lists = ", ".join(
        f"{_shown(layout)} {times[layout, BOTH]:.2f} and {times[layout, FORWARD]:.2f}"
        for layout in LAYOUTS
    )
    best, last = min(times, key=lambda kind: times[kind]), max(times, key=lambda kind: times[kind])
    words = (
        f"Batches of images ({dtypes(RAGGED_PAIR)}), which it was not fitted to, take up to so "
        f"many times what it says, {BOTH} and {FORWARD} alone: {lists}. It holds best "
        f"{_kind(best)}"
    )
    at = worst[last]
    if at["sweep"] != "images" or last[0] == "padded":
        return f"{words}, and worst {_kind(last)}."
    return (
        f"{words}, and worst {_kind(last)}, with {at['size']:,} images: an image costs time "
        "whatever its boxes."
    )


def _shown(layout: str) -> str:
    return SHOWN.get(layout, layout)


def _kind(kind: tuple[str, str]) -> str:
    return f"{_shown(kind[0])}, {kind[1]}"


def _judged(rows: list[Row], found: dict[str, Any], clock: str) -> list[Row]:
    """Those that there is a line for: two sizes have none."""
    return [row for row in timed(rows, clock) if modelled(row, found["lines"], clock)]


def _its_line(row: Row, found: dict[str, Any], clock: str) -> Line:
    line = modelled(row, found["lines"], clock)
    assert line is not None
    return line


def _times_modelled(row: Row, found: dict[str, Any], clock: str) -> float:
    return seconds(row, clock) / _its_line(row, found, clock).seconds(row["bytes"])


def _layouts(rows: list[Row], settings: dict[str, Any], found: dict[str, Any], clock: str) -> str:
    parts = [
        *_first_padded(chosen(rows, sweep="images"), settings["article"][1], clock),
        *_many_images(chosen(rows, sweep="images"), clock),
        *_crowded(chosen(rows, sweep="distributions"), settings["crowd"], clock),
        "Padded targets are read whole, with lengths or ragged only those that are there; the "
        "gradient is written for all slots in each layout.",
        _imbalance(found["distributions"]),
    ]
    return f"**Which layout?** ({dtypes(RAGGED_PAIR)}, {CLOCKS[clock]}.) {' '.join(parts)}".rstrip()


def _by_layout(rows: list[Row], clock: str) -> dict[str, float]:
    return {
        row["variant"]: seconds(row, clock)
        for row in timed(rows, clock)
        if row["variant"] in LAYOUTS
    }


def _fastest(times: dict[str, float]) -> str:
    return min(times, key=lambda layout: times[layout])


def _first_padded(rows: list[Row], slots: int, clock: str) -> list[str]:
    """Up to how many images of few boxes."""

    def times(size: int, each: str) -> dict[str, float]:
        return _by_layout(chosen(rows, size=size, measured=each), clock)

    sizes = dict.fromkeys(row["size"] for row in rows)
    first = list(takewhile(lambda size: _fastest(times(size, BOTH)) == "padded", sizes))
    if not first:
        return []
    behind = max(
        times(size, FORWARD)["padded"] - min(times(size, FORWARD).values()) for size in first
    )
    ahead = [sorted(times(size, BOTH).values()) for size in first]
    most = max(second - one for one, second, *_ in ahead)
    also = f"and forward at most {time(behind)} behind" if behind else "and forward"
    boxes = chosen(rows, size=first[-1])[0]["boxes"] / first[-1]
    return [
        f"Up to {first[-1]:,} images of {slots:,} slots, {boxes:.1f} of them valid, padded is "
        f"first {BOTH}, by up to {time(most)}, {also}."
    ]


def _many_images(rows: list[Row], clock: str) -> list[str]:
    """Of few boxes."""
    size = max(row["size"] for row in rows)
    times = {
        each: _by_layout(chosen(rows, size=size, measured=each), clock) for each in (FORWARD, BOTH)
    }
    first = _fastest(times[BOTH])
    if first == "padded" or _fastest(times[FORWARD]) != first:
        return []
    passes = " and ".join(
        f"{time(each[first])} beside {time(each['padded'])} padded ({name})"
        for name, each in times.items()
    )
    win = "lengths win" if first == "lengths" else f"{_shown(first)} wins"
    return [f"Where images are many and few slots valid, {win}: {size:,} images take {passes}."]


def _crowded(rows: list[Row], crowd: tuple[int, int], clock: str) -> list[str]:
    """Where padding is most of it all the same."""
    most = max(row["mean"] for row in rows)
    drawn = chosen(rows, mean=most, measured=BOTH)
    times = [
        _by_layout(chosen(drawn, distribution=name), clock)
        for name in dict.fromkeys(row["distribution"] for row in drawn)
    ]
    if any(_fastest(each) != "padded" for each in times):
        return []
    padded = [each["padded"] for each in times]
    others = [value for each in times for name, value in each.items() if name != "padded"]
    return [
        f"With {most:g} boxes in {crowd[1]:,} slots padded is first although "
        f"{1 - most / crowd[1]:.0%} of it is padding: {_range(padded)} {BOTH} beside "
        f"{_range(others)}, presumably because with lengths or ragged a warp walks an image's "
        "boxes one group after the other (not measured)."
    ]


def _range(values: Iterable[float]) -> str:
    low, *_, high = sorted(values)
    return f"{time(low).rpartition(' ')[0]} to {time(high)}"


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
    longer = _longer(part["settings"]["parameters"], found["boxes_like"])
    words = (
        f"**{part['ranks']} GPUs, {part['backend']}.** An all-reduce takes "
        f"{time(collective.fixed)} plus the bytes at {number(collective.rate / 1e9)} GB/s. "
        f"{_normalizer(steps, found['shares'])} {longer} Parts run one after "
        f"the other here, and their sum is within {found['parts_off']:.0%} of the step; "
        "DistributedDataParallel lets gradients travel during the network's backward."
    )
    hidden = table(["boxes on each GPU", *names], lines)
    return f"{words}\n\n{details('Wall time, µs, of the slowest GPU, by boxes', hidden)}"


def _normalizer(steps: list[Row], shares: list[Row]) -> str:
    few, last = _mostly_calls(shares), shares[-1]
    costs = [_in_step(steps, each["boxes"]) for each in few]
    words = (
        f"One normalizer for all makes the loss alone take about "
        f"{median(each['normalizer'] for each in few):.0%} ({time(median(costs))}) longer with up "
        f"to {few[-1]['boxes']:,} boxes on each"
    )
    if last is few[-1]:
        return f"{words}."
    return f"{words}, {last['normalizer']:.0%} with {last['boxes']:,}."


def _in_step(steps: list[Row], boxes: int) -> float:
    """What the normalizer costs beside the loss."""
    times = {row["step"]: seconds(row, "wall") for row in chosen(steps, boxes=boxes)}
    return times[NORMALIZED] - times[LOSS]


def _longer(parameters: list[int], boxes_like: dict[str, float]) -> str:
    """Than which all-reduces loss and backward take, by the model."""

    def where(boxes: float) -> str:
        if math.isinf(boxes):
            return "at no number of boxes"
        return f"from {rounded(boxes)} boxes a GPU on" if boxes else "at any number of boxes"

    networks = (f"{millions(n)} parameters {where(boxes_like[gradient_of(n)])}" for n in parameters)
    words = "By the model, loss and backward take longer than the all-reduce of"
    return f"{words} {', of '.join(networks)}."


def _cluster(part: Row, found: dict[str, Any]) -> str:
    parameters = part["settings"]["parameters"]
    names = [gradient_of(n) for n in parameters]
    collectives = chosen(part["rows"], part="collective")
    steps = chosen(part["rows"], part="step", boxes=CLUSTER_BOXES)
    lines = []
    inside = ""
    if steps:
        (step,) = chosen(steps, step=STEP)
        cost, took = _in_step(steps, CLUSTER_BOXES), seconds(step, "wall")
        gradients = (seconds(chosen(collectives, step=name)[0], "wall") for name in names)
        lines.append(
            [f"{part['ranks']}, measured", time(took), f"{cost / took:.0%}", *map(time, gradients)]
        )
        inside = f"; inside the measured step the count costs {time(cost)}"
    lines += [
        [
            f"{row['gpus']:,}, modelled",
            time(row["step"]),
            f"{row['count'] / row['step']:.0%}",
            *(time(row["gradients"][name]) for name in names),
        ]
        for row in found["cluster"]
    ]
    most = found["cluster"][-1]
    times = [most["gradients"][name] / most["step"] for name in names]
    costs = ", ".join(
        f"one of {millions(n)} parameters {each:.1f} times"
        for n, each in zip(parameters, times, strict=True)
    )
    latency = time(found["collective"]["fixed"])
    words = (
        f"**For a cluster**, modelled from {part['ranks']} GPUs, with {CLUSTER_BOXES:,} boxes on "
        "each: latency grows like log2 of their number, as in a tree, traffic as in a ring, and "
        "every link is taken to be as fast as theirs, which it is not between hosts. Boxes stay "
        "where they are, so the loss' own work does not grow; of the count, four bytes, only the "
        f"latency does. But for the links that is an upper bound: all of the {latency} is taken to "
        f"grow, although part of it is the call, its launch and wait{inside}. On "
        f"{most['gpus']:,} GPUs the gradients of a network take so many times as long as the loss "
        f"with its normalizer and backward: {costs}. DistributedDataParallel can hide most of that "
        "behind the network's backward (not measured)."
    )
    head = ["GPUs", STEP, "of it the count", *names]
    return f"{words}\n\n{table(head, lines)}"


def _conditions(report: dict[str, Any]) -> str:
    parts = [report[name] for name in ("one", "several") if name in report]
    machines = dict.fromkeys(measured(part, "h200/scale.json") for part in parts)
    left_out = "".join(
        f" Left out: {name}: {reason}." for name, reason in report["one"]["skipped"].items()
    )
    return " ".join(machines) + left_out
