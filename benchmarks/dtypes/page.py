# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""This study's section of the page of results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..common.bars import DTYPES, dtypes, number
from ..common.groups import CLOCK_WORDS, Group, Row, groups_in, or_dash, pairs_of
from ..common.page import measured, paragraphs, table
from .errors import BOXLOSS, PAIRS, ROUNDING, STORAGE, USUAL, WRAPPING
from .plot import largest
from .report import medians
from .variants import CAST, COMPILED, EAGER, MEASURED, NATIVE

Report = dict[str, Any]

SHOWN_SIDES = (8, 32, 128, 512)
UNCAST = "f32/f32"
WITH_KERNELS = ("f32/f32", "bf16/f32", "f16/f32", "bf16/bf16", "bf16/u8", "f32/u8")
LITTLE = 1.1  # times as long: below, casting first costs next to nothing
WRONG = 0.5  # a relative error beyond which a loss says nothing
LAYOUTS = {"dense": "dense pairs", "lengths": "padded batch, lengths", "padded": "padded batch"}


def section(report: Report) -> str:
    return paragraphs(
        "## Reading bfloat16 and uint8 boxes as they are",
        answer(report),
        "![GPU time with and without casts, and the errors of dtypes by the side of the boxes]"
        "(../benchmarks/results/h200/dtypes.svg)",
        _table_of_largest(report),
        "Times in µs with their quartiles. A variant moves the bytes that it has to read and "
        "write, casts and their backward included; its peak is what a call allocates at a time.",
        where_it_pays(report),
        _table_of_ratios(report),
        _table_of_errors(report),
        errors_explained(report),
        measured(report, "h200/dtypes.json"),
    )


def answer(report: Report) -> str:
    groups = [group for group in largest(report) if group.pair != UNCAST]
    ratios = [cast_ratio(group) for group in groups]
    moved, peaks = (
        [_count(group, CAST, name) / _count(group, NATIVE, name) for group in groups]
        for name in ("least_bytes", "peak_bytes")
    )
    clock = CLOCK_WORDS[groups[0].clocks[0]]
    adds = [
        error
        for pair in PAIRS["xyxy"]
        for error in medians(report["errors"], "xyxy", pair, BOXLOSS, "loss").values()
        if error is not None
    ]
    return (
        f"Casting to float32 first and then calling the same loss takes {_span(ratios)} times the "
        f"{clock} of reading the boxes as they are, moves {_span(moved)} times the bytes and "
        f"allocates {_span(peaks)} times the memory ({groups[0].boxes:,} pairs, forward and "
        f"backward). Exactness is not the price: on boxes as they are stored, in corners of any of "
        f"these dtypes, boxloss' loss is within {_error(max(adds))} of float64 for the median pair."
    )


def where_it_pays(report: Report) -> str:
    groups = [group for group in groups_in(report) if group.pair != UNCAST]
    poor = [group for group in groups if cast_ratio(group) < LITTLE]
    noise = [cast_ratio(group) for group in groups_in(report) if group.pair == UNCAST]
    compiled = [ratio for group in largest(report) if (ratio := _ratio(group, COMPILED))]
    words = [
        "How many times as long it takes to cast first, below: "
        f"{dtypes(UNCAST)} casts nothing, and is {_span(noise)}."
    ]
    least = min(groups, key=cast_ratio)
    words.append(
        f"It saves less than a tenth in {len(poor)} of {len(groups)} cases, and least for "
        f"{_case(least)}, {dtypes(least.pair)}, {least.measured} ({cast_ratio(least):.2f})."
    )
    if least.pair not in WITH_KERNELS:
        words.append(
            f"{dtypes(least.pair)} has no kernels of its own (`core/dtypes/with_dtypes.hpp` has "
            "those that have) and is read element by element."
        )
    words += _in_a_step(groups)
    if compiled:
        words.append(
            "torch.compile fuses the casts into the formula, too; its own kernels, forward and "
            f"backward, take {_span(compiled)} times as long as boxloss."
        )
    return " ".join(words)


def _in_a_step(groups: list[Group]) -> list[str]:
    """Of the article's batch and dtypes, with what calls cost the host."""
    ratios = [
        ratio
        for group in groups
        if (group.kind, group.pair, group.measured) == ("lengths", "bf16/u8", MEASURED[1])
        and (ratio := group.ratio(_row(group, CAST), ["stream"])) is not None
    ]
    return [
        f"With the host's share, in a stream of calls, it is {ratio:.2f} for the article's batch "
        f"by lengths, {dtypes('bf16/u8')}, forward and backward."
        for ratio in ratios
    ]


