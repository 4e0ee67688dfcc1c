# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What a profiler's trace says of one call: who was busy when, and what a backward waits for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..common.counts import FROM_HOST, LAUNCH, ON_GPU, WAIT

LANES = ("Python's thread", "autograd's thread", "GPU")
PYTHON, AUTOGRAD, GPU = LANES

Event = dict[str, Any]  # as in a trace, with "ts" and "dur" in microseconds

# In the order in which a backward comes to them.
PARTS = (
    "the gradient that backward starts from",
    "handed over to autograd's thread",
    "the loss' node, up to its launch",
    "the rest of the node",
    "the gradient given to its tensor",
    "back to Python",
    "waiting for the GPU",
)


@dataclass(frozen=True)
class Range:
    """The events of one named range, with times in microseconds from its start."""

    milliseconds: float
    events: dict[str, list[Event]]  # by lane

    def busy(self, lane: str) -> list[tuple[float, float]]:
        """Start and end of each stretch; what lies within another is part of it."""
        stretches: list[tuple[float, float]] = []
        for event in sorted(self.events[lane], key=lambda event: float(event["ts"])):
            start, end = event["ts"], event["ts"] + event["dur"]
            if stretches and start <= stretches[-1][1]:
                stretches[-1] = stretches[-1][0], max(stretches[-1][1], end)
            else:
                stretches.append((start, end))
        return stretches


def ranges(events: Iterable[Event], name: str) -> list[Range]:
    """Each occurrence of `name`, which must have waited for its own work on the GPU."""
    events = [event for event in events if event.get("ph") == "X"]
    whole = [e for e in events if e.get("cat") == "user_annotation" and e["name"] == name]
    return [_range(each, events) for each in sorted(whole, key=lambda event: float(event["ts"]))]


def _range(whole: Event, events: list[Event]) -> Range:
    start, end = whole["ts"], whole["ts"] + whole["dur"]
    lanes: dict[str, list[Event]] = {lane: [] for lane in LANES}
    for event in events:
        if start <= event["ts"] <= end and event is not whole and (lane := _lane(event, whole)):
            lanes[lane].append(event | {"ts": event["ts"] - start})
    return Range(whole["dur"] * 1e-3, lanes)


def _lane(event: Event, whole: Event) -> str | None:
    category = event.get("cat")
    if category in ON_GPU:
        return GPU
    if category not in ("cpu_op", *FROM_HOST):
        return None
    return PYTHON if event["tid"] == whole["tid"] else AUTOGRAD


def backward_parts(backward: Range) -> dict[str, float]:
    """Microseconds of each of PARTS, which follow each other without a gap."""
    python, autograd = backward.events[PYTHON], backward.events[AUTOGRAD]
    (fence,) = (event for event in python if WAIT.match(event["name"]))
    nodes = [event for event in autograd if "evaluate_function" in event["name"]]
    to_leaf = next(event for event in nodes if "AccumulateGrad" in event["name"])
    launches = [event for event in autograd if LAUNCH.match(event["name"])]
    first_node = min(event["ts"] for event in nodes)
    marks = [
        0.0,
        max((_end(event) for event in python if event["ts"] < first_node), default=0.0),
        first_node,
        max((_end(event) for event in launches), default=first_node),
        to_leaf["ts"],
        _end(to_leaf),
        fence["ts"],
        backward.milliseconds * 1e3,
    ]
    return {
        part: after - before for part, before, after in zip(PARTS, marks, marks[1:], strict=False)
    }


def _end(event: Event) -> float:
    return float(event["ts"] + event["dur"])
