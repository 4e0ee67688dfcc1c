# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What is read out of a profiler's trace, which is written here by hand."""

from __future__ import annotations

import argparse
import time
from functools import partial
from typing import Any

import pytest
import torch

pytest.importorskip("boxloss.torch")
pytest.importorskip("rich")

from benchmarks.common.cases import seed_case
from benchmarks.common.exact import check, truth
from benchmarks.runner.agreement import DisagreementError
from benchmarks.runner.results import Results
from benchmarks.runner.run import FORWARD, Run
from benchmarks.studies.timeline import (
    AUTOGRAD,
    BACKWARD,
    DTYPES,
    GPU,
    OURS,
    PARTS,
    PYTHON,
    SYNCHRONIZATION,
    WARM_UPS,
    backward_parts,
    losses_of,
    ranges,
    record_trace,
    rested_samples,
    shown_from,
    stretches_between,
)

MAIN, ENGINE, STREAM = 1, 2, 7
NODE = "autograd::engine::evaluate_function: "


def event(
    category: str, name: str, start: float, microseconds: float, thread: int = MAIN
) -> dict[str, Any]:
    times = {"ts": 1000 + start, "dur": microseconds}
    return {"ph": "X", "cat": category, "name": name, "tid": thread, **times}


TRACE = [
    event("user_annotation", BACKWARD, 0, 100),
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
    (found,) = ranges(TRACE, BACKWARD)
    assert backward_parts(found) == dict(zip(PARTS, (12, 28, 15, 6, 4, 25, 10), strict=True))
    quiet = [each for each in TRACE if each.get("tid") != ENGINE or each["cat"] == "cpu_op"]
    parts = backward_parts(ranges(quiet, BACKWARD)[0])  # of a node that launches nothing
    assert parts["the loss' node, up to its launch"] == 0
    assert sum(parts.values()) == 100


def test_who_is_busy_when() -> None:
    (found,) = ranges(TRACE, BACKWARD)
    assert found.busy(PYTHON) == [(2, 12), (90, 99)]  # what an operator calls is part of it
    assert found.busy(AUTOGRAD) == [(40, 60), (61, 65)]
    assert found.busy(AUTOGRAD, gap=1) == [(40, 65)]
    assert found.microseconds(GPU) == 5
    assert stretches_between(found.busy(GPU), begin=20) == "36-39"
    assert ranges(TRACE, FORWARD) == []
    assert (shown_from(4000), shown_from(100_000)) == (0, 50_000)


def test_a_trace_is_recorded_without_its_first_call() -> None:
    options = argparse.Namespace(device=torch.device("cpu"), quick=True, json=None, resume=False)
    run = Run(options, Results("timeline"), {"commit": "", "machine": {}})
    forward = [
        event("user_annotation", FORWARD, 200, 60),
        event("kernel", "in the middle", 230, 2, STREAM),
    ]
    once = [*forward, *TRACE]
    again = [each | {"ts": each["ts"] + 1000} for each in once]
    slower = event("user_annotation", FORWARD, 400, 300)
    record_trace(run, OURS, [*once, slower | {"ts": 0}, *again])
    rows = run.results.rows
    assert {row["part"] for row in rows if "part" in row} == set(PARTS)
    (busy,) = run.results.having({"quantity": "busy", "pass": BACKWARD, "lane": GPU})
    assert (busy["median"], busy["stretches"]) == (5, "12-14 56-59")
    (share,) = run.results.having({"quantity": "share"})
    assert share["median"] == (5 + 2) / (100 + 60)


def test_what_is_measured_comes_after_a_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(time, "sleep", lambda seconds: order.append("rest"))
    leaf = torch.ones(1, requires_grad=True)

    def noted(name: str) -> torch.Tensor:
        order.append(name)
        return leaf.sum()

    samples = rested_samples({name: partial(noted, name) for name in "ab"}, leaf, rounds=2)
    timed = order[2 * WARM_UPS :]
    assert len(timed) == 2 * (2 + 3)
    assert all(timed[place - 1] == "rest" for place, each in enumerate(timed) if each != "rest")
    assert {name: len(each) for name, each in samples[FORWARD].items()} == {"a": 2, "b": 2}
    assert len(samples[BACKWARD][SYNCHRONIZATION]) == 2


def test_a_wrong_loss_is_refused() -> None:
    case = seed_case(DTYPES, torch.device("cpu"), (32, 32))
    losses = losses_of(case)
    for name, loss in losses.items():
        check(name, loss, case, truth(case))
    right = losses[OURS]
    with pytest.raises(DisagreementError, match="wrong: loss"):
        check("wrong", lambda: right() * (1 + 2**-8), case, truth(case))
