# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Four clocks for calls that stand side by side: GPU, stream, wall and host time.

Calls take turns, so that a clock that drifts hits all of them alike, in an order that is drawn anew
each time, so that none always comes after the slowest. All times are seconds per call.
"""

from __future__ import annotations

import math
import random
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch

Call = Callable[[], object]
Calls = dict[str, Call]
Samples = dict[str, list[float]]  # by name

WARM_UPS = 3
MOST_ROUNDS = 200

# A replay is long beside its own launch and beside the resolution of an event.
REPLAY_SECONDS = 1e-3
LONGEST_CAPTURE = 1000
FIRST_CAPTURE = 20

STREAM_SECONDS = 5e-3
LONGEST_STREAM = 100

# Of few launches each: the GPU accepts about a thousand ahead.
CALLS_AHEAD = 200


@dataclass(frozen=True)
class Effort:
    """How long each clock watches a group of calls."""

    seconds: float
    fewest_rounds: int


def wall_samples(calls: Calls, device: torch.device, effort: Effort) -> Samples:
    """From the launch to the end of the work."""
    return _take_turns(
        {name: partial(_seconds, call, device) for name, call in calls.items()}, effort
    )


def stream_samples(calls: Calls, device: torch.device, effort: Effort) -> Samples:
    """Wall time in a stream of calls, as in training: the host runs ahead where it can."""

    def measured(call: Call) -> Callable[[], float]:
        for _ in range(WARM_UPS):
            call()
        count = _calls_for(STREAM_SECONDS, _seconds(call, device), LONGEST_STREAM)
        return partial(_seconds, call, device, count)

    return _take_turns({name: measured(call) for name, call in calls.items()}, effort)


def host_samples(calls: Calls, device: torch.device, effort: Effort) -> Samples:
    """What a call costs the host, which does not wait for the work; on the CPU it does the work."""
    measure = partial(_seconds, device=device, count=CALLS_AHEAD, to_the_end=False)
    return _take_turns({name: partial(measure, call) for name, call in calls.items()}, effort)


def _seconds(call: Call, device: torch.device, count: int = 1, to_the_end: bool = True) -> float:
    """For one call, of so many in a row."""
    wait(device)
    start = time.perf_counter()
    for _ in range(count):
        call()
    if to_the_end:
        wait(device)
    return (time.perf_counter() - start) / count


def gpu_samples(calls: Calls, effort: Effort) -> tuple[Samples, dict[str, str]]:
    """The work alone, by replaying CUDA graphs; and why some calls cannot be captured."""
    replays, refused = {}, {}
    for name, call in calls.items():
        try:
            _refuse_synchronisation(call)
            replays[name] = _replayed(call)
        except RuntimeError as error:
            refused[name] = f"cannot be captured: {str(error).splitlines()[0]}"
    return _take_turns(replays, effort), refused


def _take_turns(measures: dict[str, Callable[[], float]], effort: Effort) -> Samples:
    for measure in measures.values():
        for _ in range(WARM_UPS):
            measure()
    samples: Samples = {name: [] for name in measures}
    order = random.Random(0)
    start = time.perf_counter()
    for turn in range(MOST_ROUNDS):
        if turn >= effort.fewest_rounds and time.perf_counter() - start > effort.seconds:
            break
        for name in order.sample(list(measures), len(measures)):
            samples[name].append(measures[name]())
    return samples


def _refuse_synchronisation(call: Call) -> None:
    """RuntimeError if the call waits for the GPU. A capture would fail on it too, but a failed
    capture leaves the allocator in disorder for whatever is measured next."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "synchronization debug mode is a prototype feature"
        torch.cuda.set_sync_debug_mode("error")
    try:
        call()
    finally:
        torch.cuda.set_sync_debug_mode("default")


def _replayed(call: Call) -> Callable[[], float]:
    """Measures the call by replaying a graph that holds as many calls as make a long replay."""
    call()
    wall = _seconds(call, torch.device("cuda", torch.cuda.current_device()))
    count = _calls_for(REPLAY_SECONDS, wall, FIRST_CAPTURE)
    measure = _graph_timer(call, count)
    measure()
    longer = _calls_for(REPLAY_SECONDS, measure(), LONGEST_CAPTURE)
    if longer > count:  # the host may have dominated the wall time
        measure = _graph_timer(call, longer)
    return measure


def _graph_timer(call: Call, count: int) -> Callable[[], float]:
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM_UPS):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(count):
            call()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def measure() -> float:
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e-3 / count

    return measure


def _calls_for(seconds: float, seconds_per_call: float, most: int) -> int:
    return max(1, min(math.ceil(seconds / seconds_per_call), most))


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
