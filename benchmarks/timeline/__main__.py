# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Records who is busy when while the article's loss is computed, and what its backward waits for.

    python -m benchmarks.timeline --json timeline.json --plot timeline.svg
    python -m benchmarks.timeline --trace traces      for TensorBoard or Perfetto

A batch of the seed experiment, bfloat16 predictions and uint8 boxes, by an eager loop over the
images, by one eager formula over padded boxes, and by boxloss. Needs a GPU, ninja and a C++
compiler.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch.profiler import ProfilerActivity, profile, record_function

from ..common.agreement import DisagreementError
from ..common.bars import number
from ..common.counts import events_of
from ..common.losses import UnavailableError
from ..common.output import write_json
from ..common.program import begin, make_parser, open_console, parsed
from ..common.spread import summary
from ..common.timing import WARM_UPS, backward
from ..face_detector.agreement import check, probe_predictions
from ..face_detector.data import RandomPictures
from ..face_detector.model import SCALES
from ..face_detector.variants import VARIANTS, label
from ..loss_only.host import check_tools, host_losses
from .contexts import CONTEXTS, measure
from .events import GPU, LANES, Range, backward_parts, ranges
from .names import EAGER, LOOP, NAMES, NOTHING, OURS
from .plot import SHOWN, plot

PARTS_OF = "forward", "backward"
FAR = 10
SMALL = 32  # pictures of --quick


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parse(arguments)
    console = open_console()
    command, machine = begin("timeline", arguments, options.device, console)
    try:
        report = run(options, console)
    except DisagreementError as error:
        print(f"timeline: error: {error}", file=sys.stderr)
        return 1
    report |= {"command": command, "machine": machine}
    console.print(contexts_table(report), parts_table(report))
    if options.json:
        write_json(options.json, report)
    if options.plot:
        plot(report, options.plot)
    return 0


def run(options: argparse.Namespace, console: Console) -> dict[str, Any]:
    scale = SCALES["seed"]
    images = SMALL if options.quick else scale.batch
    pictures = RandomPictures("train", 0, scale.slots - 1)
    boxes = [pictures[index][1] for index in range(images)]
    pred = probe_predictions(boxes, scale.slots, scale.predictions, seed=0).to(options.device)
    leaf = pred.requires_grad_()
    losses: dict[str, Callable[[], Tensor]] = {}
    for name in NAMES:
        variant = VARIANTS[name]
        targets = [each.to(options.device) for each in variant.collate(boxes, scale.slots)]
        loss = variant.load()
        check(name, loss, leaf, tuple(targets), boxes)
        losses[name] = partial(loss, leaf, *targets)
    console.print(f"{len(losses)} variants agree on one batch, in loss and gradient.")

    nothing = partial(host_losses()[NOTHING], leaf, leaf)
    timed = {NOTHING: nothing, label(OURS): losses[OURS], EAGER: losses[EAGER]}
    samples = measure(timed, leaf, rounds=10 if options.quick else 100)
    report: dict[str, Any] = {
        "settings": {"images": images, "slots": scale.slots, "boxes": sum(map(len, boxes))},
        "microseconds": {
            name: {
                context: {part: summary(each) for part, each in parts.items()}
                for context, parts in by_context.items()
            }
            for name, by_context in samples.items()
        },
        "backward_parts": {},
        "timelines": {},
    }
    # All times are taken: a profiler slows down what comes after it.
    for name, loss in {**losses, NOTHING: nothing}.items():
        console.print(f"recording {label(name)} ...")
        found = record(label(name), loss, leaf, 1 if name == LOOP else 20, options.trace)
        if name in (OURS, NOTHING):
            parts = [backward_parts(each) for each in found["backward"]]
            report["backward_parts"][label(name)] = {
                part: summary([each[part] for each in parts]) for part in parts[0]
            }
        if name in NAMES:
            report["timelines"][label(name)] = {
                part: timeline(found[part][len(found[part]) // 2]) for part in PARTS_OF
            }
    return report


def record(
    name: str, loss: Callable[[], Tensor], leaf: Tensor, calls: int, folder: Path | None
) -> dict[str, list[Range]]:
    """The ranges of `calls` forwards and backwards, each of which waits for its own work."""
    for _ in range(WARM_UPS):
        backward(loss, leaf)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        for _ in range(calls + 1):  # the first in a profile is slower than those after it
            leaf.grad = None
            torch.cuda.synchronize()
            with record_function("forward"):
                value = loss()
                torch.cuda.synchronize()
            with record_function("backward"):
                value.backward()
                torch.cuda.synchronize()
            del value  # and its graph, in nobody's range
    if folder:
        profiler.export_chrome_trace(str(folder / f"{name.replace(' ', '-')}.json"))
    events = events_of(profiler)
    return {part: ranges(events, part)[1:] for part in PARTS_OF}


def timeline(each: Range) -> dict[str, Any]:
    """Small enough to keep: how busy each lane was, and when in the milliseconds that are shown,
    which are the first, or of what takes far longer those in the middle."""
    busy = {lane: each.busy(lane) for lane in LANES}
    begin = each.milliseconds / 2 if each.milliseconds > FAR * SHOWN else 0.0
    first, last = begin * 1e3, (begin + SHOWN) * 1e3
    return {
        "milliseconds": each.milliseconds,
        "shown_from": begin,
        "kernels": len(each.events[GPU]),
        "busy_milliseconds": {
            lane: sum(end - start for start, end in stretches) * 1e-3
            for lane, stretches in busy.items()
        },
        "shown_microseconds": {
            lane: " ".join(
                f"{start - first:.1f}-{end - first:.1f}"
                for start, end in stretches
                if first <= start < last
            )
            for lane, stretches in busy.items()
        },
    }


def contexts_table(report: dict[str, Any]) -> Table:
    table = Table(title="Microseconds, medians, each part fenced", title_justify="left")
    table.add_column("")
    for context in CONTEXTS:
        for part in PARTS_OF:
            table.add_column(f"{part}, {context}", justify="right")
    for name, by_context in report["microseconds"].items():
        cells = [
            number(parts[part]["median"]) if part in parts else ""
            for parts in by_context.values()
            for part in PARTS_OF
        ]
        table.add_row(name, *cells)
    return table


def parts_table(report: dict[str, Any]) -> Table:
    found = report["backward_parts"]
    table = Table(title="A backward under the profiler, microseconds", title_justify="left")
    table.add_column("")
    for name in found:
        table.add_column(name, justify="right")
    for part in next(iter(found.values())):
        table.add_row(part, *(number(found[name][part]["median"]) for name in found))
    return table


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = make_parser("timeline", __doc__)
    parser.add_argument("--plot", type=Path, metavar="FILE", help=".svg, .png or .pdf")
    parser.add_argument("--trace", type=Path, metavar="DIR", help="keep the profiler's traces")
    options = parsed(parser, arguments)
    if options.device.type == "cpu":
        parser.error("--device: there is nothing to see without a GPU")
    try:
        check_tools()
    except UnavailableError as reason:
        parser.error(str(reason))
    if options.trace:
        options.trace.mkdir(parents=True, exist_ok=True)
    return options


if __name__ == "__main__":
    sys.exit(main())
