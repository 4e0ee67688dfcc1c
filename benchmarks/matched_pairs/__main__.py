# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Times the losses of matched pairs, by index and as they are usually written, in one process.

    python -m benchmarks.matched_pairs --quick          seconds, to see what it does
    python -m benchmarks.matched_pairs --cases detr detr-dense --dtypes f32
    python -m benchmarks.matched_pairs --cases gather --rows 1000000 --pairs 100000
    python -m benchmarks.matched_pairs --device cuda --json pairs.json

detr and detr-dense are the GIoU, L1 and IoU of all decoder layers' matches, with the indices on the
device beforehand; gather is random rows beside a gather of the same; retinanet is torchvision's
"giou" on decoded boxes of all anchors. Only the ratios within one run count: times over the first
row's. stream is wall time per call in a stream of calls. On a GPU a second pass counts what a call
asks of it. Needs boxloss and rich; torchvision for its own loss.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from functools import partial

import torch
from boxloss.torch import collate_matches
from rich.console import Console
from torch import Tensor

from ..common.counts import counted_rows, counts
from ..common.groups import PASSES, Group, timed_rows
from ..common.program import (
    QUICK,
    THOROUGH,
    carry_out,
    load_available,
    make_parser,
    parsed,
)
from ..common.report import table
from ..common.timing import Calls, backward, gpu_times, gradient, host_times, stream_times
from .agreement import check, truth
from .cases import Case, detr_case, gather_case, retinanet_case
from .variants import GATHER, PairLoss, limits, variants

# Layers, images, queries, true boxes in each image.
DETR_SHAPES = {"detr": (6, 8, 100, 20), "detr-dense": (7, 16, 300, 150)}
QUICK_DETR_SHAPES = {"detr": (2, 3, 20, 5), "detr-dense": (3, 4, 50, 25)}
KINDS = (*DETR_SHAPES, "gather", "retinanet")
DTYPES = ("f32", "bf16")
ROWS, PAIRS = 8_000_000, 1_000_000
QUICK_ROWS, QUICK_PAIRS = 10_000, 2000
ANCHORS, FOREGROUND = 159_882, (400, 240)
QUICK_ANCHORS, QUICK_FOREGROUND = 2000, (40, 24)


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parse(arguments)
    shown = partial(table, limit=GATHER)
    return 1 if carry_out("matched_pairs", arguments, options, run, shown) is None else 0


def run(options: argparse.Namespace, skipped: dict[str, str], console: Console) -> Iterator[Group]:
    """Each group as soon as it is measured. `skipped` collects who was not, and why."""
    for case in cases(options):
        losses = load(case, options, skipped, console)
        expected = truth(case)
        for name, loss in losses.items():
            check(name, loss, case, expected)
        del expected  # large
        what = "total, gradient and IoU" if case.l1_weight else "total and gradient"
        console.print(f"\n[bold]{case.name}[/]: {len(losses)} agree in {what}")
        for measured in PASSES:
            yield timed(case, measured, losses, options)
        if case.matches is not None:
            yield collation(case, options)
    if options.device.type == "cuda":
        for case in cases(options):
            losses = load(case, options, skipped, console)
            console.print(f"\n[bold]{case.name}[/]: counts per call")
            for measured in PASSES:
                yield counted(case, measured, losses)


def cases(options: argparse.Namespace) -> Iterator[Case]:
    """One after the other: the largest takes much memory."""
    for kind in options.cases:
        if kind in DETR_SHAPES:
            shape = (QUICK_DETR_SHAPES if options.quick else DETR_SHAPES)[kind]
            for dtype in options.dtypes:
                yield detr_case(kind, *shape, f"{dtype}/f32", options.device)
        elif kind == "gather":
            yield gather_case(options.rows, options.pairs, options.device)
        elif options.quick:
            yield retinanet_case(QUICK_ANCHORS, QUICK_FOREGROUND, options.device)
        else:
            yield retinanet_case(ANCHORS, FOREGROUND, options.device)


