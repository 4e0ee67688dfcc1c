# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The benchmark of matched pairs as its users run it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

pytest.importorskip("boxloss.torch")
pytest.importorskip("rich")

from benchmarks.common import losses as common_losses
from benchmarks.matched_pairs import __main__ as matched_pairs
from benchmarks.matched_pairs import variants as all_variants

GROUP_KEYS = {"case", "kind", "dtypes", "boxes", "measured", "bytes", "rows"}
ROW_KEYS = {"name", "limit", "microseconds", "times_first", "note"}


def test_it_times_compares_and_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = tmp_path / "figures.json"
    arguments = ["--quick", "--device", "cpu", "--json", str(figures)]
    assert matched_pairs.main(arguments) == 0

    report = json.loads(figures.read_text())
    assert report.keys() == {"command", "machine", "skipped", "groups"}
    assert report["command"].endswith("benchmarks.matched_pairs " + " ".join(arguments))
    assert report["machine"]["torch"] == torch.__version__
    assert "torch.compile" in report["skipped"]
    measured = [(group["kind"], group["dtypes"], group["measured"]) for group in report["groups"]]
    passes = ("forward", "forward + backward")
    assert measured == [
        *(
            (kind, f"{dtype}/f32", each)
            for kind in ("detr", "detr-dense")
            for dtype in ("f32", "bf16")
            for each in (*passes, "collation")
        ),
        *((kind, "f32/f32", each) for kind in ("gather", "retinanet") for each in passes),
    ]
    for group in report["groups"]:
        assert group.keys() == GROUP_KEYS
        assert all(row.keys() == ROW_KEYS for row in group["rows"])
        names = [row["name"] for row in group["rows"]]
        if group["measured"] == "collation":
            assert names == ["collate_matches"]
            assert group["rows"][0]["microseconds"]["host"] > 0
            continue
        assert names[:2] == ["boxloss", "aligned"]
        assert group["rows"][0]["times_first"] == 1
        assert all(row["microseconds"]["stream"] > 0 for row in group["rows"])
        assert [row["name"] for row in group["rows"] if row["limit"]] == (
            ["gather"] if group["kind"] == "gather" else []
        )
        assert ("original" in names) == group["kind"].startswith("detr")
        assert ("loop" in names) == (group["kind"] == "retinanet")
        assert (group["bytes"] is not None) == (group["kind"] == "gather")
    printed = capsys.readouterr().out
    assert printed.index("agree in total, gradient and IoU") < printed.index("stream µs")


def test_rows_and_pairs_scale_what_is_gathered(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    arguments = ["--quick", "--device", "cpu", "--cases", "gather", "--json", str(figures)]
    assert matched_pairs.main([*arguments, "--rows", "1000", "--pairs", "100"]) == 0
    forward, both = json.loads(figures.read_text())["groups"]
    assert forward["case"] == "gather, 1,000 rows, 100 pairs, f32/f32"
    assert forward["bytes"] == 100 * (2 * 32 + 2 * 8)
    assert both["bytes"] == 2 * forward["bytes"] + 1000 * 16


def test_disagreement_stops_it_before_any_time_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = all_variants.aligned_loss

    def wrong(pred: torch.Tensor, case: matched_pairs.Case) -> all_variants.Result:
        result = right(pred, case)
        return result._replace(total=2 * result.total)

    monkeypatch.setattr(all_variants, "aligned_loss", wrong)
    assert matched_pairs.main(["--quick", "--device", "cpu", "--cases", "retinanet"]) == 1
    printed = capsys.readouterr()
    assert "matched_pairs: error: aligned: loss" in printed.err
    assert "stream µs" not in printed.out


def test_without_torchvision_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "torchvision", None)
    with pytest.raises(common_losses.UnavailableError):
        common_losses.torchvision_giou()
    assert matched_pairs.main(["--quick", "--device", "cpu", "--cases", "retinanet"]) == 0
    assert "skipped torchvision: torchvision is not installed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--device", "tpu"], "'tpu' given; allowed here: cpu"),
        (["--cases", "dert"], "invalid choice: 'dert'"),
        (["--dtypes", "f64"], "invalid choice: 'f64'"),
        (["--rows", "0"], "--rows: 0 given; 1 or more allowed"),
        (["--pairs", "-1"], "--pairs: -1 given; 1 or more allowed"),
        (["--json", "no/such/place.json"], "there is no directory 'no/such'"),
    ],
)
def test_a_wrong_option_says_what_is_allowed(
    arguments: list[str], complaint: str, complaint_of: Callable[..., str]
) -> None:
    assert complaint in complaint_of(matched_pairs.parse, arguments)
