# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The one program of all studies: arguments, agreement, resuming, files, tables."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

pytest.importorskip("boxloss.torch")
pytest.importorskip("rich")

from boxloss._trace import RANGE, counts_of

from benchmarks.common.cases import dense_case
from benchmarks.runner import everything, program
from benchmarks.runner.agreement import DisagreementError
from benchmarks.runner.clocks import Effort, wall_samples
from benchmarks.runner.results import Results, number, read_results, summary
from benchmarks.runner.run import BOTH, FORWARD, Run, UnavailableError, Variant


def measure_two(run: Run) -> None:
    leaf = torch.ones(8, requires_grad=True)
    losses = {"sum": leaf.sum, "mean": leaf.mean}
    run.time_passes({"case": "ones", "boxes": 8}, losses, leaf, ("stream", "gpu"))
    run.record({"case": "ones", "variant": "sum"}, "peak", "bytes", 32)


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A study of its own, "two", whose `measure` a test may replace."""
    module = ModuleType("two", "Which of two?")
    module.measure = measure_two
    monkeypatch.setattr(program, "studies", lambda: ["two"])
    monkeypatch.setattr(program, "load", lambda name: module)
    return module


def run_two(*arguments: str) -> int:
    return program.main(["two", "--device", "cpu", "--quick", *arguments])


def test_what_is_measured_is_shown_and_written(
    study: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "two.json"
    assert run_two("--json", str(file)) == 0
    shown = capsys.readouterr().out
    assert "Which of two?" in shown
    assert "stream µs" in shown
    results = read_results(file)
    columns = ("pass", "variant", "quantity", "unit")
    assert [tuple(row.get(each) for each in columns) for row in results.rows] == [
        *((each, name, "stream", "µs") for each in (FORWARD, BOTH) for name in ("sum", "mean")),
        (None, "sum", "peak", "bytes"),
    ]
    (run,) = results.runs
    assert run["machine"]["torch"] == torch.__version__
    assert run["commit"]


def test_a_run_is_added_to_a_file(study: ModuleType, tmp_path: Path) -> None:
    """By the program itself, or from another process' file; no row is lost."""
    file, other = tmp_path / "two.json", tmp_path / "other.json"
    for each in (file, file, other):
        assert run_two("--json", str(each)) == 0
    added = read_results(file).rows + [row | {"run": 2} for row in read_results(other).rows]
    assert run_two("--json", str(file), "--add", str(other)) == 0
    assert read_results(file).rows == added
    with pytest.raises(ValueError, match="there already"):
        run_two("--json", str(file), "--add", str(other))


def test_runs_of_one_kind_are_pooled() -> None:
    machine = {"cpu": "one", "torch": "2"}
    runs = [{"commit": "a", "machine": machine} for _ in range(4)]
    row = {"variant": "x", "quantity": "gpu", "unit": "µs", "low": 0, "high": 9}
    results = Results("two", runs, [row | {"run": i, "median": 2 * i} for i in range(3)])
    alone = row | {"variant": "y", "run": 3, "median": 1}
    results.add(alone)
    assert results.pooled() == [row | {"run": 2, "median": 2, "low": 1, "high": 3}, alone]
    runs[1]["commit"] = "b"
    with pytest.raises(ValueError, match="several commits"):
        results.pooled()


