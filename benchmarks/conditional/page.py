# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What was found, as a section of the results page. Every figure is the report's."""

from __future__ import annotations

import statistics
from typing import Any

from ..common.page import measured, paragraphs, table
from .cases import SLOTS, WARP
from .kernels import AROUND_FORMULA, BEFORE_READING, IN_TURN, NO_BRANCH, VARIANTS
from .measure import Cell
from .report import WORTH, Report, batch_name, costs, median, pays, percent, ratio

BOX_BYTES, LOSS_BYTES = 16, 4

PICTURE = (
    "![What a branch over invalid slots leaves of a kernel's time]"
    "(../benchmarks/results/h200/conditional.svg)"
)


def section(document: dict[str, Any]) -> str:
    report = Report(document)
    return paragraphs(
        "## Does it pay to skip invalid boxes by a branch?",
        _answer(report),
        PICTURE,
        _table(report),
        "\n".join(
            [
                _bandwidth(report),
                _divergence(report),
                _balance(report),
                _occupancy(document),
                _wait(report),
            ]
        ),
        _model(report),
        _source(document, report),
    )


def _answer(report: Report) -> str:
    images, share = report.settings["images"][0], _shares(report)[0]
    first, *_, last = report.row(images, "front", share)
    front, scattered = (
        [pays(cell) for cell in report.cells if cell["layout"] == layout]
        for layout in ("front", "scattered")
    )
    worst = max(report.cells, key=ratio)
    return (
        f"In the article's batch, {batch_name(images)} with {percent(share)} valid in front of "
        f"each image, a branch over the others leaves {percent(ratio(first))} of the time of one "
        f"GIoU for each pair, and {percent(ratio(last))} of that of {last['times']}. Of the "
        f"study's cells it saves {percent(WORTH)} or more in {sum(front)} of {len(front)} with "
        f"the valid slots in front and in {sum(scattered)} of {len(scattered)} with them "
        f"scattered; it costs as much in {sum(map(costs, report.cells))} of all, at worst "
        f"{percent(ratio(worst))} of the time without ({_place(worst)})."
    )


def _table(report: Report) -> str:
    first, *_, last = report.settings["repetitions"]
    columns = [
        f"{layout}, {words}"
        for layout in report.settings["layouts"]
        for words in (f"{first} ×", f"{last} ×", "pays")
    ]
    words = (
        f"Time with the branch, of the time without, for {first} and {last} repetitions of the "
        f"formula, and for how many of them the branch pays, by {percent(WORTH)} or more:"
    )
    lines = []
    for images in report.settings["images"]:
        for share in report.settings["shares"]:
            cells = []
            for layout in report.settings["layouts"]:
                row = report.row(images, layout, share)
                cells += [percent(ratio(cell)) for cell in (row[0], row[-1])]
                cells.append(report.pays_for(images, layout, share))
            lines.append([batch_name(images), percent(share), *cells])
    return f"{words}\n\n{table(['batch', 'valid', *columns], lines)}"


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
        "them has to. Of the warps these shares have to, with the valid slots in front and "
        f"scattered: {'; '.join(lines)} valid. Scattered, it is 1 − (1 − s)<sup>{WARP}</sup> of a "
        "share s."
    )


def _balance(report: Report) -> str:
    cell = report.row(report.settings["images"][-1], "front", _shares(report)[0])[-1]
    in_order, in_turn = (ratio(cell, each) for each in (BEFORE_READING, IN_TURN))
    matters = abs(in_turn / in_order - 1) > WORTH
    return (
        f"- **Balance.** With valid slots in front, the first warps of every block have work and "
        f"the others none. Which warps these are {'matters' if matters else 'does not matter'}: of "
        f"{batch_name(cell['images'])}, {percent(cell['share'])} valid, {cell['times']} ×, "
        f"{percent(cell['active_warps'])} of the warps have work; the branch leaves "
        f"{percent(in_order)} of the time, and {percent(in_turn)} if the warps of a block take the "
        "first slots of their images in turn."
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


def _wait(report: Report) -> str:
    last = report.row(report.settings["images"][0], "front", _shares(report)[0])[-1]
    alone = report.alone(last["times"])
    return (
        "- **Waiting.** A repetition waits for the one before. One warp alone takes "
        f"{alone:.1f} µs for {last['times']} of them, and so does at least every batch that has a "
        f"valid slot: of {batch_name(last['images'])}, {percent(last['share'])} valid in front, "
        f"the branch leaves {median(last, BEFORE_READING):.1f} of {median(last, NO_BRANCH):.1f} µs."
    )


def _model(report: Report) -> str:
    off = {id(cell): abs(report.expected(cell) / ratio(cell) - 1) for cell in report.cells}
    worst = max(report.cells, key=lambda cell: off[id(cell)])
    return (
        "The dotted lines are a model: a kernel takes as long as its reading, as one warp alone, "
        "or as the formula in all warps that have a valid slot, whichever is longest. "
        f"It is within {percent(statistics.median(off.values()))} of the measured ratio in half of "
        f"the cells; at worst it expects {percent(report.expected(worst))} instead of "
        f"{percent(ratio(worst))} ({_place(worst)})."
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
