# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What was found, as a section of the results page. Every figure is the report's."""

from __future__ import annotations

import math
import statistics
from typing import Any

from ..common.bars import number
from ..common.page import details, measured, paragraphs, picture, table
from .cases import SLOTS, WARP, batch_name
from .kernels import AROUND_FORMULA, BEFORE_READING, IN_TURN, NO_BRANCH, VARIANTS
from .measure import Cell
from .report import WORTH, Report, costs, fullest, median, pays, percent, ratio

BOX_BYTES, LOSS_BYTES = 16, 4
HIDDEN = 0.01  # of the time: what costs no more does not show
MULTIPROCESSORS = {"H200": 132}  # of GPUs that measured; the figures do not tell
SCHEDULERS = 4  # of a multiprocessor

PICTURE = picture(
    "What a branch over invalid slots leaves of a kernel's time", "h200/conditional.svg"
)


def section(document: dict[str, Any]) -> str:
    report = Report(document)
    images = report.settings["images"]
    return paragraphs(
        "## Does it pay to skip invalid boxes by a branch?",
        _answer(report),
        PICTURE,
        _columns(report),
        _table(report, images[0]),
        *(details(batch_name(each), _table(report, each)) for each in images[1:]),
        "\n".join(
            [
                _bandwidth(report),
                _divergence(report),
                _balance(report),
                _occupancy(document),
                _latency(report),
                _wait(report),
            ]
        ),
        _model(report),
        _source(document, report),
    )


def in_short(document: dict[str, Any]) -> tuple[str, str]:
    report = Report(document)
    first, last = _of_the_article(report)
    share, full = _full(report)
    return (
        "Does it pay to skip invalid slots?",
        f"With the valid ones in front, as padding has them, it saves {_saved(first)} of the time "
        f"of one GIoU for each pair and {_saved(last)} of that of {last['times']} (the article's "
        f"batch); scattered, from {percent(share)} valid on, it saves {percent(WORTH)} or more in "
        f"{sum(map(pays, full))} of {len(full)} cases.",
    )


def _answer(report: Report) -> str:
    first, last = _of_the_article(report)
    worst = max(report.cells, key=ratio)
    return (
        f"In the article's batch, {batch_name(first['images'])} with {percent(first['share'])} "
        f"valid in front of each image, a branch over the others saves {_saved(first)} of the time "
        f"of one GIoU for each pair and {_saved(last)} of that of {last['times']}. {_front(report)}"
        f"{_scattered(report)}It costs {percent(WORTH)} or more in "
        f"{sum(map(costs, report.cells))} of all {len(report.cells)} cases, at worst "
        f"{percent(ratio(worst) - 1)} ({_place(worst)}). On GPUs boxloss itself first reads "
        "what tells whether a slot counts, and leaves the prediction of one that does not unread "
        "(where a thread takes up to four neighbours, if none of them counts)."
    )


def _front(report: Report) -> str:
    """Up to which share it always pays."""
    in_front = [cell for cell in report.cells if cell["layout"] == "front"]
    least = min((cell["share"] for cell in in_front if not pays(cell)), default=math.inf)
    always = [share for share in report.settings["shares"] if share < least]
    if not always:
        return ""
    return (
        "With valid slots in front, as padding makes them, whole warps are empty: up to "
        f"{percent(always[-1])} valid the branch saves {percent(WORTH)} or more at any number of "
        "repetitions. "
    )


def _scattered(report: Report) -> str:
    share, full = _full(report)
    return (
        f"Scattered, from {percent(share)} valid on hardly a warp is empty, and it saves as much "
        f"in {sum(map(pays, full))} of {len(full)} cases. "
    )


def _full(report: Report) -> tuple[float, list[Cell]]:
    """From which share on scattered slots give nearly every warp work, and the cells of those."""
    full = [
        cell
        for cell in report.cells
        if cell["layout"] == "scattered" and cell["active_warps"] > 1 - WORTH
    ]
    return min(cell["share"] for cell in full), full


def _of_the_article(report: Report) -> tuple[Cell, Cell]:
    """Its share of valid slots, with the fewest and with the most repetitions."""
    first, *_, last = report.row(report.settings["images"][0], "front", _shares(report)[0])
    return first, last


