# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What reading bfloat16 and uint8 boxes as they are saves over casting them first.

    python -m benchmarks.dtypes --quick                 seconds, to see what it does
    python -m benchmarks.dtypes --json dtypes.json --plot dtypes.svg

First the errors: of boxes kept in a dtype, and of what is computed with them, against the formula
in float64, by the side of the boxes. Then the times and bytes of boxloss on boxes as they are, and
behind casts of both to float32: the seed experiment's padded batch, by lengths and padded, and
dense pairs. The cast of the predictions has a backward, too. moved MiB is what a variant has to
read and write, peak MiB what its call allocates at a time. f32/f32, which has nothing to cast,
shows how far equal times may be apart. stream is wall time per call in a stream of calls. Inputs
are warm: small ones stay in the cache. Needs boxloss and rich; matplotlib for --plot.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import track
from torch import Tensor

from ..common.cases import SEED_SHAPE, Case, dense_case, seed_case
from ..common.counts import peak_bytes_on
from ..common.groups import BOTH, PASSES, Group, document, sampled_rows
from ..common.losses import Loss
from ..common.machine import describe
from ..common.program import QUICK, carry_out, load_available, make_parser, parsed
from ..common.report import table
from ..common.timing import Calls, Effort, backward, gpu_samples, gradient, stream_samples
from ..loss_only.agreement import check, truth
from .errors import PAIRS as ERROR_PAIRS
from .errors import measure_errors
from .plot import plot
from .report import error_table
from .variants import NATIVE, least_bytes, variants

DENSE_PAIRS = ("f32/f32", "bf16/f32", "f16/f32", "bf16/bf16", "f32/u8", "bf16/u8", "f16/u8")
SEED_PAIRS = ("f32/f32", "bf16/f32", "f32/u8", "bf16/u8")
QUICK_PAIRS = ("f32/f32", "bf16/u8")
DENSE_SIZES, DENSE_SIZES_ON_CPU, QUICK_SIZES = (2**18, 2**25), (2**18, 2**20), (1000, 4000)
QUICK_SHAPE = (64, 32)
BOXES, QUICK_BOXES = 4096, 128  # of each side, of which errors are taken
THOROUGH = Effort(0.05, 9)


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parse(arguments)
    beside: dict[str, Any] = {"settings": settings(options)}
    shown = partial(table, limit=NATIVE)
    groups = carry_out("dtypes", arguments, options, partial(run, beside=beside), shown, beside)
    if groups is None:
        return 1
    if options.plot:
        plot(document("", describe(options.device), {}, groups) | beside, options.plot)
    return 0


def settings(options: argparse.Namespace) -> dict[str, Any]:
    return {
        "effort": asdict(options.effort),
        "dense_sizes": options.sizes,
        "seed_shape": options.shape,
        "boxes_of_each_side": options.boxes,
    }


def run(
    options: argparse.Namespace,
    skipped: dict[str, str],
    console: Console,
    beside: dict[str, Any],
) -> Iterator[Group]:
    """Each group as soon as it is measured. `skipped` collects who was not, and why."""
    beside["errors"] = list(
        track(measure_errors(options.boxes, options.device), "errors", console=console)
    )
    for box_format in ERROR_PAIRS:
        console.print(error_table(beside["errors"], box_format))
    for case, layouts in cases(options):
        expected = truth(case)
        for layout in layouts:
            torch.compiler.reset()  # past a few shapes torch.compile would quietly run eagerly
            with_compiled = case.kind == "seed" or case.boxes == max(options.sizes)
            peers = variants(layout, case.pair, with_compiled)
            losses = load_available(peers, case, options.quick, skipped, console)
            for name, loss in losses.items():
                check(name, loss, case, case.layouts[layout], expected)
            title = case.name if layout == case.kind else f"{case.name}, {layout}"
            console.print(f"\n[bold]{title}[/]: {len(losses)} agree in loss and gradient")
            for measured in PASSES:
                group = measure(case, layout, measured, losses, options)
                yield replace(group, case=title)
        del expected  # large


def cases(options: argparse.Namespace) -> Iterator[tuple[Case, tuple[str, ...]]]:
    """One after the other, with their layouts: the largest fill a GPU."""
    for pair in QUICK_PAIRS if options.quick else SEED_PAIRS:
        yield seed_case(pair, options.device, options.shape), ("lengths", "padded")
    for pair in QUICK_PAIRS if options.quick else DENSE_PAIRS:
        for boxes in options.sizes:
            yield dense_case(pair, boxes, options.device), ("dense",)


def measure(
    case: Case, layout: str, measured: str, losses: dict[str, Loss], options: argparse.Namespace
) -> Group:
    """Side by side: times first, then bytes."""
    device, pred = options.device, case.pred
    with_backward = measured == BOTH
    forwards: dict[str, Callable[[], Tensor]] = {
        name: partial(loss, pred, *case.layouts[layout]) for name, loss in losses.items()
    }
    calls: Calls = {**forwards}
    captured = calls
    if with_backward:  # a graph returns the gradient: it cannot give it to a leaf anew at each call
        calls = {name: partial(backward, loss, pred) for name, loss in forwards.items()}
        captured = {name: partial(gradient, loss, pred) for name, loss in forwards.items()}
    with torch.set_grad_enabled(with_backward):
        clocks = {"stream": stream_samples(calls, device, options.effort)}
        pred.grad = None
        refused: dict[str, str] = {}
        if device.type == "cuda":
            clocks["gpu"], refused = gpu_samples(captured, options.effort)
        counts: dict[str, dict[str, float]] = {
            name: {
                "least_bytes": least_bytes(name, case, layout, with_backward, call),
                "peak_bytes": peak_bytes_on(device, call),
            }
            for name, call in captured.items()
        }
    rows = [replace(row, counts=counts[row.name]) for row in sampled_rows(clocks, refused)]
    return Group(case.name, layout, case.pair, case.boxes, measured, None, rows)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = make_parser("dtypes", __doc__)
    parser.add_argument("--plot", type=Path, metavar="FILE", help=".svg, .png or .pdf")
    options = parsed(parser, arguments)
    quick, on_cpu = options.quick, options.device.type == "cpu"
    options.effort = QUICK if quick else THOROUGH
    options.sizes = QUICK_SIZES if quick else DENSE_SIZES_ON_CPU if on_cpu else DENSE_SIZES
    options.shape = QUICK_SHAPE if quick else SEED_SHAPE
    options.boxes = QUICK_BOXES if quick else BOXES
    return options


if __name__ == "__main__":
    sys.exit(main())
