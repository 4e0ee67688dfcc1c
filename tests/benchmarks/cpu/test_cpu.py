# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The benchmark of the CPU's losses as its users run it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

pytest.importorskip("boxloss.torch")
pytest.importorskip("rich")

from boxloss.torch import box_loss, cpu_capability, giou_loss

from benchmarks.common.agreement import DisagreementError
from benchmarks.common.cases import dense_case
from benchmarks.common.losses import Loss
from benchmarks.common.machine import CAPABILITIES
from benchmarks.cpu import __main__ as cpu
from benchmarks.cpu import variants
from benchmarks.cpu.agreement import oracle_truth
from benchmarks.cpu.cases import retinanet_case
from benchmarks.loss_only import host, peers
from benchmarks.loss_only.agreement import check, truth

PASSES = ("forward", "forward + backward")
TIMED = ["--quick", "--groups", "dense", "losses", "sparse"]
SEED = [f"boxloss {label}" for label in ("padded", "lengths", "ragged", "mask")]


def test_it_times_compares_and_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    chart, figures = tmp_path / "chart.svg", tmp_path / "figures.json"
    arguments = [*TIMED, "--json", str(figures), "--plot", str(chart)]
    assert cpu.main(arguments) == 0

    report = json.loads(figures.read_text())
    assert report["command"].endswith("benchmarks.cpu " + " ".join(arguments))
    uses = CAPABILITIES.get(cpu_capability(), cpu_capability())
    said = f"{torch.get_num_threads()} torch threads, {uses}"
    assert report["machine"]["cpu"].endswith(said)
    assert "torch.compile" in report["skipped"]
    assert not any(name.startswith("Triton") for name in report["skipped"])
    measured = [(group["kind"], group["dtypes"], group["measured"]) for group in report["groups"]]
    settings = [
        *(("dense", pair) for pair in cpu.DENSE_SIZES),
        ("losses", "f32/f32"),
        ("sparse", "f32/f32"),
        *(("sparse", pair) for pair in cpu.SEED_PAIRS),
    ]
    assert measured == [(*setting, each) for setting in settings for each in PASSES]
    for group in report["groups"]:
        names = [row["name"] for row in group["rows"]]
        limits = [row["name"] for row in group["rows"] if row["limit"]]
        assert group["rows"][0]["times_first"] == 1
        assert all(row["microseconds"]["wall"] > 0 for row in group["rows"])
        is_forward = group["measured"] == "forward"
        memory = [variants.SUMS] if is_forward else [variants.IN_PLACE, variants.IN_NEW]
        if group["kind"] == "dense":
            assert {"boxloss", "eager"} <= set(names)
            assert limits == memory
        elif group["kind"] == "losses":
            assert names[0] == "giou"
            assert len(names) == 9
        elif group["case"].startswith("retinanet"):
            assert names[0] == "boxloss"
            assert "picked, eager" in names
            assert limits == ["mask.sum()"] * is_forward + memory
        else:
            assert names[:4] == SEED
    printed = capsys.readouterr().out
    assert printed.index("agree in loss and gradient") < printed.index("wall µs")
    drawn = chart.read_text()
    assert "float32 / float32, forward + backward: 80 bytes" in drawn
    assert "as many bytes summed" in drawn


@pytest.mark.parametrize(
    ("pair", "forward", "both"),
    [("f32/f32", 32, 80), ("bf16/u8", 12, 32), ("bf16/bf16", 16, 40), ("f64/f64", 64, 160)],
)
def test_bytes_of_a_box(pair: str, forward: int, both: int) -> None:
    case = dense_case(pair, 10, cpu.CPU)
    assert case.forward_bytes == 10 * forward
    assert case.forward_bytes + case.backward_bytes == 10 * both


def test_limits_leave_no_byte_out(monkeypatch: pytest.MonkeyPatch) -> None:
    summed: list[int] = []
    right: Callable[..., torch.Tensor] = torch.Tensor.sum

    def counting(values: torch.Tensor) -> torch.Tensor:
        summed.append(values.nbytes)
        return right(values)

    monkeypatch.setattr(torch.Tensor, "sum", counting)
    case = dense_case("bf16/u8", 10, cpu.CPU)
    for measured, times in (("forward", 1), ("forward + backward", 2)):
        for call in variants.memory_limits(case, measured).values():
            summed.clear()
            call()
            assert sum(summed) == times * case.forward_bytes


def test_a_call_stands_beside_an_operator_that_does_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Building the operator is loss_only's test.
    monkeypatch.setattr(host, "host_losses", lambda: {"nothing": giou_loss, "boxloss": giou_loss})
    monkeypatch.setattr(cpu, "check_tools", lambda: None)
    figures = tmp_path / "figures.json"
    assert cpu.main(["--quick", "--groups", "call", "--json", str(figures)]) == 0
    groups = json.loads(figures.read_text())["groups"]
    assert [group["measured"] for group in groups] == ["forward, no_grad", *PASSES]
    assert {group["boxes"] for group in groups} == {16}


def test_disagreement_stops_it_before_any_time_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = peers.dense_loss
    monkeypatch.setattr(peers, "dense_loss", lambda *boxes: 2 * right(*boxes))
    assert cpu.main(["--quick", "--groups", "dense"]) == 1
    printed = capsys.readouterr()
    assert "cpu: error: eager: loss" in printed.err
    assert "wall µs" not in printed.out


def _off(loss: torch.Tensor) -> torch.Tensor:
    return loss * 1.0001


def _leaking(loss: torch.Tensor) -> torch.Tensor:
    return loss + (loss - loss.detach()) / 100


@pytest.mark.parametrize("wrong", [_off, _leaking])
def test_each_loss_is_held_against_the_oracle(
    wrong: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    case = dense_case("f32/f32", 1000, cpu.CPU)

    def loss(pred: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return box_loss(pred, target, "siou")

    expected = oracle_truth(case, loss)
    check("siou", loss, case, case.layouts["dense"], expected)
    with pytest.raises(DisagreementError, match="siou: "):
        check("siou", lambda *boxes: wrong(loss(*boxes)), case, case.layouts["dense"], expected)


def test_what_is_not_masked_leaks_and_is_found_out() -> None:
    case = retinanet_case(2, 500, 0.02)
    assert case.boxes == 20
    expected = truth(case)

    def ignoring(pred: torch.Tensor, target: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return giou_loss(pred, target)

    right: Loss = peers.boxloss("mask").load(case)
    check("right", right, case, case.layouts["mask"], expected)
    with pytest.raises(DisagreementError):
        check("ignoring", ignoring, case, case.layouts["mask"], expected)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--groups", "dens"], "invalid choice: 'dens'"),
        (["--device", "cpu"], "unrecognized arguments: --device cpu"),
        (["--plot", "chart.txt", "--groups", "dense"], "'chart.txt' given; allowed: .svg"),
        (["--plot", "chart.svg", "--groups", "sparse"], "which --groups leaves out"),
        (["--json", "no/such/place.json", "--groups", "dense"], "no directory 'no/such'"),
    ],
)
def test_a_wrong_option_says_what_is_allowed(
    arguments: list[str], complaint: str, complaint_of: Callable[..., str]
) -> None:
    assert complaint in complaint_of(cpu.parse, arguments)


def test_call_says_what_it_needs(
    monkeypatch: pytest.MonkeyPatch, complaint_of: Callable[..., str]
) -> None:
    monkeypatch.setenv("PATH", "")
    assert "--groups: call needs ninja and c++, but there is no ninja" in complaint_of(
        cpu.parse, []
    )
