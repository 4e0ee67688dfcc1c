# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Times the losses on the CPU, beside their peers and the memory's speed, in one process.

    python -m benchmarks.cpu --quick                    seconds, to see what it does
    python -m benchmarks.cpu --groups dense --json dense.json --plot dense.svg
    OMP_NUM_THREADS=1 python -m benchmarks.cpu --groups losses sparse
    BOXLOSS_CPU_CAPABILITY=avx2 python -m benchmarks.cpu --groups dense

dense is GIoU of neighbouring pairs, beside sums over the same memory; losses is each loss beside
GIoU; sparse is few boxes in many slots, by each layout; call is a call on a few boxes, beside an
operator that does nothing. Only the ratios within one run count: times over the first row's. Inputs
are warm: small ones stay in the cache. Needs boxloss and rich; matplotlib for --plot; ninja and a
C++ compiler for call.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import torch
from boxloss.torch import implementations
from rich.console import Console
from rich.table import Table

from ..common.cases import SEED_PAIRS, SEED_SHAPE, dense_case, seed_case
from ..common.groups import PASSES, Group, timed_rows
from ..common.losses import Loss, UnavailableError
from ..common.machine import describe
from ..common.output import check_paths
from ..common.program import QUICK, THOROUGH, carry_out, load_available, make_parser
from ..common.report import table
from ..common.timing import Calls, backward, wall_times
from ..loss_only.agreement import check, truth
from ..loss_only.host import BOXES as FEW_BOXES
from ..loss_only.host import check_tools, measure_host
from .agreement import oracle_truth
from .cases import retinanet_case
from .plot import plot
from .variants import Setting, dense, losses, retinanet, seed

CPU = torch.device("cpu")
GROUPS = ("dense", "losses", "sparse", "call")
SMALL, MIDDLE, LARGE = 2**18, 2_000_000, 2**23
DENSE_SIZES = {
    "f32/f32": (SMALL, MIDDLE, LARGE),
    "bf16/u8": (SMALL, LARGE),
    "bf16/bf16": (SMALL, LARGE),
    "f64/f64": (SMALL, LARGE),
}
ANCHORS, FOREGROUND = 159_882, 0.002
QUICK_BOXES, QUICK_SHAPE, QUICK_ANCHORS = 5000, (64, 32), 2000


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parse(arguments)
    groups = carry_out("cpu", arguments, options, run, shown)
    if groups is None:
        return 1
    if options.plot:
        plot(groups, describe(CPU), options.plot)
    return 0


def shown(group: Group) -> Table:
    limits = [row.name for row in group.rows if row.limit]
    return table(group, limits[0] if limits else "")


def run(options: argparse.Namespace, skipped: dict[str, str], console: Console) -> Iterator[Group]:
    """Each group as soon as it is measured. `skipped` collects who was not, and why."""
    for setting in settings(options):
        case = setting.case
        torch.compiler.reset()  # past a few shapes torch.compile would quietly run eagerly
        available = load_available(setting.peers, case, options.quick, skipped, console)
        agree(setting, available)
        console.print(f"\n[bold]{case.name}[/]: {len(available)} agree in loss and gradient")
        for measured in PASSES:
            yield timed(setting, measured, available, options)
        case.pred.grad = None
    if "call" in options.groups:
        console.print(f"\n[bold]call, {FEW_BOXES} boxes[/]")
        yield from measure_host(CPU, QUICK if options.quick else THOROUGH)


def settings(options: argparse.Namespace) -> Iterator[Setting]:
    """One after the other: the largest take much memory."""
    _, *others = (name for name in implementations() if name.startswith("cpu/"))
    others.remove("cpu/reference")  # slow on purpose
    quick = options.quick
    if "dense" in options.groups:
        for pair, sizes in DENSE_SIZES.items():
            for boxes in (QUICK_BOXES,) if quick else sizes:
                yield dense(dense_case(pair, boxes, CPU), others)
    if "losses" in options.groups:
        yield losses(dense_case("f32/f32", QUICK_BOXES if quick else SMALL, CPU))
    if "sparse" in options.groups:
        yield retinanet(retinanet_case(2, QUICK_ANCHORS if quick else ANCHORS, FOREGROUND), others)
        for pair in SEED_PAIRS:
            yield seed(seed_case(pair, CPU, QUICK_SHAPE if quick else SEED_SHAPE), others)


def agree(setting: Setting, available: dict[str, Loss]) -> None:
    """DisagreementError, unless all are right."""
    case = setting.case
    of_giou = truth(case)
    for name, loss in available.items():
        peer = setting.peers[name]
        expected = oracle_truth(case, loss) if setting.kind == "losses" else of_giou
        with peer.chosen():
            check(name, loss, case, case.layouts[peer.layout], expected)


def timed(
    setting: Setting, measured: str, available: dict[str, Loss], options: argparse.Namespace
) -> Group:
    case, calls = setting.case, {}
    for name, loss in available.items():
        peer = setting.peers[name]
        call = partial(loss, case.pred, *case.layouts[peer.layout])
        both = partial(backward, call, case.pred)
        calls[name] = peer.choosing(call if measured == "forward" else both)
    limits: Calls = setting.limits(case, measured)
    with torch.set_grad_enabled(measured != "forward"):
        times = wall_times(calls | limits, CPU, QUICK if options.quick else THOROUGH)
    moved = case.forward_bytes + (case.backward_bytes if measured != "forward" else 0)
    return Group(
        case.name,
        setting.kind,
        case.pair,
        case.boxes,
        measured,
        moved if setting.kind == "dense" else None,
        timed_rows({"wall": times}, limits=limits),
    )


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = make_parser("cpu", __doc__, any_device=False)
    parser.add_argument("--groups", nargs="+", choices=GROUPS, default=GROUPS, help="default: all")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw the dense pairs")
    options = parser.parse_args(arguments)

    options.device = CPU
    if "call" in options.groups:
        try:
            check_tools()
        except UnavailableError as reason:
            parser.error(f"--groups: call {reason}")
    if options.plot and "dense" not in options.groups:
        parser.error("--plot: draws the dense pairs, which --groups leaves out")
    check_paths(parser, options)
    return options


if __name__ == "__main__":
    sys.exit(main())
