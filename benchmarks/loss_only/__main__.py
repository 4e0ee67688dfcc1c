# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Times the GIoU loss alone, beside its peers and the hardware's limits, in one process.

    python -m benchmarks.loss_only --quick              seconds, to see what it does
    python -m benchmarks.loss_only --cases seed         the seed experiment's padded batch
    python -m benchmarks.loss_only --cases dense --pairs f32/f32 bf16/u8 --plot dense.svg
    python -m benchmarks.loss_only --host               cost of a call to the host

Only the ratios within one run count. Inputs are warm: a small one stays in the cache. Needs boxloss
and rich; matplotlib for --plot; ninja and a C++ compiler for --host.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import torch
from rich.console import Console

from ..common.cases import (
    DENSE_PAIRS,
    DENSE_PAIRS_ON_CPU,
    DENSE_SIZES,
    DENSE_SIZES_ON_CPU,
    SEED_PAIRS,
    SEED_SHAPE,
    Case,
    dense_case,
    seed_case,
)
from ..common.groups import BOTH, Group, timed_rows
from ..common.losses import Loss, UnavailableError
from ..common.machine import describe
from ..common.program import (
    QUICK,
    THOROUGH,
    add_implementations,
    carry_out,
    check_implementations,
    load_available,
    make_parser,
    parsed,
)
from ..common.timing import Calls, backward, gpu_times, gradient, host_times, wall_times
from .agreement import check, truth
from .host import BOXES, check_tools, measure_host
from .peers import LIMITS, Peer, limits, peers
from .plot import plot
from .report import table

CASES = ("seed", "dense", "all")
QUICK_SHAPE = (64, 32)
QUICK_SIZES = (1000, 10_000)


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parse(arguments)
    groups = carry_out("loss_only", arguments, options, run, table)
    if groups is None:
        return 1
    if options.plot:
        plot(groups, describe(options.device), options.plot)
    return 0


def run(options: argparse.Namespace, skipped: dict[str, str], console: Console) -> Iterator[Group]:
    """Each group as soon as it is measured. `skipped` collects who was not, and why."""
    for case in cases(options):
        torch.compiler.reset()  # past a few shapes torch.compile would quietly run eagerly
        all_peers = peers(case.kind, options.fast_box_ops, options.implementations)
        losses = load_available(all_peers, case, options.quick, skipped, console)
        available = {name: (all_peers[name], loss) for name, loss in losses.items()}
        expected = truth(case)
        for name, (peer, loss) in available.items():
            with peer.chosen():
                check(name, loss, case, case.layouts[peer.layout], expected)
        del expected  # large
        console.print(f"\n[bold]{case.name}[/]: {len(available)} agree in loss and gradient")
        yield from measure(case, available, options)
    if options.host:
        console.print(f"\n[bold]host, {BOXES} boxes[/]")
        yield from measure_host(options.device, QUICK if options.quick else THOROUGH)


def cases(options: argparse.Namespace) -> Iterator[Case]:
    """One after the other: the largest fill a GPU."""
    if options.cases in ("seed", "all"):
        for pair in SEED_PAIRS:
            yield seed_case(pair, options.device, QUICK_SHAPE if options.quick else SEED_SHAPE)
    if options.cases in ("dense", "all"):
        for pair in options.pairs:
            for boxes in options.boxes:
                yield dense_case(pair, boxes, options.device)


def measure(
    case: Case, available: dict[str, tuple[Peer, Loss]], options: argparse.Namespace
) -> Iterator[Group]:
    pred = case.pred

    def chosen(calls: Calls) -> Calls:
        return {name: available[name][0].choosing(call) for name, call in calls.items()}

    losses = {
        name: partial(loss, pred, *case.layouts[peer.layout])
        for name, (peer, loss) in available.items()
    }
    # Never yield inside no_grad: it would reach whoever asked for the group.
    with torch.no_grad():
        forward = group(
            case, "forward", chosen(losses), chosen(losses), case.forward_bytes, options
        )
    yield forward

    # A graph returns the gradient: it cannot give it to a leaf anew at each call.
    both = {name: partial(backward, loss, pred) for name, loss in losses.items()}
    captured = {name: partial(gradient, loss, pred) for name, loss in losses.items()}
    moved = case.forward_bytes + case.backward_bytes
    yield group(case, BOTH, chosen(both), chosen(captured), moved, options)
    pred.grad = None


def group(
    case: Case,
    measured: str,
    calls: Calls,
    captured: Calls,
    moved: int,
    options: argparse.Namespace,
) -> Group:
    """Peers and limits by every clock that the device has. `captured` is what a graph can hold."""
    device, effort = options.device, QUICK if options.quick else THOROUGH
    limit_calls = limits(moved, measured == "forward", device)
    clocks = {"wall": wall_times(calls | limit_calls, device, effort)}
    refused: dict[str, str] = {}
    if device.type == "cuda":
        clocks["host"] = host_times(calls | limit_calls, device, effort)
        clocks["gpu"], refused = gpu_times(captured | limit_calls, effort)
    rows = timed_rows(clocks, refused, LIMITS)
    return Group(case.name, case.kind, case.pair, case.boxes, measured, moved, rows)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = make_parser("loss_only", __doc__)
    parser.add_argument("--cases", choices=CASES, help="default: all; with --host nothing but that")
    parser.add_argument("--host", action="store_true", help="time the host's share of a call")
    parser.add_argument(
        "--pairs", nargs="+", choices=DENSE_PAIRS, help="pred/target dtypes of the dense cases"
    )
    parser.add_argument("--boxes", nargs="+", type=int, help="sizes of the dense cases")
    parser.add_argument(
        "--fast-box-ops", type=Path, metavar="PATH", help="built checkout of torch-fast-box-ops"
    )
    add_implementations(parser)
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw it")
    options = parsed(parser, arguments)
    on_cpu = options.device.type == "cpu"
    options.cases = options.cases or (None if options.host else "all")
    options.pairs = options.pairs or (DENSE_PAIRS_ON_CPU if on_cpu else DENSE_PAIRS)
    if options.boxes is None:
        options.boxes = DENSE_SIZES_ON_CPU if on_cpu else DENSE_SIZES
        options.boxes = QUICK_SIZES if options.quick else options.boxes
    if min(options.boxes) < 1:
        parser.error(f"--boxes: {min(options.boxes)} given; 1 or more allowed")
    check_implementations(parser, options)
    if options.host:
        try:
            check_tools()
        except UnavailableError as reason:
            parser.error(f"--host: {reason}")
    if options.plot and options.cases is None:
        parser.error("--plot: --host alone has nothing to draw; --cases has")
    return options


if __name__ == "__main__":
    sys.exit(main())