def test_a_disagreement_ends_it_before_anything_is_timed(
    study: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def measure(run: Run) -> None:
        raise DisagreementError("sum: loss 2, but the formula in fp64 gives 1")

    study.measure = measure
    assert run_two("--json", str(tmp_path / "two.json")) == 1
    assert "two: error: sum: loss 2" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_variant_that_cannot_run_is_skipped_once_aloud(
    study: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_triton(case: str) -> str:
        raise UnavailableError("no Triton")

    def measure(run: Run) -> None:
        run.record({"variant": "a"}, "stream", "µs", [1.0])
        for _ in run.each({"one": lambda: 1, "other": lambda: 2}):
            variants = {"a": Variant(str), "b": Variant(str, True), "c": Variant(no_triton)}
            assert run.load(variants, "case") == {"a": "case"}

    study.measure = measure
    file = tmp_path / "two.json"
    assert run_two("--json", str(file)) == 0
    shown = capsys.readouterr().out
    assert shown.count("no Triton") == 1
    assert "other (2 of 2)" in shown
    assert read_results(file).runs[0]["skipped"].keys() == {"b", "c"}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--device", "tpu"], "--device: 'tpu' given; allowed here: cpu"),
        (["--json", "no/such/place.json"], "--json: there is no directory 'no/such'"),
        (["--json", "other.json"], "'other.json' has the results of other, not of two"),
    ],
)
def test_a_wrong_option_says_what_is_allowed(
    study: ModuleType,
    arguments: list[str],
    complaint: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Results("other", [{}]).write(Path("other.json"))
    with pytest.raises(SystemExit):
        program.main(["two", *arguments])
    assert complaint in capsys.readouterr().err


def test_all_figures_go_on_where_they_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = {"host": ["host", "--device", "cpu"], "host again": ["host", "--no-such-option"]}
    monkeypatch.setattr(everything, "runs", lambda: runs)
    assert program.main(["all", str(tmp_path), "--quick"]) == 1
    assert "host: done" in capsys.readouterr().out
    assert program.main(["all", str(tmp_path), "--list"]) == 0
    assert capsys.readouterr().out == "host again\n"
    assert len(read_results(tmp_path / "host.json").runs) == 1


def test_calls_take_turns_in_an_order_that_is_drawn_anew() -> None:
    order: list[str] = []
    calls: dict[str, Any] = {name: lambda name=name: order.append(name) for name in "abc"}
    samples = wall_samples(calls, torch.device("cpu"), Effort(0, 30))
    assert {name: len(each) for name, each in samples.items()} == {"a": 30, "b": 30, "c": 30}
    turns = [tuple(order[at : at + 3]) for at in range(len(order) - 90, len(order), 3)]
    assert all(sorted(turn) == ["a", "b", "c"] for turn in turns)
    assert {turn[0] for turn in turns} == {"a", "b", "c"}


def test_quartiles_and_three_digits() -> None:
    found = summary([3e-6, 1e-6, 2e-6, 4e-6, 5e-6], 1e6)
    assert found == pytest.approx({"median": 3, "low": 2, "high": 4})
    values = (0.123456, 8.3, 94, 292.4, 7259.1)
    assert [number(each) for each in values] == ["0.123", "8.30", "94.0", "292", "7,259"]


@pytest.mark.parametrize(
    ("pair", "forward", "both"), [("f32/f32", 32, 80), ("bf16/u8", 12, 32), ("f64/f64", 64, 160)]
)
def test_bytes_of_a_pair(pair: str, forward: int, both: int) -> None:
    moved = dense_case(pair, 10, torch.device("cpu")).moved
    assert moved == {FORWARD: 10 * forward, BOTH: 10 * both}


TRACE = [
    ("user_annotation", RANGE, 100, 50),
    ("gpu_user_annotation", RANGE, 101, 90),
    ("cpu_op", "aten::index", 102, 1),
    ("cuda_driver", "cuLaunchKernelEx", 104, 1),
    ("cuda_runtime", "cudaMemcpyAsync", 106, 1),
    ("cuda_runtime", "cudaGraphLaunch", 107, 1),
    ("cuda_runtime", "cudaStreamSynchronize", 108, 1),
    ("cuda_runtime", "cudaMemcpy", 109, 1),
    ("cuda_runtime", "cudaStreamWaitEvent", 110, 1),
    ("kernel", "k", 103, 4),
    ("kernel", "k", 160, 4),  # a kernel may end after the host has left
    ("gpu_memcpy", "Memcpy HtoD", 107, 2),
    ("gpu_memset", "Memset", 108, 3),  # on another stream
    ("cuda_runtime", "cudaDeviceSynchronize", 151, 1),  # the measurement's own
]


def test_launches_kernels_and_waits_of_a_trace_are_counted() -> None:
    trace = [dict(zip(("cat", "name", "ts", "dur"), each, strict=True)) for each in TRACE]
    expected = {"kernels": 2, "launches": 2, "waits": 1, "busy_microseconds": 6}
    assert counts_of([{"name": "process_name", "ph": "M"}, *trace], 2) == expected
    assert counts_of(trace[:3], 2)["kernels"] == 0
