# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The loss benchmark: that it compares like with like, and that it runs as its users run it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("boxloss.torch")
pytest.importorskip("rich")

from benchmarks.common.agreement import DisagreementError
from benchmarks.common.losses import UnavailableError, giou
from benchmarks.loss_only import __main__ as loss_only
from benchmarks.loss_only import peers as loss_peers
from benchmarks.loss_only.agreement import check, truth
from benchmarks.loss_only.cases import DENSE_PAIRS, SEED_PAIRS, Case, dense_case, seed_case
from benchmarks.loss_only.report import Group, Row
from benchmarks.loss_only.timing import Effort, wall_times

CPU = torch.device("cpu")
CASES = [
    *(seed_case(pair, CPU, shape=(17, 12)) for pair in SEED_PAIRS),
    *(dense_case(pair, 700, CPU) for pair in DENSE_PAIRS),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_peers_agree(case: Case) -> None:
    expected = truth(case)
    agreed = []
    for name, peer in loss_peers.peers(case.kind, None).items():
        if peer.slow_to_start:
            continue
        try:
            loss = peer.load(case)
        except UnavailableError:
            continue
        check(name, loss, case, case.layouts[peer.layout], expected)
        agreed.append(name)
    assert "eager" in agreed
    assert sum(name.startswith("boxloss") for name in agreed) == (3 if case.kind == "seed" else 1)


def _inexact(loss: loss_peers.Loss) -> loss_peers.Loss:
    return lambda *arguments: loss(*arguments) * (1 + 2**-8)  # as if rounded to bf16


def _no_gradient_apart(pred: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Right in value, but boxes that lie apart do not attract each other."""
    losses = 1 - giou(pred, target)
    return torch.where(losses < 1, losses, losses.detach()).mean()


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [(_inexact(loss_peers.dense_loss), "wrong: loss "), (_no_gradient_apart, "wrong: gradient ")],
)
def test_a_wrong_peer_is_reported(wrong: loss_peers.Loss, complaint: str) -> None:
    case = dense_case("f32/f32", 700, CPU)
    with pytest.raises(DisagreementError, match=complaint):
        check("wrong", wrong, case, case.layouts["dense"], truth(case))


def test_padding_that_leaks_is_reported() -> None:
    case = seed_case("f32/f32", CPU, shape=(17, 12))

    def leaky(pred: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        counted = (target != 0).any(dim=-1)
        return torch.where(counted, 1 - giou(pred, target), 0).sum() / counted.sum()

    with pytest.raises(DisagreementError, match="leaky: gradient nan"):
        check("leaky", leaky, case, case.layouts["padded"], truth(case))


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
    monkeypatch.setattr(loss_peers, "dense_loss", _inexact(loss_peers.dense_loss))
    assert loss_only.main(["--quick", "--device", "cpu", "--cases", "dense"]) == 1
    printed = capsys.readouterr()
    assert "eager: loss" in printed.err
    assert "wall µs" not in printed.out


def test_calls_take_turns() -> None:
    order: list[str] = []
    calls = {name: lambda name=name: order.append(name) for name in "AB"}
    times = wall_times(calls, CPU, Effort(seconds=0, fewest_rounds=3))  # type: ignore[arg-type]
    assert "".join(order[-6:]) == "ABABAB"
    assert times.keys() == {"A", "B"}


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


# In a process of its own: Triton must be told to interpret before anybody imports it. One small
# block for each of a few programs makes these stride, and the last one add the others' partials.
# The interpreter cuts off where a GPU rounds to bf16, hence no bf16 gradient.
INTERPRETED = """
import torch, triton
from benchmarks.loss_only import triton_kernels as peer
from benchmarks.loss_only.agreement import check, truth
from benchmarks.loss_only.cases import dense_case, seed_case

peer._forward.configs = [triton.Config({"BLOCK": 32, "programs": 3})]
peer._backward.configs = [triton.Config({"BLOCK": 32})]
cpu = torch.device("cpu")
for pair in ("f32/f32", "f16/f32", "f32/u8", "f64/f64"):
    case = dense_case(pair, 333, cpu)
    for _ in range(2):  # the first launch must leave the tickets as it found them
        check("dense", peer.dense_loss, case, case.layouts["dense"], truth(case))
case = seed_case("f32/f32", cpu, shape=(17, 12))
check("padded", peer.padded_loss, case, case.layouts["padded"], truth(case))
check("lengths", peer.lengths_loss, case, case.layouts["lengths"], truth(case))
print("all agree")
"""


def test_the_triton_kernels_agree_when_interpreted() -> None:
    pytest.importorskip("triton")
    path = os.pathsep.join(filter(None, sys.path))
    result = subprocess.run(
        [sys.executable, "-c", INTERPRETED],
        env=os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "all agree" in result.stdout


def test_host_cost_stands_beside_an_operator_that_does_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not all(map(shutil.which, ("ninja", "c++"))):
        pytest.skip("needs ninja and a C++ compiler")
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
        assert [row["name"] for row in group["rows"]] == ["nothing, in C++", "boxloss"]


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
    assert loss_only._chosen(peers["cpu/reference"], chosen)() == "cpu/reference"
    assert loss_only._chosen(peers["boxloss"], chosen)() == "cpu"
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
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        loss_only.parse(arguments)
    assert complaint in capsys.readouterr().err


def test_host_says_what_it_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SystemExit):
        loss_only.parse(["--host"])
    assert "--host: needs ninja and c++, but there is no ninja" in capsys.readouterr().err


@pytest.mark.parametrize("checkout", ["nowhere", "unbuilt"])
def test_a_missing_peer_says_so(checkout: str, tmp_path: Path) -> None:
    package = tmp_path / "unbuilt" / "torch_fast_box_ops"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("next(iter([]))\n")  # how it looks for its library
    peer = loss_peers.peers("dense", tmp_path / checkout)["fast-box-ops"]
    with pytest.raises(UnavailableError, match="no built checkout in"):
        peer.load(dense_case("f32/f32", 10, CPU))
