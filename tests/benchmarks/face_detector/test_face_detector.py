# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The benchmark as its users run it."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("boxloss.torch")
pytest.importorskip("rich")
pytest.importorskip("skimage")

from benchmarks.common.losses import masked_loss
from benchmarks.face_detector import __main__ as face_detector
from benchmarks.face_detector.training import PARTS
from benchmarks.face_detector.variants import VARIANTS


def test_it_trains_times_and_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    chart, figures = tmp_path / "chart.svg", tmp_path / "figures.json"
    names = ["loop", "fused-ragged"]
    arguments = ["--device", "cpu", "--steps", "6", "--variants", *names]
    assert face_detector.main([*arguments, "--plot", str(chart), "--json", str(figures)]) == 0

    report = json.loads(figures.read_text())
    assert list(report["variants"]) == names
    for result in report["variants"].values():
        assert result["milliseconds"].keys() == set(PARTS)
        assert min(result["milliseconds"].values()) > 0
        assert len(result["training_losses"]) == 6
        assert result["training_losses"][-1] < result["training_losses"][0]
        assert result["held_out_mean_giou"] == 1 - result["held_out_loss"]
    assert report["variants"]["loop"]["speed_up"] == 1
    assert "fused-ragged" in capsys.readouterr().out
    assert "fused-ragged" in chart.read_text()


def test_disagreement_stops_it_before_any_time_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    doubled = dataclasses.replace(
        VARIANTS["mask"], load=lambda: lambda *arguments: 2 * masked_loss(*arguments)
    )
    monkeypatch.setitem(VARIANTS, "mask", doubled)
    assert face_detector.main(["--device", "cpu", "--variants", "loop", "mask"]) == 1
    printed = capsys.readouterr()
    assert "mask: loss" in printed.err
    assert "Milliseconds" not in printed.out


def test_a_missing_peer_is_skipped_out_loud(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torchvision", None)
    losses, skipped = face_detector.load(["loop", "torchvision"], "small")
    assert list(losses) == ["loop"]
    assert "not installed" in skipped["torchvision"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--variants", "lop"], "unknown variant 'lop'; allowed: loop, concat"),
        (["--device", "tpu"], "'tpu' given, but PyTorch"),
        (["--steps", "3"], "3 given; at least 4 allowed"),
        (["--steps", "10", "--trace", "out"], "10 given; at least 20 allowed with --trace"),
        (["--seed", "-1"], "-1 given; 0 or more allowed"),
        (["--plot", "chart.txt"], "'chart.txt' given; allowed: .svg"),
        (["--json", "no/such/place.json"], "there is no directory 'no/such'"),
    ],
)
def test_a_wrong_option_says_what_is_allowed(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        face_detector.parse(arguments)
    assert complaint in capsys.readouterr().err


def test_a_missing_gpu_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(SystemExit):
        face_detector.parse(["--device", "cuda"])
    assert "sees no GPUs here; allowed: cpu" in capsys.readouterr().err
