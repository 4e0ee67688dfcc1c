# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""This study's section of the page of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..common.bars import DTYPES, dtypes, number
from ..common.groups import CLOCK_WORDS, Group, Row, groups_in, or_dash, pairs_of
from ..common.page import details, measured, paragraphs, picture, spread, table
from ..precision.measure import PICTURE
from ..precision.report import SIDES
from .errors import BOXLOSS, LARGEST_U8, PAIRS, ROUNDING, STORAGE, USUAL, WRAPPING
from .plot import largest
from .report import by_side
from .variants import CAST, COMPILED, EAGER, NATIVE

Report = dict[str, Any]

SHOWN_PAIRS = {"xyxy": ("bf16/f32", "bf16/bf16", "f32/u8")}
SHOWN_SIDES = (8, 32, 128, 512)
STORED_SIDES = (8, 128)  # of which the answer speaks
UNCAST = "f32/f32"
WITH_KERNELS = ("f32/f32", "bf16/f32", "f16/f32", "bf16/bf16", "bf16/u8", "f32/u8")
WRONG = 0.5  # a relative error beyond which a loss says nothing
LEAST_IN_PERCENT = 1e-4  # smaller errors are powers of ten
LAYOUTS = {"dense": "dense pairs", "lengths": "padded batch, lengths", "padded": "padded batch"}


def section(report: Report) -> str:
    return paragraphs(
        "## Reading bfloat16 and uint8 boxes as they are",
        answer(report),
        picture(
            "GPU time with and without casts, and the errors of dtypes by the side of the boxes",
            "h200/dtypes.svg",
        ),
        _table_of_largest(report),
        "Times in µs with their quartiles. Moved: the bytes that a variant has to read and write, "
        "casts and their backward included; peak: the most memory that a call holds beyond its "
        "inputs.",
        where_it_pays(report),
        details("What casting first takes in all cases", _table_of_ratios(report)),
        _table_of_errors(report, SHOWN_PAIRS, SHOWN_SIDES),
        errors_explained(report),
        details("Errors of all dtypes and sides", _table_of_errors(report, PAIRS, SIDES)),
        measured(report, "h200/dtypes.json"),
    )


def in_short(report: Report) -> tuple[str, str]:
    groups = _cast_groups(report)
    return (
        "What does casting boxes to float32 first cost?",
        f"{_span([cast_ratio(group) for group in groups])} times the "
        f"{CLOCK_WORDS[groups[0].clocks[0]]} and {_span(_counts(groups, 'peak_bytes'))} times the "
        f"memory of reading them as they are ({groups[0].boxes:,} pairs, forward and backward), "
        f"which adds no error but float32's: {_error(_largest_error(report, 'median'))} for the "
        "median pair of corners.",
    )


def answer(report: Report) -> str:
    groups = _cast_groups(report)
    kept = by_side(report["errors"], "xyxy", "bf16/f32", STORAGE, "loss")
    small, large = (f"{side}-pixel" for side in STORED_SIDES)
    of_small, of_large = (_error(kept[side]) for side in STORED_SIDES)
    median, nine_tenths = (
        _error(_largest_error(report, share)) for share in ("median", "nine_tenths")
    )
    return (
        f"Casting to float32 first and then calling the same loss takes "
        f"{_span([cast_ratio(group) for group in groups])} times the "
        f"{CLOCK_WORDS[groups[0].clocks[0]]} of reading the boxes as they are, has to "
        f"move {_span(_counts(groups, 'least_bytes'))} times the bytes, and allocates "
        f"{_span(_counts(groups, 'peak_bytes'))} times the memory ({groups[0].boxes:,} pairs, "
        "forward and backward). Reading adds no error but float32's: boxloss is within "
        f"{median} of float64 on the stored corners (median; {nine_tenths} for nine tenths). What "
        f"is lost is lost by storing: predictions as bfloat16 corners in a picture of {PICTURE:,} "
        f"pixels change the loss of an {small} box by {of_small}, of a {large} one by {of_large}."
    )


