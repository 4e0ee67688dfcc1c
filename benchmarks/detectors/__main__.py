# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Times real detectors' losses, forward and backward, with their own code and with boxloss.

    python -m benchmarks.detectors --quick          seconds, to see what it does
    python -m benchmarks.detectors --cases rtdetr rtdetr-dense
    python -m benchmarks.detectors --device cuda --json detectors.json

From a head's output to the gradient that it gets; no network is run. "criterion" is all of a
detector's losses; "matcher and boxes" is what of them has to do with boxes: the matcher, GIoU and
L1; "box loss" is RetinaNet's "giou" on decoded boxes, and YOLO's CIoU together with its
distribution focal loss. original is the installed project's own code, boxloss is examples/, and
aligned is examples/ with plain torch in place of boxloss. torch.compile is aligned compiled for
these very shapes, and "boxloss, compiled" likewise. SciPy's assignment, without which there is no
DETR, is part of every time. Only the ratios within one run count: times over the first row's.
stream is wall time per call in a stream of calls. A last pass counts what a call asks for; kernels'
own time is its "busy". Needs boxloss and rich; SciPy for DETRs; transformers (with PIL),
torchvision and ultralytics, each for its own.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from functools import partial

import torch
from rich.console import Console
from torch import Tensor

from ..common.counts import counted_rows, counts_on
from ..common.groups import Group, Row, timed_rows
from ..common.losses import UnavailableError
from ..common.program import QUICK, THOROUGH, carry_out, load_available, make_parser, parsed
from ..common.report import table
from ..common.timing import Call, Calls, host_times, stream_times
from . import agreement, dense_cases, detr_cases
from .cases import Case
from .criteria import Step
from .variants import variants

KINDS = (*detr_cases.SHAPES, *dense_cases.SHAPES)


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parse(arguments)
    shown = partial(table, limit="")
    return 1 if carry_out("detectors", arguments, options, run, shown) is None else 0


def run(options: argparse.Namespace, skipped: dict[str, str], console: Console) -> Iterator[Group]:
    """Each group as soon as it is measured. `skipped` collects who was not, and why."""
    found = []
    for case in cases(options):
        for measured in case.measured:
            try:
                expected = agreement.truths(case, measured)
            except UnavailableError as reason:
                skipped[f"{case.kind}, {measured}"] = str(reason)
                console.print(f"[yellow]skipped {case.kind}, {measured}[/]: {reason}")
                continue
            found.append((case.kind, measured))
            steps = load(case, measured, options, skipped, console)
            for name, step in steps.items():
                agreement.check(name, step, case, expected)
            console.print(f"\n[bold]{case.name}[/]: {len(steps)} agree in loss and gradients")
            yield timed(case, measured, steps, options)
    for case in cases(options):
        for measured in case.measured:
            if (case.kind, measured) in found:
                steps = load(case, measured, options, skipped, console)
                console.print(f"\n[bold]{case.name}[/]: counts per call")
                yield counted(case, measured, steps)


def cases(options: argparse.Namespace) -> Iterator[Case]:
    """One after the other: the largest takes much memory."""
    for kind in options.cases:
        make, module = (
            (detr_cases.detr_case, detr_cases)
            if kind in detr_cases.SHAPES
            else (dense_cases.dense_case, dense_cases)
        )
        shapes = module.QUICK_SHAPES if options.quick else module.SHAPES
        yield make(kind, shapes[kind]).mapped(lambda each: each.to(options.device))


def load(
    case: Case,
    measured: str,
    options: argparse.Namespace,
    skipped: dict[str, str],
    console: Console,
) -> dict[str, Step]:
    torch.compiler.reset()  # past a few shapes torch.compile would quietly run eagerly
    return load_available(variants(measured), case, options.quick, skipped, console)


def timed(case: Case, measured: str, steps: dict[str, Step], options: argparse.Namespace) -> Group:
    """Side by side, by every clock that the device has."""
    device, effort = options.device, QUICK if options.quick else THOROUGH
    calls = calls_of(case, measured, steps)
    clocks = {"stream": stream_times(calls, device, effort)}
    if device.type == "cuda":
        clocks["host"] = host_times(calls, device, effort)
    return _group(case, measured, timed_rows(clocks))


def counted(case: Case, measured: str, steps: dict[str, Step]) -> Group:
    def count(name: str, call: Call) -> dict[str, float]:
        return counts_on(case.device, call, variants(measured)[name].slow_to_start)

    return _group(case, measured, counted_rows(calls_of(case, measured, steps), count))


def calls_of(case: Case, measured: str, steps: dict[str, Step]) -> Calls:
    leaves = [case.leaves[name] for name in case.measured[measured]]

    def call(step: Step) -> tuple[Tensor, ...]:
        return torch.autograd.grad(step(), leaves)

    return {name: partial(call, step) for name, step in steps.items()}


def _group(case: Case, measured: str, rows: list[Row]) -> Group:
    return Group(case.name, case.kind, "f32/f32", case.pairs, measured, None, rows)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = make_parser("detectors", __doc__)
    parser.add_argument("--cases", nargs="+", choices=KINDS, default=KINDS, help="default: all")
    return parsed(parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