def load(
    case: Case, options: argparse.Namespace, skipped: dict[str, str], console: Console
) -> dict[str, PairLoss]:
    torch.compiler.reset()  # past a few shapes torch.compile would quietly run eagerly
    return load_available(variants(case.kind), case, options.quick, skipped, console)


def timed(
    case: Case, measured: str, losses: dict[str, PairLoss], options: argparse.Namespace
) -> Group:
    """Side by side, by every clock that the device has."""
    device, effort = options.device, QUICK if options.quick else THOROUGH
    calls, returning = calls_of(case, measured, losses)
    refused: dict[str, str] = {}
    with torch.set_grad_enabled(measured != "forward"):
        clocks = {"stream": stream_times(calls, device, effort)}
        if device.type == "cuda":
            clocks["host"] = host_times(calls, device, effort)
            graphs = [name for name, each in variants(case.kind).items() if each.is_graph]
            captured = {name: call for name, call in returning.items() if name not in graphs}
            clocks["gpu"], refused = gpu_times(captured, effort)
            refused |= {name: "is a CUDA graph itself" for name in graphs if name in calls}
    case.pred.grad = None
    rows = timed_rows(clocks, refused, calls.keys() - losses.keys())
    moved = case.forward_bytes
    if moved is not None and measured != "forward":
        assert case.backward_bytes is not None
        moved += case.backward_bytes
    return Group(case.name, case.kind, case.pair, case.pairs, measured, moved, rows)


def counted(case: Case, measured: str, losses: dict[str, PairLoss]) -> Group:
    _, calls = calls_of(case, measured, losses)
    with torch.set_grad_enabled(measured != "forward"):
        rows = counted_rows(calls, lambda _, call: counts(call), calls.keys() - losses.keys())
    return Group(case.name, case.kind, case.pair, case.pairs, measured, None, rows)


def collation(case: Case, options: argparse.Namespace) -> Group:
    """What the host does before, in every step."""
    assert case.matches is not None
    queries = case.pred.shape[-2]
    call = partial(collate_matches, case.matches, case.counts, queries, device=options.device)
    effort = QUICK if options.quick else THOROUGH
    times = host_times({"collate_matches": call}, options.device, effort)
    rows = timed_rows({"host": times})
    return Group(case.name, case.kind, case.pair, case.pairs, "collation", None, rows)


def calls_of(case: Case, measured: str, losses: dict[str, PairLoss]) -> tuple[Calls, Calls]:
    """What a stream of calls has, and what a graph can hold: that one returns the gradient, which
    it cannot give to a leaf anew at each call."""
    pred = case.pred
    limit_calls = limits(case, measured)
    if measured == "forward":
        calls: Calls = {name: partial(loss, pred) for name, loss in losses.items()}
        return calls | limit_calls, calls | limit_calls
    totals = {name: partial(_total, loss, pred) for name, loss in losses.items()}
    accumulating: Calls = {name: partial(backward, call, pred) for name, call in totals.items()}
    returning: Calls = {name: partial(gradient, call, pred) for name, call in totals.items()}
    return accumulating | limit_calls, returning | limit_calls


def _total(loss: PairLoss, pred: Tensor) -> Tensor:
    return loss(pred).total


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = make_parser("matched_pairs", __doc__)
    parser.add_argument("--cases", nargs="+", choices=KINDS, default=KINDS, help="default: all")
    parser.add_argument(
        "--dtypes", nargs="+", choices=DTYPES, default=DTYPES, help="of DETR's predictions"
    )
    parser.add_argument("--rows", type=int, help=f"of gather's lists; default: {ROWS:,}")
    parser.add_argument("--pairs", type=int, help=f"that gather reads; default: {PAIRS:,}")
    options = parsed(parser, arguments)
    for name, quick, thorough in (("rows", QUICK_ROWS, ROWS), ("pairs", QUICK_PAIRS, PAIRS)):
        if getattr(options, name) is None:
            setattr(options, name, quick if options.quick else thorough)
        if getattr(options, name) < 1:
            parser.error(f"--{name}: {getattr(options, name)} given; 1 or more allowed")
    return options


if __name__ == "__main__":
    sys.exit(main())
