# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The study of dtypes: as its users run it, what its bytes and its errors are."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("boxloss.torch")
pytest.importorskip("rich")

from benchmarks.common.cases import DTYPES, dense_case, seed_case
from benchmarks.common.counts import operator_bytes, peak_bytes_on
from benchmarks.common.groups import document, groups_in, sampled_rows
from benchmarks.common.timing import gradient
from benchmarks.dtypes import __main__ as program
from benchmarks.dtypes import errors as errors_module
from benchmarks.dtypes import variants as variants_module
from benchmarks.dtypes.errors import (
    BOXLOSS,
    PAIRS,
    ROUNDING,
    STORAGE,
    USUAL,
    WRAPPING,
    errors_of,
    exact_boxes,
    measure_errors,
    relative,
    stored,
)
from benchmarks.dtypes.page import in_short, section, where_it_pays
from benchmarks.dtypes.plot import plot
from benchmarks.dtypes.report import by_side
from benchmarks.dtypes.variants import CAST, COMPILED, EAGER, NATIVE, least_bytes, variants
from benchmarks.precision.report import SIDES

CPU = torch.device("cpu")
COUNT = 256
SCALARS = 100  # bytes of the losses, and of what is one number beside them


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    figures = tmp_path_factory.mktemp("dtypes") / "figures.json"
    assert program.main(["--quick", "--device", "cpu", "--json", str(figures)]) == 0
    return json.loads(figures.read_text())  # type: ignore[no-any-return]


def test_it_times_compares_and_reports(report: dict[str, Any]) -> None:
    assert report["settings"]["dense_sizes"] == list(program.QUICK_SIZES)
    assert {group["kind"] for group in report["groups"]} == {"dense", "lengths", "padded"}
    for group in report["groups"]:
        names = [row["name"] for row in group["rows"]]
        assert names == [NATIVE, CAST, EAGER][: 2 if group["kind"] == "padded" else 3]
        for row in group["rows"]:
            low, high = row["spread"]["stream"]
            assert 0 < low <= row["microseconds"]["stream"] <= high
            assert row["counts"]["least_bytes"] > 0
    assert report["skipped"].keys() == {COMPILED}
    again = document(report["command"], report["machine"], report["skipped"], groups_in(report))
    for group, expected in zip(again["groups"], report["groups"], strict=True):
        for row, row_expected in zip(group["rows"], expected["rows"], strict=True):
            assert row["spread"]["stream"] == pytest.approx(row_expected["spread"]["stream"])


def test_disagreement_stops_it_before_any_time_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def doubled(layout: str) -> variants_module.Peer:
        load = variants_module.boxloss(layout).load
        return variants_module.Peer(layout, lambda case: lambda *boxes: 2 * load(case)(*boxes))

    monkeypatch.setattr(variants_module, "cast_first", doubled)
    assert program.main(["--quick", "--device", "cpu"]) == 1
    printed = capsys.readouterr()
    assert "cast, then boxloss: loss" in printed.err
    assert "stream µs" not in printed.out


@pytest.mark.parametrize("pair", program.DENSE_PAIRS)
def test_what_dense_pairs_have_to_move_is_what_the_operators_move(pair: str) -> None:
    case = dense_case(pair, 1000, CPU)
    for name, peer in variants("dense", pair, with_compiled=False).items():
        loss = partial(peer.load(case), case.pred, *case.layouts["dense"])
        call = partial(gradient, loss, case.pred)
        both = least_bytes(name, case, "dense", True, call)
        assert 0 <= operator_bytes(call) - both < SCALARS
        with torch.no_grad():
            forward = least_bytes(name, case, "dense", False, loss)
            assert 0 <= operator_bytes(loss) - forward < SCALARS


def test_only_boxes_are_read_by_lengths_and_padding_when_it_must_be_found() -> None:
    case = seed_case("bf16/u8", CPU, (16, 8))
    lengths = case.layouts["lengths"][1]
    by_lengths, padded = (
        least_bytes(NATIVE, case, layout, False, lambda: None) for layout in ("lengths", "padded")
    )
    assert by_lengths == case.boxes * 4 * (2 + 1) + lengths.nbytes
    assert padded == case.boxes * 4 * 2 + 16 * 8 * 4
    assert padded == case.forward_bytes
    with_gradient = least_bytes(NATIVE, case, "padded", True, lambda: None)
    assert with_gradient == 2 * padded + case.pred.nbytes
    # All slots of both are cast, and the gradient's are cast back.
    casts = 16 * 8 * 4 * (2 * (2 + 4) + (1 + 4))
    as_float32 = least_bytes(NATIVE, seed_case("f32/f32", CPU, (16, 8)), "padded", True, object)
    assert least_bytes(CAST, case, "padded", True, lambda: None) == casts + as_float32