def _saved(cell: Cell) -> str:
    return f"{100 * (1 - ratio(cell)):.0f} %"


def _columns(report: Report) -> str:
    first, *_, last = report.settings["repetitions"]
    return (
        "Above, in the picture and in the table the branch stands before the prediction is read. "
        f"Time with it, of the time without, for {first} and {last} repetitions of the formula, "
        f"and for how many of them it pays, by {percent(WORTH)} or more:"
    )


def _table(report: Report, images: int) -> str:
    first, *_, last = report.settings["repetitions"]
    layouts = report.settings["layouts"]
    columns = [f"{layout}, {w}" for layout in layouts for w in (f"{first} ×", f"{last} ×", "pays")]
    lines = []
    for share in report.settings["shares"]:
        cells = []
        for layout in layouts:
            row = report.row(images, layout, share)
            cells += [percent(ratio(cell)) for cell in (row[0], row[-1])]
            cells.append(report.pays_for(images, layout, share))
        lines.append([percent(share), *cells])
    return table([f"{batch_name(images)}: valid", *columns], lines)


def _bandwidth(report: Report) -> str:
    cell = report.row(report.settings["images"][-1], "front", _shares(report)[0])[0]
    around, before = (percent(ratio(cell, each)) for each in (AROUND_FORMULA, BEFORE_READING))
    moved = cell["images"] * SLOTS * (2 * BOX_BYTES + LOSS_BYTES)
    return (
        f"- **Bandwidth.** A slot is two boxes and a loss, {2 * BOX_BYTES + LOSS_BYTES} bytes; a "
        f"branch can leave {BOX_BYTES} of them unread. Without one, {batch_name(cell['images'])} "
        f"take {median(cell, NO_BRANCH):.1f} µs for one formula each, "
        f"{moved / median(cell, NO_BRANCH) * 1e-6:.2f} TB/s. With {percent(cell['share'])} valid "
        f"in front, a branch around the formula leaves {around} of that, and one before the "
        f"prediction is read {before}."
    )


