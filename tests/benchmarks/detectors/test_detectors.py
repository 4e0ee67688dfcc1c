# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The benchmark of detectors as its users run it."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("boxloss.torch")
pytest.importorskip("rich")
pytest.importorskip("scipy")

os.environ.setdefault("YOLO_OFFLINE", "true")
os.environ.setdefault("YOLO_CONFIG_DIR", tempfile.mkdtemp())

from benchmarks.detectors import __main__ as detectors
from benchmarks.detectors.plot import main as draw

GROUP_KEYS = {"case", "kind", "dtypes", "boxes", "measured", "bytes", "rows"}
ROW_KEYS = {"name", "limit", "microseconds", "times_first", "note"}
DETRS = ("detr", "rtdetr", "rtdetr-dense")
MATCHER_AND_BOXES = "matcher and boxes"


def test_it_times_compares_and_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = tmp_path / "figures.json"
    arguments = ["--quick", "--device", "cpu", "--json", str(figures)]
    assert detectors.main(arguments) == 0

    report = json.loads(figures.read_text())
    assert report.keys() == {"command", "machine", "skipped", "groups"}
    assert report["command"].endswith("benchmarks.detectors " + " ".join(arguments))
    assert report["machine"]["torch"] == torch.__version__
    assert "torch.compile" in report["skipped"]
    timed = [group for group in report["groups"] if "counts" not in group["rows"][0]]
    counted = report["groups"][len(timed) :]
    done = [(group["kind"], group["measured"]) for group in timed]
    assert done == [(group["kind"], group["measured"]) for group in counted]
    assert {(kind, MATCHER_AND_BOXES) for kind in DETRS} <= set(done)
    wanted = {
        *((kind, each) for kind in DETRS for each in (MATCHER_AND_BOXES, "criterion")),
        ("fcos", "criterion"),
        *((kind, "box loss") for kind in ("retinanet", "yolo")),
    }
    missing = {", ".join(each) for each in wanted - set(done)}
    assert missing <= report["skipped"].keys()
    assert set(done) <= wanted
    for group in timed:
        assert group.keys() == GROUP_KEYS
        assert all(row.keys() == ROW_KEYS for row in group["rows"])
        assert all(row["microseconds"]["stream"] > 0 for row in group["rows"])
        assert group["rows"][0]["times_first"] == 1
        names = [row["name"] for row in group["rows"]]
        assert names in (["boxloss", "aligned"], ["boxloss", "aligned", "original"])
    for group in counted:
        assert all(row["counts"]["peak_bytes"] > 0 for row in group["rows"])
        fused, aligned, *_ = (row["counts"]["operators"] for row in group["rows"])
        assert fused < aligned
    printed = capsys.readouterr().out
    assert printed.index("agree in loss and gradients") < printed.index("stream µs")


def test_a_wrong_loss_stops_it_before_any_time_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = detectors.load

    def wrong(*values: Any) -> Any:
        steps = right(*values)
        return {**steps, "aligned": lambda: 1.01 * steps["aligned"]()}

    monkeypatch.setattr(detectors, "load", wrong)
    assert detectors.main(["--quick", "--device", "cpu", "--cases", "detr"]) == 1
    printed = capsys.readouterr()
    assert "detectors: error: aligned: loss" in printed.err
    assert "stream µs" not in printed.out


def test_it_says_what_it_does_without(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for missing in (
        "transformers",
        "transformers.loss.loss_for_object_detection",
        "ultralytics.nn.tasks",
    ):
        monkeypatch.setitem(sys.modules, missing, None)
    assert detectors.main(["--quick", "--device", "cpu", "--cases", "detr", "yolo"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "skipped original: transformers is not installed" in printed
    assert "skipped detr, criterion: examples.detr cannot be imported" in printed
    assert "skipped yolo, box loss: examples.yolo cannot be imported" in printed
    assert "boxloss" in printed


def test_nothing_is_assigned_without_scipy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    assert detectors.main(["--quick", "--device", "cpu", "--cases", "detr"]) == 0
    printed = capsys.readouterr().out
    assert "skipped detr, matcher and boxes: SciPy is not installed" in printed
    assert "stream µs" not in printed


def test_what_was_written_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    times = {"boxloss": 1.56, "boxloss, compiled": 0.8, "aligned": 2.5, "original": 12.0}
    rows = [{"name": name, "microseconds": {"stream": 1000 * each}} for name, each in times.items()]
    group = {"kind": "detr", "measured": "criterion", "rows": rows}
    counted = {**group, "rows": [{**row, "counts": {"waits": 1}} for row in rows]}
    machine = {"cpu": "some processor", "torch": "2.11"}
    report = tmp_path / "report.json"
    report.write_text(json.dumps({"machine": machine, "groups": [group, group, counted]}))
    drawn = tmp_path / "drawn.svg"
    draw([str(report), str(drawn)])
    text = drawn.read_text()
    assert "some processor, torch 2.11" in text
    for label in (
        "DETR: criterion",
        "aligned plain torch",
        ">1.56<",
        ">0.800<",
        ">2.50<",
        ">12.0<",
    ):
        assert text.count(label) == 2
    with pytest.raises(SystemExit):
        draw([str(report), str(tmp_path / "drawn.txt")])


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
    assert complaint in complaint_of(detectors.parse, arguments)