def test_a_gradient_that_is_left_over_does_not_hide_in_the_peak() -> None:
    case = dense_case("bf16/u8", 1000, CPU)
    losses = {name: peer.load(case) for name, peer in variants("dense", case.pair, False).items()}
    peaks = {
        name: peak_bytes_on(
            CPU, partial(gradient, partial(loss, case.pred, *case.layouts["dense"]), case.pred)
        )
        for name, loss in losses.items()
    }
    own, floats = 4000 * 2, 4000 * 4
    assert own <= peaks[NATIVE] < own + SCALARS
    # Both casts, and the gradient before and, in part, after its own.
    assert 3 * floats <= peaks[CAST] < 3 * floats + own
    assert peaks[EAGER] > peaks[CAST]


def test_quartiles_stand_around_the_median() -> None:
    (row,) = sampled_rows({"wall": {"A": [5.0, 1.0, 2.0, 4.0, 3.0]}})
    assert row.seconds == {"wall": 3}
    assert row.spread == {"wall": (2, 4)}


def test_errors_are_of_every_dtype_format_and_side() -> None:
    rows = list(measure_errors(8, CPU))
    for box_format, pairs in PAIRS.items():
        for pair in pairs:
            sides = [side for side in SIDES if side <= 128 or not pair.endswith("u8")]
            names = [STORAGE, BOXLOSS, ROUNDING, USUAL]
            for name in [*names, WRAPPING] if pair.endswith("u8") else names:
                assert list(by_side(rows, box_format, pair, name, "loss")) == sides


@pytest.mark.parametrize("side", [8, 64])
@pytest.mark.parametrize("pair", PAIRS["xyxy"])
def test_boxloss_adds_nothing_that_its_dtypes_do_not(pair: str, side: int) -> None:
    pred, target = exact_boxes(side, 255, "xyxy", COUNT, CPU)
    found = errors_of(pred, target, "xyxy", pair, side)
    # All in float32 but the gradient, which is rounded to the predictions' dtype. A median GIoU
    # loss here is above 0.1, and has fewer than 48 roundings of at most 2: see tests/torch.
    unit = torch.finfo(torch.float32).eps / 2
    assert found[BOXLOSS]["loss"]["median"] < 2 * 48 * unit / 0.1
    if not pair.startswith("f32"):
        ours, rounding = (found[name]["gradient"]["median"] for name in (BOXLOSS, ROUNDING))
        assert 0.9 * rounding <= ours < 1.1 * rounding
    assert found[STORAGE]["loss"]["median"] > found[BOXLOSS]["loss"]["median"]


def test_corners_and_areas_in_half_and_uint8_are_found_out() -> None:
    boxes = exact_boxes(64, 255, "cxcywh", COUNT, CPU)
    found = errors_of(*boxes, "cxcywh", "bf16/f32", 64 / 1024)
    assert found[USUAL]["loss"]["median"] > 1000 * found[BOXLOSS]["loss"]["median"]
    boxes = exact_boxes(64, 255, "xyxy", COUNT, CPU)
    found = errors_of(*boxes, "xyxy", "f32/u8", 64)
    assert found[USUAL]["loss"]["median"] < 1e-5
    assert found[WRAPPING]["loss"]["median"] > 1
    found = errors_of(*exact_boxes(512, 1024, "xyxy", COUNT, CPU), "xyxy", "f16/f32", 512)
    assert found[USUAL]["loss"]["median"] is None  # areas beyond 65,504


def test_a_wrong_loss_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    right = errors_module.boxloss_of
    monkeypatch.setattr(
        errors_module, "boxloss_of", lambda fmt: lambda *boxes: 1.01 * right(fmt)(*boxes)
    )
    found = errors_of(*exact_boxes(64, 255, "xyxy", COUNT, CPU), "xyxy", "f32/f32", 64)
    assert found[BOXLOSS]["loss"]["median"] == pytest.approx(0.01, rel=1e-3)
    assert found[BOXLOSS]["gradient"]["nine_tenths"] == pytest.approx(0.01, rel=1e-3)


def test_equal_results_have_no_error_and_nan_is_not_finite() -> None:
    zero, nan = torch.zeros(3), torch.full((3,), torch.nan)
    none = {"median": 0, "nine_tenths": 0}
    assert relative((zero, zero[:, None]), (zero, zero[:, None])) == {
        "loss": none,
        "gradient": none,
    }
    lost = {"median": None, "nine_tenths": None}
    assert relative((nan, zero[:, None]), (zero, zero[:, None]))["loss"] == lost


