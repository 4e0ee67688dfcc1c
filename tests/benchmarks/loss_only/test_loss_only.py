# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The benchmark as its users run it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

pytest.importorskip("boxloss.torch")
pytest.importorskip("rich")

from benchmarks.common.groups import Group, Row
from benchmarks.common.timing import Effort, wall_times
from benchmarks.loss_only import __main__ as loss_only
from benchmarks.loss_only import peers as loss_peers

CPU = torch.device("cpu")


def test_it_times_compares_and_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    chart, figures = tmp_path / "chart.svg", tmp_path / "figures.json"
    arguments = ["--quick", "--device", "cpu", "--json", str(figures), "--plot", str(chart)]
    assert loss_only.main(arguments) == 0

    report = json.loads(figures.read_text())
    assert report["command"].endswith(" ".join(arguments))
    assert report["machine"]["torch"] == torch.__version__
    assert report["skipped"]["Triton"] == "Triton compiles for GPUs only"
    assert {group["kind"] for group in report["groups"]} == {"seed", "dense"}
    for group in report["groups"]:
        rows = {row["name"]: row for row in group["rows"]}
        first = group["rows"][0]
        assert first["name"].startswith("boxloss")
        assert first["times_first"] == 1
        for row in rows.values():
            assert row["microseconds"]["wall"] > 0
        assert rows["copy"]["limit"]
        assert "eager" in rows
        assert ("sum" in rows) == (group["measured"] == "forward")
    printed = capsys.readouterr().out
    assert "skipped fast-box-ops: --fast-box-ops says where" in printed
    assert printed.index("agree in loss and gradient") < printed.index("wall µs")
    assert "boxloss ragged" in chart.read_text()


def test_disagreement_stops_it_before_any_time_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = loss_peers.dense_loss
    monkeypatch.setattr(loss_peers, "dense_loss", lambda *boxes: 2 * right(*boxes))
    assert loss_only.main(["--quick", "--device", "cpu", "--cases", "dense"]) == 1
    printed = capsys.readouterr()
    assert "eager: loss" in printed.err
    assert "wall µs" not in printed.out


def test_calls_take_turns() -> None:
    order: list[str] = []
    calls = {name: lambda name=name: order.append(name) for name in "ABC"}
    times = wall_times(calls, CPU, Effort(seconds=0, fewest_rounds=20))  # type: ignore[arg-type]
    turns = ["".join(order[-3 * turn :][:3]) for turn in range(20, 0, -1)]
    assert {"".join(sorted(turn)) for turn in turns} == {"ABC"}
    assert len(set(turns)) > 3
    assert times.keys() == set("ABC")


def test_ratios_and_shares_compare_the_same_clock() -> None:
    rows = [
        Row("boxloss", {"gpu": 2e-3, "wall": 4e-3}),
        Row("slow", {"wall": 8e-3}, "cannot be captured"),
        Row("copy", {"gpu": 1e-3, "wall": 9e-3}),
    ]
    group = Group("case", "dense", "f32/f32", 10**9, "forward", 32 * 10**9, rows)
    assert group.ratio(rows[1]) == 2  # wall over wall
    assert group.ratio(rows[2]) == 0.5  # gpu over gpu
    assert group.bandwidth(rows[0]) == 16e12
    assert group.share(rows[0], "copy") == 0.5


def test_host_cost_stands_beside_an_operator_that_does_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not all(map(shutil.which, ("ninja", "c++"))):
        pytest.skip("needs ninja and a C++ compiler")
    if " " in torch.__file__:
        pytest.skip("torch lies in a folder with a space, which it does not quote for the compiler")
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))
    figures = tmp_path / "host.json"
    assert loss_only.main(["--host", "--quick", "--device", "cpu", "--json", str(figures)]) == 0
    groups = json.loads(figures.read_text())["groups"]
    assert [group["measured"] for group in groups] == [
        "forward, no_grad",
        "forward",
        "forward + backward",
    ]
    for group in groups:
        limits = ["torch.empty"] if group["measured"] == "forward, no_grad" else []
        nothing = ["nothing, in C++", "nothing, in Python"]
        names = [*limits, *nothing, "boxloss", "boxloss, by word"]
        assert [row["name"] for row in group["rows"]] == names


def test_other_implementations_stand_beside_the_best(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    arguments = ["--quick", "--device", "cpu", "--cases", "dense", "--pairs", "f32/f32"]
    arguments += ["--boxes", "1000", "--implementations", "cpu/reference", "--json", str(figures)]
    assert loss_only.main(arguments) == 0
    groups = json.loads(figures.read_text())["groups"]
    assert [group["measured"] for group in groups] == ["forward", "forward + backward"]
    for group in groups:
        assert [row["name"] for row in group["rows"]][:2] == ["boxloss", "cpu/reference"]


def test_another_implementation_is_chosen_while_it_is_timed() -> None:
    def chosen() -> str:
        before: str = torch.ops.boxloss.use_implementation("cpu")
        torch.ops.boxloss.use_implementation(before)
        return before

    peers = loss_peers.peers("dense", None, ["cpu/reference"])
    assert peers["cpu/reference"].choosing(chosen)() == "cpu/reference"
    assert peers["boxloss"].choosing(chosen)() == "cpu"
    assert chosen() == "cpu"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--device", "tpu"], "'tpu' given; allowed here: cpu"),
        (["--boxes", "0"], "0 given; 1 or more allowed"),
        (["--pairs", "f32/f31"], "invalid choice: 'f32/f31'"),
        (["--plot", "chart.txt"], "'chart.txt' given; allowed: .svg"),
        (["--plot", "chart.svg", "--host"], "--host alone has nothing to draw"),
        (["--json", "no/such/place.json"], "there is no directory 'no/such'"),
        (["--implementations", "cpu/x"], "'cpu/x' given; allowed here: cpu/native, "),
    ],
)
def test_a_wrong_option_says_what_is_allowed(
    arguments: list[str], complaint: str, complaint_of: Callable[..., str]
) -> None:
    assert complaint in complaint_of(loss_only.parse, arguments)


def test_host_says_what_it_needs(
    monkeypatch: pytest.MonkeyPatch, complaint_of: Callable[..., str]
) -> None:
    monkeypatch.setenv("PATH", "")
    assert "--host: needs ninja and c++, but there is no ninja" in complaint_of(
        loss_only.parse, ["--host"]
    )
