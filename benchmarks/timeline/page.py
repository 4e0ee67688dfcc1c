# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Where the time goes, as docs/results.md has it."""

from __future__ import annotations

from typing import Any

from ..common.bars import number
from ..common.page import measured, paragraphs, spread, table

OURS, NOTHING, FENCE, EAGER = "boxloss ragged", "nothing, in C++", "waiting for nothing", "mask"
ALONE, IN_TURN = "again and again", "after another loss"


def section(report: dict[str, Any]) -> str:
    times, parts = report["microseconds"], report["backward_parts"]

    def backward(name: str, context: str) -> float:
        return float(times[name][context]["backward"]["median"])

    ours, nothing = backward(OURS, ALONE), backward(NOTHING, ALONE)
    return paragraphs(
        "## Where a loss' time goes",
        "![Python's thread, autograd's and the GPU while a loss is computed]"
        "(../benchmarks/results/h200/timeline.svg)",
        "`--trace DIR` keeps the traces for TensorBoard and Perfetto.",
        "### Why a backward takes so long when its kernel takes a few microseconds",
        f"boxloss' backward takes {number(ours)} µs of wall time, of which {number(nothing)} are "
        "also taken by an operator in C++ that does nothing: autograd's. What is ours is the "
        f"difference, {number(ours - nothing)} µs. Right after another loss, which leaves the "
        f"processor's caches to itself, it is {number(backward(OURS, IN_TURN))} beside "
        f"{number(backward(NOTHING, IN_TURN))}.",
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
