# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What is read out of a profiler's trace, which is written here by hand."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("boxloss.torch")
pytest.importorskip("rich")

from benchmarks.timeline import __main__ as timeline
from benchmarks.timeline.contexts import CONTEXTS, FENCE, measure
from benchmarks.timeline.events import AUTOGRAD, GPU, PARTS, PYTHON, backward_parts, ranges

MAIN, ENGINE, STREAM = 1, 2, 7


def event(
    category: str, name: str, start: float, microseconds: float, thread: int = MAIN
) -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "ts": 1000 + start,
        "dur": microseconds,
        "tid": thread,
    }


NODE = "autograd::engine::evaluate_function: "
BACKWARD = [
    event("user_annotation", "backward", 0, 100),
    event("cpu_op", "aten::ones_like", 2, 10),
    event("cpu_op", "aten::fill_", 6, 5),
    event("cuda_runtime", "cudaLaunchKernel", 7, 3),
    event("cpu_op", NODE + "Loss", 40, 20, ENGINE),
    event("cuda_runtime", "cudaLaunchKernel", 50, 5, ENGINE),
    event("cpu_op", NODE + "torch::autograd::AccumulateGrad", 61, 4, ENGINE),
    event("kernel", "fill", 12, 2, STREAM),
    event("kernel", "backward", 56, 3, STREAM),
    event("cuda_runtime", "cudaDeviceSynchronize", 90, 9),
    # What is no part of it: before, after, and of no lane.
    event("kernel", "before", -5, 2, STREAM),
    event("kernel", "after", 130, 2, STREAM),
    event("python_function", "loss.backward", 1, 98),
    {"ph": "i", "name": "a mark", "ts": 1010},
]


def test_the_parts_of_a_backward_follow_each_other_without_a_gap() -> None:
    (found,) = ranges(BACKWARD, "backward")
    parts = backward_parts(found)
    assert dict(zip(PARTS, (12, 28, 15, 6, 4, 25, 10), strict=True)) == parts
    assert sum(parts.values()) == found.milliseconds * 1e3


def test_a_node_that_launches_nothing() -> None:
    quiet = [each for each in BACKWARD if each.get("tid") != ENGINE or each["cat"] == "cpu_op"]
    parts = backward_parts(ranges(quiet, "backward")[0])
    assert parts["the loss' node, up to its launch"] == 0
    assert sum(parts.values()) == 100


def test_who_is_busy_when() -> None:
    (found,) = ranges(BACKWARD, "backward")
    assert found.busy(PYTHON) == [(2, 12), (90, 99)]  # what an operator calls is part of it
    assert found.busy(AUTOGRAD) == [(40, 60), (61, 65)]
    assert found.busy(GPU) == [(12, 14), (56, 59)]
    assert ranges(BACKWARD, "forward") == []


def document() -> dict[str, Any]:
    (found,) = ranges(BACKWARD, "backward")
    each = {"median": 3.0, "lower_quartile": 2.0, "upper_quartile": 4.0}
    both = {"forward": each, "backward": each}
    return {
        "machine": {"cpu": "a CPU", "gpu": "a GPU", "torch": "2"},
        "microseconds": {
            "waiting for nothing": {"again and again": {"backward": each}},
            "mask": {"again and again": both},
        },
        "backward_parts": {"boxloss ragged": dict.fromkeys(PARTS, each)},
        "timelines": {
            name: dict.fromkeys(("forward", "backward"), timeline.timeline(found))
            for name in ("loop", "boxloss ragged")
        },
    }


def test_what_is_measured_follows_itself_or_a_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing else, whatever that was."""
    order: list[str] = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(time, "sleep", lambda seconds: order.append("rest"))
    leaf = torch.ones(1, requires_grad=True)

    def noted(name: str) -> torch.Tensor:
        order.append(name)
        return leaf.sum()

    samples = measure({name: partial(noted, name) for name in "ab"}, leaf, rounds=2)
    assert order == ["a", "a", "b", "b", "rest", "a", "rest", "b", "rest"] * 2
    assert {len(each["forward"]) for each in samples["a"].values()} == {2}
    assert all(len(samples[FENCE][context]["backward"]) == 2 for context in CONTEXTS)


def test_a_timeline_keeps_what_is_drawn() -> None:
    kept = document()["timelines"]["loop"]["backward"]
    assert kept["kernels"] == 2
    assert kept["busy_milliseconds"][GPU] == pytest.approx(5e-3)
    assert kept["shown_from"] == 0
    assert kept["shown_microseconds"][GPU] == "12.0-14.0 56.0-59.0"


def test_of_what_takes_long_the_middle_is_kept() -> None:
    long = [
        event("user_annotation", "forward", 0, 100_000),
        event("kernel", "first", 10, 2, STREAM),
        event("kernel", "in the middle", 50_100, 2, STREAM),
        event("kernel", "last", 99_000, 2, STREAM),
    ]
    kept = timeline.timeline(ranges(long, "forward")[0])
    assert kept["shown_from"] == 50
    assert kept["shown_microseconds"][GPU] == "100.0-102.0"
    assert kept["kernels"] == 3


def test_the_picture_says_how_much_there_was(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "timeline.svg"
    timeline.plot(document(), path)
    assert "boxloss ragged: 0.200 ms, 4 kernels and copies" in path.read_text()


def test_the_tables_have_a_row_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    report = document()
    assert timeline.contexts_table(report).row_count == 2
    assert timeline.parts_table(report).row_count == len(PARTS)


def test_without_a_gpu_there_is_nothing_to_see(complaint_of: Callable[..., str]) -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    assert "nothing to see without a GPU" in complaint_of(timeline.parse, [])