def where_it_pays(report: Report) -> str:
    groups = [group for group in groups_in(report) if group.pair != UNCAST]
    faster = [group for group in groups if cast_ratio(group) < 1]
    noise = [cast_ratio(group) for group in groups_in(report) if group.pair == UNCAST]
    compiled = {
        (group.pair, group.measured): ratio
        for group in groups_in(report)
        if group.boxes == largest(report)[0].boxes and (ratio := _ratio(group, COMPILED))
    }
    least = min(groups, key=cast_ratio)
    extreme = (
        f"{_case(least)}, {dtypes(least.pair)}, {least.measured}, {cast_ratio(least):.2f} times as "
        "long"
    )
    words = [
        f"{dtypes(UNCAST)}, where there is nothing to cast, takes {min(noise):.2f} to "
        f"{max(noise):.2f} times as long.",
        f"In {len(faster)} of {len(groups)} cases casting first is faster"
        f"{', most of all' if len(faster) > 1 else ''}: {extreme}."
        if faster
        else f"In none of {len(groups)} cases is casting first faster; nearest is {extreme}.",
    ]
    if least.pair not in WITH_KERNELS:
        words.append(
            f"{dtypes(least.pair)} has no kernels of its own and is read element by element; "
            "`core/dtypes/with_dtypes.hpp` lists the pairs that have."
        )
    if compiled:
        ratios = " and ".join(
            f"{_span([ratio for (_, each), ratio in compiled.items() if each == measured])} times "
            f"({measured})"
            for measured in dict.fromkeys(measured for _, measured in compiled)
        )
        words.append(
            "torch.compile fuses the casts into the formula, too; its own kernels take "
            f"{ratios} as long as boxloss, of {largest(report)[0].boxes:,} pairs of "
            f"{' or '.join(dict.fromkeys(dtypes(pair) for pair, _ in compiled))}. Where few "
            "anchors have a box, other work decides: [in real detectors](detectors.md)."
        )
    return " ".join(words)


def errors_explained(report: Report) -> str:
    rows = report["errors"]
    words = [
        "Relative errors of the loss of the median pair. *Storing*: the formula in float64 on the "
        "stored boxes, against the boxes before; that is lost before any loss is called. The "
        "others come on top, against the formula in float64 on the same stored boxes, with "
        '`eps_mode="clamp"`, which is the formula\'s own. *Usual code*: the same formula without a '
        "cast, its corners, sides and areas in what dtypes the boxes have, uint8 ones cast to the "
        f"predictions'. Pictures have {PICTURE:,} pixels, with uint8 {LARGEST_U8}."
    ]
    for half in ("bf16", "f16"):
        pair = f"{half}/f32"
        kept, ours, usual = (
            _first(by_side(rows, "cxcywh", pair, name, "loss"))
            for name in (STORAGE, BOXLOSS, USUAL)
        )
        words.append(
            f"Storing {kept[0]}-pixel cxcywh predictions in {DTYPES[half]} changes their loss by "
            f"{_error(kept[1])}; forming corners in it adds {_error(usual[1])}, forming them in "
            f"registers {_error(ours[1])}."
        )
        gradient, rounding = (
            max(_finite(by_side(rows, "xyxy", pair, name, "gradient")))
            for name in (BOXLOSS, ROUNDING)
        )
        words.append(
            f"The median gradient of boxloss errs by {_error(gradient)} at most, where rounding "
            f"the exact one to {DTYPES[half]} errs by {_error(rounding)}."
        )
    wrapped = by_side(rows, "xyxy", "f32/u8", WRAPPING, "loss", "nine_tenths")
    wrong = [side for side, error in wrapped.items() if error is None or error > WRONG]
    if wrong:
        words.append(
            f"Areas formed in uint8 wrap: from {wrong[0]} pixels on the loss of a tenth of the "
            "pairs or more is wrong."
        )
    usual_code = by_side(rows, "xyxy", "f16/f32", USUAL, "loss", "nine_tenths")
    overflown = [side for side, error in usual_code.items() if error is None]
    if overflown:
        words.append(
            f"float16 ends at 65,504: from {overflown[0]} pixels on areas of a tenth of the pairs "
            "or more overflow in the usual code."
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


def _table_of_errors(
    report: Report, pairs: Mapping[str, Sequence[str]], sides: Sequence[int]
) -> str:
    rows = []
    for box_format, each in pairs.items():
        for pair in each:
            for name in (STORAGE, BOXLOSS, USUAL, WRAPPING):
                found = by_side(report["errors"], box_format, pair, name, "loss")
                if found:
                    words = "storing" if name == STORAGE else name
                    cells = [_error(found[side]) if side in found else "-" for side in sides]
                    rows.append([f"{dtypes(pair)}, {box_format}: {words}", *cells])
    return table(["side in pixels", *map(str, sides)], rows)


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
    low, high = row.spread[clock]
    return spread({"median": row.seconds[clock] * 1e6, "low": low * 1e6, "high": high * 1e6})


def _cast_groups(report: Report) -> list[Group]:
    """The largest, of pairs that have something to cast."""
    return [group for group in largest(report) if group.pair != UNCAST]


def _counts(groups: Sequence[Group], what: str) -> list[float]:
    """How many times as much it is where boxes are cast first."""
    return [_count(group, CAST, what) / _count(group, NATIVE, what) for group in groups]


def _largest_error(report: Report, share: str) -> float | None:
    """Of boxloss' loss, on corners of any dtypes and sides."""
    errors = [
        row["loss"][share]
        for row in report["errors"]
        if (row["format"], row["variant"]) == ("xyxy", BOXLOSS)
    ]
    return None if None in errors else max(errors)


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
    if error >= LEAST_IN_PERCENT:
        return f"{float(f'{100 * error:.2g}'):,g} %"
    digits, exponent = f"{error:.0e}".split("e")
    return f"{digits}·10{str(int(exponent)).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"
