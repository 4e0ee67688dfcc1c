# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Where does the time of a loss go, and what does its backward wait for?

A batch like the article's, 1,024 x 256 slots, bfloat16 predictions and uint8 boxes: the loss by an
eager loop over the images, by one eager formula over padded boxes (mask), and by boxloss, ragged.
First by the wall clock, after a rest; then by torch's profiler, whose traces --trace keeps for
TensorBoard or Perfetto. Needs ninja and a C++ compiler, for an operator that does nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from boxloss.torch import giou_loss
from torch import Tensor
from torch.profiler import ProfilerActivity, profile, record_function

from ..common.cases import SEED_SHAPE, Case, seed_case
from ..common.exact import check, truth
from ..common.losses import loop_loss, masked_loss
from ..common.nothing import load_nothing
from ..runner.clocks import WARM_UPS, Samples
from ..runner.counts import FROM_HOST, LAUNCH, ON_GPU, WAIT, events_of
from ..runner.run import BOTH, FORWARD, Run, UnavailableError

DEVICES = ("cuda",)
DTYPES = "bf16/u8"
QUICK_SHAPE = (32, 32)
BACKWARD = "backward"
LOOP, EAGER, OURS, NOTHING = "loop", "mask", "boxloss ragged", "nothing, in C++"
SYNCHRONIZATION = "synchronization"
REST_SECONDS = 5e-3
RESTED, TRACED, BUSY = "after a rest", "traced", "busy"
SHOWN = 2500  # microseconds in the picture
CUT = 10 * SHOWN  # of what takes longer the middle is shown, else the beginning
SMALLEST_GAP = 2  # microseconds that are half a point wide in the picture


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--trace", type=Path, metavar="DIR", help="keep the profiler's traces")


def measure(run: Run) -> None:
    run.results.rows.clear()  # a trace's rows do not take the place of another's
    case = seed_case(DTYPES, run.device, QUICK_SHAPE if run.quick else SEED_SHAPE)
    losses = losses_of(case)
    expected = truth(case)
    for name, loss in losses.items():
        check(name, loss, case, expected)
    try:
        losses[NOTHING] = partial(load_nothing(), case.pred, case.pred)
    except UnavailableError as reason:
        run.skip(NOTHING, str(reason))
    rested = {name: loss for name, loss in losses.items() if name != LOOP}
    for each, samples in rested_samples(rested, case.pred, 10 if run.quick else 100).items():
        run.record_samples({"pass": each}, {RESTED: samples})
        run.show({"pass": each})
    # All times are taken: a profiler slows down what comes after it.
    for name, loss in losses.items():
        profiler = traced(loss, case.pred, calls=1 if name == LOOP else 20)
        record_trace(run, name, exported(profiler, name, run.options.trace))
    run.show({"pass": BACKWARD})


# --- Variants ---


def losses_of(case: Case) -> dict[str, Callable[[], Tensor]]:
    flat, offsets = case.layouts["offsets"]
    boxes = flat.split(offsets.diff().tolist())
    return {
        LOOP: partial(loop_loss, case.pred, *boxes),
        EAGER: partial(masked_loss, case.pred, *case.layouts["lengths"]),
        OURS: partial(giou_loss, case.pred, flat, offsets=offsets),
    }


# --- By the wall clock ---


def rested_samples(
    losses: Mapping[str, Callable[[], Tensor]], leaf: Tensor, rounds: int
) -> dict[str, Samples]:
    """Seconds by pass, each of which waits for its own work; a rest comes before each loss."""
    forward: Samples = {name: [] for name in losses}
    backward: Samples = {SYNCHRONIZATION: [], **{name: [] for name in losses}}
    order = random.Random(0)
    for _ in range(WARM_UPS):
        for loss in losses.values():
            loss().backward()
    for _ in range(rounds):
        for name in order.sample(list(backward), len(backward)):
            time.sleep(REST_SECONDS)
            if name == SYNCHRONIZATION:
                backward[name].append(_timed(lambda: None)[1])
                continue
            leaf.grad = None  # or backward would add to it
            value, seconds = _timed(losses[name])
            forward[name].append(seconds)
            backward[name].append(_timed(value.backward)[1])
    return {FORWARD: forward, BACKWARD: backward}