def errors_explained(report: Report) -> str:
    rows = report["errors"]
    words = [
        "Relative errors of the loss of the median pair. *Kept*: the formula in float64 on the "
        "stored boxes, against the boxes before; that is lost before any loss is called. The "
        "others come on top, against the formula in float64 on the same stored boxes. *Usual*: "
        "the same formula without a cast, its corners, sides and areas in what dtypes the boxes "
        "have, uint8 ones cast to the predictions'. Pictures have 1,024 pixels, with uint8 255."
    ]
    for half in ("bf16", "f16"):
        pair = f"{half}/f32"
        kept, ours, usual = (
            _first(medians(rows, "cxcywh", pair, name, "loss"))
            for name in (STORAGE, BOXLOSS, USUAL)
        )
        words.append(
            f"In {DTYPES[half]} cxcywh boxes of {kept[0]} pixels lose {_error(kept[1])}; forming "
            f"corners in it adds {_error(usual[1])}, forming them in registers {_error(ours[1])}."
        )
        gradient, rounding = (
            max(_finite(medians(rows, "xyxy", pair, name, "gradient")))
            for name in (BOXLOSS, ROUNDING)
        )
        words.append(
            f"The median gradient of boxloss errs by {_error(gradient)} at most, where rounding "
            f"the exact one to {DTYPES[half]} errs by {_error(rounding)}."
        )
    wrapped = medians(rows, "xyxy", "f32/u8", WRAPPING, "loss")
    wrong = [side for side, error in wrapped.items() if error is None or error > WRONG]
    if wrong:
        words.append(f"Areas formed in uint8 wrap: from {wrong[0]} pixels on the loss is wrong.")
    overflown = [
        side
        for side, error in medians(rows, "xyxy", "f16/f32", USUAL, "loss").items()
        if error is None
    ]
    if overflown:
        words.append(
            f"float16 ends at 65,504: at {overflown[0]} pixels the usual code's areas overflow."
        )
    return " ".join(words)


def cast_ratio(group: Group) -> float:
    ratio = _ratio(group, CAST)
    assert ratio is not None
    return ratio


def _table_of_largest(report: Report) -> str:
    names = (NATIVE, CAST, EAGER, COMPILED)
    headings = ["predictions / true boxes", *names]
    headings += [f"{what} MiB, native / cast" for what in ("moved", "peak")]
    rows = [
        [
            dtypes(group.pair),
            *(_time(group, name) for name in names),
            *(
                " / ".join(number(_count(group, name, what) / 2**20) for name in (NATIVE, CAST))
                for what in ("least_bytes", "peak_bytes")
            ),
        ]
        for group in largest(report)
    ]
    return table(headings, rows)


def _table_of_ratios(report: Report) -> str:
    groups = groups_in(report)
    cases = list(dict.fromkeys((_case(group), group.measured) for group in groups))
    found = {(group.pair, _case(group), group.measured): cast_ratio(group) for group in groups}
    rows = [
        [dtypes(pair), *(or_dash(found.get((pair, *case)), "{:.2f}") for case in cases)]
        for pair in pairs_of(groups)
    ]
    return table(["cast, then boxloss: times as long", *map(", ".join, cases)], rows)


def _table_of_errors(report: Report) -> str:
    sides = " · ".join(map(str, SHOWN_SIDES))
    names = {STORAGE: "kept", BOXLOSS: "boxloss", USUAL: "usual", WRAPPING: "areas in uint8"}
    rows = []
    for box_format, pairs in PAIRS.items():
        for pair in pairs:
            found = [medians(report["errors"], box_format, pair, name, "loss") for name in names]
            cells = (
                " · ".join(_error(each[side]) if side in each else "-" for side in SHOWN_SIDES)
                if each
                else "-"
                for each in found
            )
            rows.append([f"{box_format}, {dtypes(pair)}", *cells])
    return table([f"sides of {sides} pixels", *names.values()], rows)


def _case(group: Group) -> str:
    size = f"{group.boxes:,} " if group.kind == "dense" else ""
    return size + LAYOUTS[group.kind]


def _ratio(group: Group, name: str) -> float | None:
    row = group.row(name)
    return None if row is None else group.ratio(row)


def _time(group: Group, name: str) -> str:
    row = group.row(name)
    clock = group.clocks[0]
    if row is None or clock not in row.seconds:
        return "-"
    low, high = (number(end * 1e6) for end in row.spread[clock])
    return f"{number(row.seconds[clock] * 1e6)} ({low} to {high})"


def _count(group: Group, name: str, what: str) -> float:
    return _row(group, name).counts[what]


def _row(group: Group, name: str) -> Row:
    row = group.row(name)
    assert row is not None
    return row


def _span(values: Sequence[float]) -> str:
    low, high = (f"{end:.2g}" for end in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _finite(errors: dict[int, float | None]) -> list[float]:
    return [error for error in errors.values() if error is not None]


def _first(errors: dict[int, float | None]) -> tuple[int, float | None]:
    return next(iter(errors.items()))


def _error(error: float | None) -> str:
    if error is None:
        return "not finite"
    if error == 0:
        return "0"
    if error >= 1e-4:
        return f"{error:.2g}"
    digits, exponent = f"{error:.0e}".split("e")
    return f"{digits}·10{str(int(exponent)).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"
