# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The benchmark as its users run it."""

from __future__ import annotations

import dataclasses
import itertools
import json
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import torch

pytest.importorskip("boxloss.torch")
pytest.importorskip("rich")
pytest.importorskip("skimage")

from benchmarks.common.losses import Loss, masked_loss
from benchmarks.face_detector import __main__ as face_detector
from benchmarks.face_detector.data import RandomPictures
from benchmarks.face_detector.model import SCALES, FaceDetector
from benchmarks.face_detector.training import (
    COLLATE,
    NETWORK,
    PARTS,
    WARM_UP,
    Result,
    Stopwatch,
    train,
)
from benchmarks.face_detector.variants import VARIANTS, Variant

NAMES = ["mask", "boxloss-ragged", "loop"]
LABELS = ["mask", "boxloss ragged", "loop"]


def test_it_trains_times_and_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    chart, figures = tmp_path / "chart.svg", tmp_path / "figures.json"
    arguments = ["--device", "cpu", "--steps", "6", "--variants", *NAMES]
    assert face_detector.main([*arguments, "--plot", str(chart), "--json", str(figures)]) == 0

    report = json.loads(figures.read_text())
    assert report["network_milliseconds"].keys() == set(NETWORK)
    assert min(each["median"] for each in report["network_milliseconds"].values()) > 0
    assert list(report["variants"]) == LABELS
    for result in report["variants"].values():
        assert result["milliseconds"].keys() == {COLLATE, *PARTS}
        for each in (*result["milliseconds"].values(), result["together"], result["step"]):
            assert 0 < each["lower_quartile"] <= each["median"] <= each["upper_quartile"]
    assert report["variants"]["mask"]["speed_up"] == 1
    assert len(report["training_losses"]) == 6
    assert report["training_losses"][-1] < report["training_losses"][0]
    assert report["largest_difference"] < 1e-5
    assert report["held_out_mean_giou"] == 1 - report["held_out_loss"]

    printed = capsys.readouterr().out
    pictures = tmp_path / "chart-pictures.png"
    places = [printed.index(each) for each in ("How long", *LABELS, str(chart), str(pictures))]
    assert places == sorted(places)
    drawn = chart.read_text()
    assert all(name in drawn for name in LABELS)
    assert pictures.stat().st_size > 10_000


def test_what_each_variant_pays_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock stands still outside of what is timed, and a step's own parts add up."""
    ticks = itertools.count()
    monkeypatch.setattr(time, "perf_counter", lambda: next(ticks))
    clock = Stopwatch(torch.device("cpu"))
    for _ in range(WARM_UP + 1):
        for part in NETWORK:
            with clock("network", part):
                pass
        for part in PARTS:
            with clock("mask", part):
                time.perf_counter()
        clock.note("mask", COLLATE, 7)  # in another process
    of_mask = clock.milliseconds("mask", (COLLATE, *PARTS))
    result = Result(clock.milliseconds("network", NETWORK), {"mask": of_mask}, [], 0, 0, [])
    assert of_mask[COLLATE] == [7]
    assert result.together("mask") == [3 * 2000]
    assert result.step("mask") == [3 * 2000 + 3 * 1000]


def test_times_of_the_warm_up_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter([0, 9] * WARM_UP + [0, 1, 0, 3, 0, 2])
    monkeypatch.setattr(time, "perf_counter", lambda: next(seconds))
    clock = Stopwatch(torch.device("cpu"))
    for _ in range(WARM_UP + 3):
        with clock("mask", "loss"):
            pass
    assert clock.milliseconds("mask", ["loss"]) == {"loss": [1000, 3000, 2000]}


def test_variants_take_turns_at_the_same_predictions() -> None:
    """One that came first each time would have them cold, one after the loop a heap in disorder."""
    order: list[str] = []
    seen: list[torch.Tensor] = []

    def noted(name: str) -> Loss:
        def loss(pred: torch.Tensor, *targets: torch.Tensor) -> torch.Tensor:
            order.append(name)
            seen.append(pred.detach().clone())
            return masked_loss(pred, *targets)

        return loss

    names = ["mask", "torchvision", "boxloss-lengths"]
    scale = dataclasses.replace(SCALES["small"], batch=4, workers=1)
    data = RandomPictures("train", 0, 5), RandomPictures("test", 0, 5)
    steps = 30
    train(
        FaceDetector(scale),
        VARIANTS,
        {name: noted(name) for name in names},
        scale,
        data,
        device=torch.device("cpu"),
        steps=steps,
        seed=0,
        trace=None,
        on_step=lambda: None,
    )
    turns = [tuple(order[at : at + 3]) for at in range(0, len(order), 3)]
    assert len(turns) == steps
    assert all(set(turn) == set(names) for turn in turns)
    assert {turn[0] for turn in turns} == set(names)
    for at in range(0, len(seen), 3):
        assert torch.equal(seen[at], seen[at + 1])
        assert torch.equal(seen[at], seen[at + 2])
    assert not torch.equal(seen[0], seen[-1])


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
    assert "Milliseconds of" not in printed.out


def test_a_missing_peer_is_skipped_out_loud(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torchvision", None)
    options = face_detector.parse(["--device", "cpu", "--variants", "loop", "torchvision"])
    asked = {name: VARIANTS[name] for name in options.variants}
    losses, skipped = face_detector.load(asked, options)
    assert list(losses) == ["loop"]
    assert "not installed" in skipped["torchvision"]


def test_an_implementation_is_timed_beside_the_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = []
    chosen = Variant.chosen

    def noted(variant: Variant) -> AbstractContextManager[None]:
        used.append(variant.implementation)
        return chosen(variant)

    monkeypatch.setattr(Variant, "chosen", noted)
    figures = tmp_path / "figures.json"
    arguments = ["--device", "cpu", "--steps", "4", "--variants", "mask", "boxloss-ragged"]
    arguments += ["--implementations", "cpu/reference", "--json", str(figures)]
    assert face_detector.main(arguments) == 0
    names = ["mask", "boxloss ragged", "cpu/reference ragged"]
    assert list(json.loads(figures.read_text())["variants"]) == names
    assert used.count("cpu/reference") == 1 + 4  # the check, and each step


def test_those_skipped_for_one_reason_share_a_line() -> None:
    options = face_detector.parse(["--device", "cpu"])
    _, skipped = face_detector.load(VARIANTS, options)
    lines = face_detector.by_reason(skipped)
    assert "Triton" in lines["it runs on GPUs only"]
    (slow,) = (names for reason, names in lines.items() if "takes longer" in reason)
    assert slow == "torch.compile, jax.jit"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--variants", "lop"], "unknown variant 'lop'; allowed: mask, concat"),
        (["--device", "tpu"], "'tpu' given; allowed here: cpu"),
        (["--implementations", "cuda/native"], "'cuda/native' given; allowed here: cpu/native"),
        (["--steps", "3"], "3 given; at least 4 allowed"),
        (["--steps", "10", "--trace", "out"], "10 given; at least 20 allowed with --trace"),
        (["--seed", "-1"], "-1 given; 0 or more allowed"),
        (["--plot", "chart.txt"], "'chart.txt' given; allowed: .svg"),
        (["--json", "no/such/place.json"], "there is no directory 'no/such'"),
    ],
)
def test_a_wrong_option_says_what_is_allowed(
    arguments: list[str], complaint: str, complaint_of: Callable[..., str]
) -> None:
    assert complaint in complaint_of(face_detector.parse, arguments)


def test_a_missing_gpu_is_named(complaint_of: Callable[..., str]) -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    assert "sees no GPUs)" in complaint_of(face_detector.parse, ["--device", "cuda"])
