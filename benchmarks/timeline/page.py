# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Where the time goes, as docs/results.md has it."""

from __future__ import annotations

from typing import Any

from ..common.bars import number
from ..common.page import measured, paragraphs, spread, table
from .events import GPU

OURS, NOTHING = "boxloss ragged", "nothing, in C++"
ALONE, IN_TURN = "again and again", "after another loss"


def section(report: dict[str, Any]) -> str:
    times, parts = report["microseconds"], report["backward_parts"]

    def backward(name: str, context: str) -> float:
        return float(times[name][context]["backward"]["median"])

    ours, nothing = backward(OURS, ALONE), backward(NOTHING, ALONE)
    busy = report["timelines"][OURS]["backward"]["busy_milliseconds"][GPU] * 1e3
    return paragraphs(
        "## Where a loss' time goes",
        "One panel for each way to compute the loss of the article's batch, forward and then "
        "backward. Most of an eager loss' time the GPU waits for the host.",
        "![Python's thread, autograd's and the GPU while a loss is computed]"
        "(../benchmarks/results/h200/timeline.svg)",
        "`--trace DIR` keeps the traces for TensorBoard and Perfetto.",
        "### Why a backward takes so long when its kernel takes a few microseconds",
        f"Called again and again, each call waited for, boxloss' backward takes {number(ours)} µs "
        f"of wall time, of which the GPU works {number(busy)}. An operator in C++ that does "
        f"nothing takes {number(nothing)}: autograd fills the gradient that backward starts from, "
        "by a kernel of torch's, hands over to a thread of its own and back, and at last somebody "
        f"waits for the GPU. What is ours is the difference, {number(ours - nothing)} µs; "
        "[what a call costs the host](cuda.md#what-a-call-costs-the-host) has its parts. After a "
        "rest, or after another loss as in the table above, threads and caches have to wake up, "
        f"and all of it takes longer: {number(backward(OURS, IN_TURN))} beside "
        f"{number(backward(NOTHING, IN_TURN))}. In training the loss' backward is part of the "
        "network's: the start, the hand-over and the wait are paid once a step whatever the loss "
        "is, and only the node is left.",
        table(
            ("microseconds, forward / backward", *times[OURS]),
            [
                (
                    name,
                    *(
                        " / ".join(spread(each) for each in parts_of.values())
                        for parts_of in contexts.values()
                    ),
                )
                for name, contexts in times.items()
            ],
        ),
        "Under the profiler, which lengthens all of it, a backward consists of:",
        table(
            ("microseconds", *parts),
            [
                (part, *(spread(each[part]) for each in parts.values()))
                for part in next(iter(parts.values()))
            ],
        ),
        measured(report, "h200/timeline.json"),
    )