def _timed(call: Callable[[], Any]) -> tuple[Any, float]:
    torch.cuda.synchronize()
    start = time.perf_counter()
    result = call()
    torch.cuda.synchronize()
    return result, time.perf_counter() - start


# --- By the profiler ---


def traced(loss: Callable[[], Tensor], leaf: Tensor, calls: int) -> profile:
    """Of `calls` forwards and backwards, each of which waits for its own work, behind a first one,
    which is slower than those after it."""
    for _ in range(WARM_UPS):
        loss().backward()
    profiler: profile
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        for _ in range(calls + 1):
            leaf.grad = None
            torch.cuda.synchronize()
            with record_function(FORWARD):
                value = loss()
                torch.cuda.synchronize()
            with record_function(BACKWARD):
                value.backward()
                torch.cuda.synchronize()
            del value  # and its graph, in nobody's range
    return profiler


def exported(profiler: profile, name: str, folder: Path | None) -> list[Event]:
    """The events; a folder keeps their file. A profiler can be exported once."""
    if folder is None:
        return events_of(profiler)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name.replace(' ', '-')}.json"
    profiler.export_chrome_trace(str(path))
    events: list[Event] = json.loads(path.read_text())["traceEvents"]
    return events


LANES = PYTHON, AUTOGRAD, GPU = ("Python's thread", "autograd's thread", "GPU")

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

Event = dict[str, Any]  # as in a trace, with "ts" and "dur" in microseconds


@dataclass(frozen=True)
class Range:
    """The events of one named range, with times in microseconds from its start."""

    length: float
    events: dict[str, list[Event]]  # by lane

    def busy(self, lane: str, gap: float = 0) -> list[tuple[float, float]]:
        """Start and end of each stretch; what lies within another, or no more than the gap behind
        it, is part of it."""
        stretches: list[tuple[float, float]] = []
        for event in sorted(self.events[lane], key=lambda event: float(event["ts"])):
            start, end = event["ts"], _end(event)
            if stretches and start <= stretches[-1][1] + gap:
                stretches[-1] = stretches[-1][0], max(stretches[-1][1], end)
            else:
                stretches.append((start, end))
        return stretches

    def microseconds(self, lane: str) -> float:
        return sum(end - start for start, end in self.busy(lane))


