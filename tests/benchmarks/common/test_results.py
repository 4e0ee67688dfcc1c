# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The pictures of benchmarks/results are of the figures beside them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("boxloss.torch")
pytest.importorskip("matplotlib")
pytest.importorskip("rich")
pytest.importorskip("PIL")

from PIL import Image

from benchmarks.common.bars import bars, number
from benchmarks.common.groups import document, groups_in
from benchmarks.common.output import BLUE, pyplot
from benchmarks.redraw import PICTURES, RESULTS, redraw
from benchmarks.results_page import PAGE, SECTIONS, page


def words(picture: Path) -> list[str]:
    return re.findall("<text[^>]*>([^<]*)</text>", picture.read_text())


@pytest.mark.parametrize("picture", [each for each in PICTURES if each.endswith(".svg")])
def test_a_committed_picture_says_what_its_figures_say(picture: str, tmp_path: Path) -> None:
    drawn = words(redraw(picture, tmp_path))
    assert len(drawn) > 20
    assert drawn == words(RESULTS / picture)  # if not: python -m benchmarks.redraw


@pytest.mark.parametrize("picture", [each for each in PICTURES if each.endswith(".png")])
def test_committed_photographs_are_of_their_figures(picture: str, tmp_path: Path) -> None:
    pytest.importorskip("skimage")
    drawn, committed = (
        np.asarray(Image.open(each).convert("L"), dtype=float)
        for each in (redraw(picture, tmp_path), RESULTS / picture)
    )
    assert drawn.shape == committed.shape
    # Letters may be another version's; boxes eight pixels from here would make it 0.8.
    assert abs(drawn - committed).mean() < 0.4


def test_every_committed_picture_is_drawn() -> None:
    committed = {str(path.relative_to(RESULTS)) for path in RESULTS.glob("*/*.[sp][vn]g")}
    assert committed == PICTURES.keys()


def test_the_page_is_of_the_figures_and_shows_what_there_is() -> None:
    written = PAGE.read_text()
    assert written == page()  # if not: python -m benchmarks.results_page
    linked = re.findall(r"\]\(([^)#]+)\)", written)
    assert len(linked) > len(SECTIONS)
    assert all((PAGE.parent / path).exists() for path in linked)


def test_the_page_is_of_one_machine() -> None:
    reports = [json.loads((RESULTS / figures).read_text()) for figures in SECTIONS]
    machines = [
        report.get(part, report)["machine"] for report in reports for part in ("one", "several")
    ]
    kept = ("gpu", "cpu", "python", "torch", "triton", "boxloss")
    assert len({tuple(machine[key] for key in kept) for machine in machines}) == 1


def test_groups_are_read_as_they_were_written() -> None:
    written = json.loads((RESULTS / "h200/matched-pairs.json").read_text())
    again = document(written["command"], written["machine"], written["skipped"], groups_in(written))
    assert again.keys() == written.keys()
    for group, expected in zip(again["groups"], written["groups"], strict=True):
        for row, row_expected in zip(group.pop("rows"), expected.pop("rows"), strict=True):
            times = row_expected.pop("microseconds")
            assert row.pop("microseconds") == pytest.approx(times)
            assert row.pop("times_first") == pytest.approx(row_expected.pop("times_first"))
            assert row == row_expected
        assert group == expected


def test_bars_begin_at_zero_on_a_linear_axis() -> None:
    figure, panel = pyplot().subplots()
    bars(panel, {"boxloss": 2.0, "eager": 100.0}, "ms")
    assert panel.get_xscale() == "linear"
    assert panel.get_xlim()[0] == 0
    ours, theirs = panel.patches
    assert (ours.get_x(), ours.get_width(), theirs.get_width()) == (0, 2, 100)
    assert pyplot().matplotlib.colors.to_hex(ours.get_facecolor()) == BLUE
    pyplot().close(figure)


def test_three_digits() -> None:
    assert [number(each) for each in (0.123456, 8.3, 94, 292.4, 7259.1)] == [
        "0.123",
        "8.30",
        "94.0",
        "292",
        "7,259",
    ]