def test_boxes_are_rounded_to_the_nearest() -> None:
    pred, _ = exact_boxes(8, 255, "xyxy", COUNT, CPU)
    for dtype in (DTYPES["u8"], DTYPES["bf16"]):
        kept = stored(pred.clamp(0, 255), dtype).double()
        spacing = 1.0 if dtype == torch.uint8 else 2.0**-8 * 256
        assert (kept - pred.clamp(0, 255)).abs().max() <= spacing / 2


def test_plot_and_page_say_what_the_figures_say(report: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "picture.svg"
    plot(report, picture)
    assert "4,000 pairs, forward + backward" in picture.read_text()
    assert "boxloss adds" in picture.read_text()
    assert "the formula in bfloat16 adds 0 at 4 pixels" in picture.read_text()

    report = deepcopy(report)
    for group in report["groups"]:
        for row, seconds in zip(group["rows"], (120.0, 300.0, 900.0), strict=False):
            row["microseconds"] = {"stream": seconds}
            row["spread"] = {"stream": [seconds - 1, seconds + 2]}
    page = section(report)
    assert page.startswith("## ")
    assert "takes 2.5 times the wall time in a stream" in page
    assert "120 (119 to 122) | 300 (299 to 302) | 900 (899 to 902)" in page
    assert "adds no error but float32's: boxloss is within" in page
    assert "where there is nothing to cast, takes 2.50 to 2.50 times as long" in page
    assert "In none of 8 cases is casting first faster; nearest is" in page
    assert "pixels on the loss of a tenth of the pairs or more is wrong" in page
    assert "| float32 / uint8, xyxy: usual code, areas in uint8 |" in page
    assert page.count("<details>") == 2
    question, short = in_short(report)
    assert len(question.split()) <= 8
    assert "2.5 times the wall time in a stream" in short
    assert report["command"] in page

    padded = next(group for group in report["groups"] if group["dtypes"] == "bf16/u8")
    padded["rows"][1]["microseconds"] = {"stream": 125.0}
    assert "nearest is padded batch, lengths, bfloat16 / uint8, forward, 1.04 times" in (
        where_it_pays(report)
    )
    padded["rows"][1]["microseconds"] = {"stream": 90.0}
    assert "In 1 of 8 cases casting first is faster: padded batch, lengths" in where_it_pays(report)
    other = [group for group in report["groups"] if group["dtypes"] == "bf16/u8"][1]
    other["rows"][1]["microseconds"] = {"stream": 60.0}
    assert (
        "In 2 of 8 cases casting first is faster, most of all: padded batch, lengths, bfloat16"
        in (where_it_pays(report))
    )


def test_what_has_no_kernels_of_its_own_is_said_to_be_slow(report: dict[str, Any]) -> None:
    assert "with_dtypes.hpp" not in where_it_pays(report)
    report = deepcopy(report)
    for group in report["groups"]:
        if group["dtypes"] == "bf16/u8":
            group["dtypes"] = "f16/u8"
    assert "float16 / uint8 has no kernels of its own" in where_it_pays(report)


def test_the_page_gives_small_errors_as_powers_and_others_in_percent(
    report: dict[str, Any],
) -> None:
    report = deepcopy(report)
    for row in report["errors"]:
        row["loss"] = {"median": 0.0, "nine_tenths": 3e-7}
        if row["variant"] == STORAGE:
            row["loss"] = {"median": 3.0 / row["side"], "nine_tenths": None}
        elif row["variant"] == WRAPPING:
            row["loss"] = {"median": None if row["side"] > 32 else 12.34, "nine_tenths": None}
    page = section(report)
    assert "(median; 3·10⁻⁷ for nine tenths)" in page
    assert "the loss of an 8-pixel box by 38 %, of a 128-pixel one by 2.3 %" in page
    assert "| float32 / uint8, xyxy: boxloss | 0 | 0 | 0 | - |" in page
    assert "areas in uint8 | 1,200 % | 1,200 % | not finite | - |" in page


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--device", "tpu"], "'tpu' given; allowed here: cpu"),
        (["--plot", "picture.bmp"], "'picture.bmp' given; allowed: .svg"),
        (["--json", "no/such/place.json"], "there is no directory 'no/such'"),
    ],
)
def test_a_wrong_option_says_what_is_allowed(
    arguments: list[str], complaint: str, complaint_of: Callable[..., str]
) -> None:
    assert complaint in complaint_of(program.parse, arguments)