def record_trace(run: Run, name: str, events: Iterable[Event]) -> None:
    """The parts of its backward, and one forward and backward for the picture."""
    events = list(events)
    found = {each: ranges(events, each)[1:] for each in (FORWARD, BACKWARD)}
    if name in (OURS, NOTHING):
        parts = [backward_parts(each) for each in found[BACKWARD]]
        for part in PARTS:
            columns = {"pass": BACKWARD, "part": part, "variant": name}
            run.record(columns, TRACED, "µs", [each[part] for each in parts])
    if name == NOTHING:
        return
    shown = {each: of_pass[len(of_pass) // 2] for each, of_pass in found.items()}
    for each, whole in shown.items():
        columns = {"pass": each, "variant": name}
        run.record(columns, TRACED, "µs", whole.length)
        run.record(columns, "kernels", "", len(whole.events[GPU]))
        begin = shown_from(whole.length)
        for lane in LANES:
            stretches = stretches_between(whole.busy(lane, SMALLEST_GAP), begin)
            of_lane = columns | {"lane": lane, "stretches": stretches}
            run.record(of_lane, BUSY, "µs", whole.microseconds(lane))
    share = sum(each.microseconds(GPU) for each in shown.values()) / sum(
        each.length for each in shown.values()
    )
    run.record({"pass": BOTH, "variant": name, "lane": GPU}, "share", "", share)


def shown_from(length: float) -> float:
    return length / 2 if length > CUT else 0


def stretches_between(stretches: list[tuple[float, float]], begin: float) -> str:
    """Those that are drawn, in whole microseconds from `begin`, as text: "12-14 56-59"."""
    return " ".join(
        f"{start - begin:.0f}-{end - begin:.0f}"
        for start, end in stretches
        if begin <= start < begin + SHOWN
    )


def ranges(events: Iterable[Event], name: str) -> list[Range]:
    """Each occurrence of `name`, which must have waited for its own work on the GPU."""
    events = [event for event in events if event.get("ph") == "X"]
    whole = [e for e in events if e.get("cat") == "user_annotation" and e["name"] == name]
    return [_range(each, events) for each in sorted(whole, key=lambda event: float(event["ts"]))]


def _range(whole: Event, events: list[Event]) -> Range:
    start, end = whole["ts"], _end(whole)
    lanes: dict[str, list[Event]] = {lane: [] for lane in LANES}
    for event in events:
        if start <= event["ts"] <= end and event is not whole and (lane := _lane(event, whole)):
            lanes[lane].append(event | {"ts": event["ts"] - start})
    return Range(whole["dur"], lanes)


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
    (synchronization,) = (event for event in python if WAIT.match(event["name"]))
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
        synchronization["ts"],
        backward.length,
    ]
    lengths = (after - before for before, after in pairwise(marks))
    return dict(zip(PARTS, lengths, strict=True))


def _end(event: Event) -> float:
    return float(event["ts"] + event["dur"])


# --- Picture ---


def draw(frame: Any, machine: dict[str, str]) -> Any:
    """A panel for each variant: forward, then backward, as they follow each other; of what takes
    far longer, the middle of its forward."""
    import matplotlib.pyplot as plt

    from ..runner.pictures import (
        BLUE,
        DARK,
        GREY,
        LINES,
        medians,
        pick,
        quiet_axes,
        title_figure,
        where,
    )
    from ..runner.results import number

    colours = {PYTHON: GREY, AUTOGRAD: LINES[4], GPU: BLUE}
    names = [LOOP, EAGER, OURS]
    figure, panels = plt.subplots(3, 1, sharex=True, figsize=(10, 5), layout="constrained")
    for panel, name in zip(panels, names, strict=True):
        rows = pick(frame, variant=name)
        whole = pick(rows[rows["part"].isna()], quantity=TRACED)
        lengths = medians(whole, by="pass")
        kernels, busy = (
            pick(rows, quantity=quantity, **columns)["median"].sum()
            for quantity, columns in (("kernels", {}), (BUSY, {"lane": GPU}))
        )
        both = sum(lengths.values())
        title = (
            f"{name}: {number(both / 1e3)} ms, {kernels:,.0f} kernels and copies, "
            f"the GPU busy for {number(busy / 1e3)} ms"
        )
        cut = shown_from(lengths[FORWARD]) > 0
        starts = {FORWARD: 0.0} if cut else {FORWARD: 0.0, BACKWARD: lengths[FORWARD]}
        if cut:
            title += f"; shown are {SHOWN / 1e3} ms of its forward"
        else:
            for at, words, side in (
                (lengths[FORWARD], "forward is done ", "right"),
                (both, " backward is done", "left"),
            ):
                if at < SHOWN:
                    panel.axvline(at / 1e3, color=DARK, linewidth=0.8, linestyle=":")
                    panel.text(at / 1e3, -0.52, words, ha=side, fontsize=7, color=DARK)
            if both > SHOWN:
                title += f"; its backward goes on until {number(both / 1e3)} ms"
        for row in pick(rows, quantity=BUSY, **{"pass": list(starts)}).to_dict("records"):
            # One broken line: a rectangle for each stretch makes a file of three times the size.
            times = [
                time / 1e3
                for stretch in row["stretches"].split()
                for start, end in [(starts[row["pass"]] + int(at) for at in stretch.split("-"))]
                if start < SHOWN
                for time in (start, end, math.nan)
            ]
            style = {"linewidth": 15, "solid_capstyle": "butt", "color": colours[row["lane"]]}
            panel.plot(times, [LANES.index(row["lane"])] * len(times), **style)
        panel.set_title(title, fontsize=9, loc="left")
        panel.set_yticks(range(len(LANES)), LANES)
        panel.set_ylim(len(LANES) - 0.5, -0.75)
        quiet_axes(panel)
    panels[-1].set_xlim(0, SHOWN / 1e3)
    panels[-1].set_xlabel("milliseconds, under the profiler", fontsize=8, color=DARK)
    title_figure(figure, f"One loss and its backward: {where(machine)}")
    return figure


PICTURES = {"timeline": draw}