def _divergence(report: Report) -> str:
    images, some = report.settings["images"][-1], _shares(report)
    lines = []
    for share in some[: len(some) // 2 + 1]:
        front, scattered = (
            percent(report.row(images, layout, share)[0]["active_warps"])
            for layout in ("front", "scattered")
        )
        lines.append(f"{front} and {scattered} with {percent(share)}")
    return (
        f"- **Divergence.** The {WARP} threads of a warp go through the formula together if one of "
        "them has to. Shares of warps with work, valid slots in front and scattered: "
        f"{'; '.join(lines)} valid. Scattered, it is 1 − (1 − s)<sup>{WARP}</sup> of a "
        "share s."
    )


def _balance(report: Report) -> str:
    cell = report.row(report.settings["images"][-1], "front", _shares(report)[0])[-1]
    in_order, in_turn = (ratio(cell, each) for each in (BEFORE_READING, IN_TURN))
    matters = abs(in_turn / in_order - 1) > WORTH
    slower = "slower" if in_turn > in_order else "faster"
    return (
        f"- **Balance.** With valid slots in front, the first warps of every block have work and "
        f"the others none. Which warps these are {'matters' if matters else 'does not matter'}: of "
        f"{batch_name(cell['images'])}, {percent(cell['share'])} valid, {cell['times']} ×, "
        f"{percent(cell['active_warps'])} of the warps have work; the branch leaves "
        f"{percent(in_order)} of the time, and {percent(in_turn)} if the warps of a block take the "
        "first slots of their images in turn."
        + (f" Why that is {slower} was not found out." if matters else "")
    )


def _occupancy(document: dict[str, Any]) -> str:
    kernels = document["kernels"]
    each = [(kernels[name]["registers"], kernels[name]["threads_at_once"]) for name in VARIANTS]
    if len(set(each)) == 1:
        registers, threads = each[0]
        return (
            f"- **Occupancy.** The branch takes none: each kernel has {registers} registers a "
            f"thread, and {threads:,} threads at once on a multiprocessor."
        )
    words = "; ".join(
        f"{name}: {registers} registers a thread, {threads:,} threads at once on a multiprocessor"
        for name, (registers, threads) in zip(VARIANTS, each, strict=True)
    )
    return f"- **Occupancy.** {words}."


def _latency(report: Report) -> str:
    row = report.row(report.settings["images"][-1], "front", report.settings["shares"][-1])
    worst = max(row, key=ratio)
    none, around, before = (
        number(median(worst, each)) for each in (NO_BRANCH, AROUND_FORMULA, BEFORE_READING)
    )
    shown = max((cell["times"] for cell in row if ratio(cell) > 1 + HIDDEN), default=math.inf)
    hidden = [cell["times"] for cell in row if cell["times"] > shown]
    return (
        "- **Latency.** Behind the branch the prediction's read starts only when the true box has "
        f"come. All valid, that costs most at {worst['times']} ×: {batch_name(worst['images'])} "
        f"take {before} µs, with the branch around the formula {around} and without one {none}."
        + (f" From {hidden[0]} × on the formula hides it." if hidden else "")
    )


def _wait(report: Report) -> str:
    last = report.row(report.settings["images"][0], "front", _shares(report)[0])[-1]
    alone = report.alone(last["times"])
    return (
        "- **Waiting.** A repetition waits for the one before. One warp alone takes "
        f"{alone:.1f} µs for {last['times']} of them, which a batch with any valid slot waits "
        f"for: of {batch_name(last['images'])}, {percent(last['share'])} valid in front, "
        f"the branch leaves {median(last, BEFORE_READING):.1f} of {median(last, NO_BRANCH):.1f} µs."
    )


def _model(report: Report) -> str:
    # A single formula's time is the reading that the model is made of.
    cells = [cell for cell in report.cells if cell["times"] > report.settings["repetitions"][0]]
    off = {id(cell): abs(report.expected(cell) / ratio(cell) - 1) for cell in cells}
    worst = max(cells, key=lambda cell: off[id(cell)])
    return (
        "The dotted lines are a model: a kernel takes as long as its reading, as one warp alone, "
        "or as the formula in all warps that have a valid slot, whichever is longest. "
        f"It is within {percent(statistics.median(off.values()))} of the measured ratio in half of "
        f"the cells with more than one formula; at worst it expects "
        f"{percent(report.expected(worst))} instead of {percent(ratio(worst))} "
        f"({_place(worst)}).{_fullest(report, worst)}"
    )


def _fullest(report: Report, cell: Cell) -> str:
    """What the model leaves out, where nothing waits for a place on the GPU."""
    gpu = report.document["machine"]["gpu"]
    multiprocessors = next((n for name, n in MULTIPROCESSORS.items() if name in gpu), 0)
    threads = report.document["kernels"][BEFORE_READING]["threads_at_once"]
    if cell["layout"] != "scattered" or cell["images"] * SLOTS > threads * multiprocessors:
        return ""
    warps, schedulers = threads // WARP // SCHEDULERS, SCHEDULERS * multiprocessors
    found = fullest(cell["active_warps"], warps, schedulers)
    if abs(found / ratio(cell) - 1) > WORTH:
        return ""
    return (
        " There all blocks are on the GPU at once, and the scheduler that has most of the warps "
        f"with work ends last: a simple count, in which each of {warps} warps of {schedulers} "
        f"schedulers has work with a chance of {percent(cell['active_warps'])}, finds it in "
        f"{percent(found)} of the fullest one's."
    )


def _source(document: dict[str, Any], report: Report) -> str:
    spreads = [
        (times["p90"] - times["p10"]) / times["median"]
        for cell in report.cells
        for times in cell["microseconds"].values()
    ]
    return (
        f"{measured(document, 'h200/conditional.json')} GPU time by replaying "
        "CUDA graphs, inputs warm, medians; from the 10th to the 90th percentile it is "
        f"{percent(statistics.median(spreads))} of the median in half of the cells and "
        f"{percent(max(spreads))} in the worst. All variants give the same bits, and agree with "
        "the formula in fp64."
    )


def _shares(report: Report) -> list[float]:
    """Those of any valid slots."""
    return [share for share in report.settings["shares"] if share > 0]


def _place(cell: Cell) -> str:
    return (
        f"{batch_name(cell['images'])}, {percent(cell['share'])} valid, {cell['layout']}, "
        f"{cell['times']} ×"
    )
