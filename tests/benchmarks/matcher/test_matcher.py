# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The benchmark of matchers as its users run it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

pytest.importorskip("boxloss.torch")
pytest.importorskip("rich")
pytest.importorskip("scipy")

from benchmarks.matcher import __main__ as matcher
from benchmarks.matcher import matchers
from benchmarks.matcher import variants as all_variants
from benchmarks.matcher.cases import WRITING
from benchmarks.matcher.originals import load_matcher

GROUP_KEYS = {"case", "kind", "dtypes", "boxes", "measured", "bytes", "rows"}
ROW_KEYS = {"name", "limit", "microseconds", "times_first", "note"}
# One for each way through the program.
CHOSEN = ("detr", "lwdetr", "assigner", "large-focal")
HOST = "cost on the host, without SciPy"


def test_it_times_compares_and_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = tmp_path / "figures.json"
    arguments = ["--quick", "--device", "cpu", "--cases", *CHOSEN, "--json", str(figures)]
    assert matcher.main(arguments) == 0

    report = json.loads(figures.read_text())
    assert report.keys() == {"command", "machine", "skipped", "groups"}
    assert report["command"].endswith("benchmarks.matcher " + " ".join(arguments))
    assert "torch.compile" in report["skipped"]
    peers = ["boxloss", "padded"]
    original = [] if "original" in report["skipped"] else ["original"]
    names = {
        "cost": [*peers, *original],
        HOST: [*peers, *original],
        "matching": ["boxloss", *original],
        "assignment": ["hungarian_match", "loop", "loop + collate_matches"],
    }
    timed = [group for group in report["groups"] if "counts" not in group["rows"][0]]
    counted = report["groups"][len(timed) :]
    assert [(group["kind"], group["measured"]) for group in timed] == [
        (kind, measured) for kind in CHOSEN for measured in (["cost"] if kind in WRITING else names)
    ]
    for group in timed:
        assert group.keys() == GROUP_KEYS
        assert all(row.keys() == ROW_KEYS for row in group["rows"])
        assert all(row["microseconds"]["stream"] > 0 for row in group["rows"])
        assert group["rows"][0]["times_first"] == 1
        writes = group["kind"] in WRITING
        expected = [*peers, "fill"] if writes else names[group["measured"]]
        assert [row["name"] for row in group["rows"]] == expected
        assert [row["name"] for row in group["rows"] if row["limit"]] == ["fill"] * writes
        assert group["bytes"] == (4 * group["boxes"] if writes else None)

    assert [group["kind"] for group in counted] == list(CHOSEN)
    for group in counted:
        for row in group["rows"]:
            assert row["counts"]["operators"] >= 1
            assert row["counts"]["peak_bytes"] >= 4 * group["boxes"]
    printed = capsys.readouterr().out
    assert printed.index("agree in each entry") < printed.index("stream µs")


def test_cases_are_chosen_by_name(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    arguments = ["--quick", "--device", "cpu", "--cases", "large", "assigner"]
    assert matcher.main([*arguments, "--json", str(figures)]) == 0
    groups = json.loads(figures.read_text())["groups"]
    assert [group["kind"] for group in groups] == ["large", "assigner"] * 2
    assert groups[0]["case"] == "large, 2 x 3 x 100 queries, 90 boxes"
    assert groups[0]["boxes"] == 2 * 100 * 90


def test_a_wrong_cost_stops_it_before_any_time_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = all_variants.padded_cost
    monkeypatch.setattr(all_variants, "padded_cost", lambda *values: right(*values) * 1.001)
    assert matcher.main(["--quick", "--device", "cpu", "--cases", "detr"]) == 1
    printed = capsys.readouterr()
    assert "matcher: error: padded: " in printed.err
    assert "stream µs" not in printed.out


def test_a_wrong_assignment_stops_it_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = matchers.hungarian_match

    def wrong(*values: torch.Tensor, groups: int) -> tuple[torch.Tensor, torch.Tensor]:
        pred_index, target_index = right(*values, groups=groups)
        return pred_index, target_index.roll(1, -1)

    monkeypatch.setattr(matchers, "hungarian_match", wrong)
    assert matcher.main(["--quick", "--device", "cpu", "--cases", "lwdetr"]) == 1
    assert "hungarian_match: target_index is not SciPy's" in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["transformers.loss.loss_rt_detr", "scipy.optimize"])
def test_it_says_what_it_does_without(
    missing: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    assert matcher.main(["--quick", "--device", "cpu", "--cases", "rtdetr"]) == 0
    printed = capsys.readouterr().out
    if missing.startswith("transformers"):
        assert "skipped original: transformers is not installed" in printed
        assert "hungarian_match" in printed
    else:
        assert "skipped matching: SciPy is not installed" in printed
        assert "hungarian_match" not in printed


def test_transformers_without_its_own_needs_is_no_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    module = pytest.importorskip("transformers.loss.loss_for_object_detection")
    monkeypatch.delattr(module, "center_to_corners_format")
    case = matcher.make_case("detr", matcher.QUICK_SHAPES["detr"], torch.device("cpu"))
    with pytest.raises(matcher.UnavailableError, match="need PIL"):
        load_matcher(case)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--device", "tpu"], "'tpu' given; allowed here: cpu"),
        (["--cases", "dert"], "invalid choice: 'dert'"),
        (["--json", "no/such/place.json"], "there is no directory 'no/such'"),
    ],
)
def test_a_wrong_option_says_what_is_allowed(
    arguments: list[str], complaint: str, complaint_of: Callable[..., str]
) -> None:
    assert complaint in complaint_of(matcher.parse, arguments)
