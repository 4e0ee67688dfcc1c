# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Where the time goes, as docs/results.md has it."""

from __future__ import annotations

from typing import Any

from ..common.bars import number
from ..common.page import details, measured, paragraphs, picture, spread, table
from ..face_detector.variants import label
from .contexts import FENCE, REST_SECONDS, RESTED
from .events import GPU
from .names import EAGER, LOOP, NOTHING, OURS

LABEL = label(OURS)


def rested(report: dict[str, Any], name: str, part: str) -> float:
    """Microseconds."""
    median: float = report["microseconds"][name][RESTED][part]["median"]
    return median


def in_short(report: dict[str, Any]) -> tuple[str, str]:
    ours, nothing = (number(rested(report, name, "backward")) for name in (LABEL, NOTHING))
    return (
        "Why does backward take longer than its kernel?",
        f"Of its {ours} µs {nothing} pass without any loss, too: autograd's start, its thread, and "
        f"the wait for the GPU. The GPU works "
        f"{number(_busy(report['timelines'][LABEL]['backward']))}.",
    )


def section(report: dict[str, Any]) -> str:
    times, parts, timelines = (
        report[each] for each in ("microseconds", "backward_parts", "timelines")
    )
    ours, nothing = (rested(report, name, "backward") for name in (LABEL, NOTHING))
    contexts = list(times[LABEL])
    busy = [_share(timelines[name]) for name in (LOOP, EAGER)]
    traced = sum(each["milliseconds"] for each in timelines[EAGER].values()) * 1e3
    longer = traced / sum(rested(report, EAGER, part) for part in timelines[EAGER])
    return paragraphs(
        "## Where a loss' time goes",
        "The loss of the article's batch and its backward, traced: an eager loss has the GPU busy "
        f"{min(busy):.0%} to {max(busy):.0%} of its time, and the GPU waits for the host in the "
        f"rest of it. Tracing slows the host: `{EAGER}` takes {longer:.1f} times as long as "
        f"without, so of that time the GPU is busy some {longer * _share(timelines[EAGER]):.0%}.",
        picture(
            "Python's thread, autograd's and the GPU while a loss is computed", "h200/timeline.svg"
        ),
        "`--trace DIR` keeps the traces, for TensorBoard or Perfetto.",
        "### Why a backward takes so long when its kernel takes a few microseconds",
        f"Called after a rest of {REST_SECONDS * 1e3:g} ms and waited for, boxloss' backward "
        f"takes {number(ours)} µs of wall time, of which the GPU works "
        f"{number(_busy(timelines[LABEL]['backward']))}. An operator in C++ that does nothing "
        f"takes {number(nothing)}: autograd fills the gradient that backward starts from, by a "
        "kernel of torch's, and hands over to a thread of its own and back, which presumably takes "
        "longer where threads have rested; at last somebody waits for the GPU. What is ours is the "
        f"rest, some {ours - nothing:.0f} µs. "
        "[What a call costs the host](cuda.md#what-a-call-costs-the-host) has its parts and what "
        "was taken away; in its stream of calls, where nobody rests or waits, it takes a fraction "
        "of that. In the training step above, other losses, the network and the data loader's "
        "workers run in between; what they add was not taken apart. In real training the loss' "
        "backward is part of the network's: start, hand-over and wait are paid once a step "
        "whatever the loss is.",
        table(
            ("wall time, µs: forward / backward", *contexts),
            [
                (
                    f"{name}: a synchronisation" if name == FENCE else name,
                    *(
                        " / ".join(spread(each) for each in by_context[context].values())
                        for context in contexts
                    ),
                )
                for name, by_context in times.items()
            ],
        ),
        details(
            "The parts of a backward under the profiler, which slows the host",
            table(
                ("µs", *parts),
                [
                    (part, *(spread(each[part]) for each in parts.values()))
                    for part in next(iter(parts.values()))
                ],
            ),
        ),
        measured(report, "h200/timeline.json"),
    )


def _busy(part: dict[str, Any]) -> float:
    """Microseconds of the GPU."""
    return float(part["busy_milliseconds"][GPU]) * 1e3


def _share(parts: dict[str, Any]) -> float:
    """Of the GPU, in forward and backward."""
    whole = sum(each["milliseconds"] for each in parts.values())
    return sum(_busy(each) for each in parts.values()) * 1e-3 / float(whole)
