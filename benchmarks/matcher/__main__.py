# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Times what a matcher minimises, and whole matchers, in one process.

    python -m benchmarks.matcher --quick          seconds, to see what it does
    python -m benchmarks.matcher --cases rtdetr lwdetr
    python -m benchmarks.matcher --device cuda --json matcher.json

cost is all layers' cost on the device; "on the host" is with the copies there and without SciPy;
matching is all of it; assignment is what comes after a cost, on the host. padded is plain torch for
all layers and images at once, its true boxes padded beforehand to the most of any; original is
transformers' own matcher, called layer by layer. Its cost is its own code, stopped at the copy to
the host, and without SciPy it runs to its end with an assignment that does nothing. Results that
are large are held against filling as much memory. Only the ratios within one run count: times over
the first row's. stream is wall time per call in a stream of calls. A last pass counts what a call
asks for. Needs boxloss, rich and SciPy; transformers (with PIL) for its own matchers.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import partial

import torch
from rich.console import Console

from ..common.counts import counted_rows, counts_on
from ..common.groups import Group, Row, timed_rows
from ..common.losses import UnavailableError
from ..common.program import QUICK, carry_out, load_available, make_parser, parsed
from ..common.report import table
from ..common.timing import Call, Calls, Effort, gpu_times, host_times, stream_times
from . import agreement, matchers
from .cases import KINDS, QUICK_SHAPES, SHAPES, SHAPES_ON_CPU, WRITING, Case, make_case
from .originals import Original, load_original
from .variants import FILL, ORIGINAL, Costs, limits, variants

THOROUGH = Effort(0.25, 5)  # for each of many groups


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parse(arguments)
    shown = partial(table, limit=FILL)
    return 1 if carry_out("matcher", arguments, options, run, shown) is None else 0


def run(options: argparse.Namespace, skipped: dict[str, str], console: Console) -> Iterator[Group]:
    """Each group as soon as it is measured. `skipped` collects who was not, and why."""
    for case in cases(options):
        costs = load(case, options, skipped, console)
        expected = agreement.truths(case)
        for name, each in costs.items():
            agreement.check(name, each, case, expected)
        console.print(f"\n[bold]{case.name}[/]: {len(costs)} agree in each entry")
        if case.kind in WRITING:
            del expected  # large
            yield timed_costs(case, costs, options)
            continue
        original = load_original(case) if ORIGINAL in costs else None
        try:
            calls = matching(case, costs, original, expected)
        except UnavailableError as reason:
            console.print(f"[yellow]skipped matching[/]: {reason}")
            skipped["matching"] = str(reason)
            calls = {}
        del expected
        yield timed_costs(case, costs, options)
        calls = {"cost on the host, without SciPy": on_the_host(costs, original), **calls}
        for measured, each in calls.items():
            yield timed(case, measured, each, options)
    for case in cases(options):
        costs = load(case, options, skipped, console)
        console.print(f"\n[bold]{case.name}[/]: counts per call")
        yield counted(case, costs)


def cases(options: argparse.Namespace) -> Iterator[Case]:
    """One after the other: the largest takes much memory."""
    shapes = SHAPES if options.device.type == "cuda" else SHAPES_ON_CPU
    if options.quick:
        shapes = QUICK_SHAPES
    for kind in options.cases:
        yield make_case(kind, shapes[kind], options.device)


def load(
    case: Case, options: argparse.Namespace, skipped: dict[str, str], console: Console
) -> dict[str, Costs]:
    torch.compiler.reset()  # past a few shapes torch.compile would quietly run eagerly
    return load_available(variants(case.kind), case, options.quick, skipped, console)


def matching(
    case: Case,
    costs: dict[str, Costs],
    original: Original | None,
    expected: list[agreement.Truth],
) -> dict[str, Calls]:
    """What goes as far as an assignment, if all of it is right."""
    cost = costs["boxloss"].call()
    best = matchers.load_loop(case)(cost)
    wanted = matchers.collated(case, best)
    agreement.check_same(matchers.HUNGARIAN, matchers.hungarian(case, cost), wanted)
    if original is not None:
        agreement.check_best(ORIGINAL, original.matches(), best, case, expected)
    return {
        "matching": matchers.matchers(case, costs["boxloss"].call, original),
        "assignment": matchers.assignments(case, cost),
    }


def on_the_host(costs: dict[str, Costs], original: Original | None) -> Calls:
    calls: Calls = {
        name: partial(_copied, each.call) for name, each in costs.items() if name != ORIGINAL
    }
    return calls if original is None else {**calls, ORIGINAL: original.without_scipy}


def _copied(cost: Callable[[], torch.Tensor]) -> torch.Tensor:
    return cost().cpu()


def timed_costs(case: Case, costs: dict[str, Costs], options: argparse.Namespace) -> Group:
    """Side by side, by every clock that the device has."""
    calls: Calls = {name: each.call for name, each in costs.items()}
    limit_calls = limits(case)
    calls |= limit_calls
    device, effort = options.device, QUICK if options.quick else THOROUGH
    notes: dict[str, str] = {}
    clocks = {"stream": stream_times(calls, device, effort)}
    if device.type == "cuda":
        clocks["host"] = host_times(calls, device, effort)
        clocks["gpu"], notes = gpu_times(calls, effort)
    if ORIGINAL in costs:
        of_version = f"transformers {sys.modules['transformers'].__version__}"
        notes[ORIGINAL] = "; ".join([of_version, *filter(None, [notes.get(ORIGINAL)])])
    rows = timed_rows(clocks, notes, limit_calls)
    return _group(case, "cost", rows, case.bytes if case.kind in WRITING else None)


def timed(case: Case, measured: str, calls: Calls, options: argparse.Namespace) -> Group:
    """All these wait for the device."""
    times = stream_times(calls, options.device, QUICK if options.quick else THOROUGH)
    return _group(case, measured, timed_rows({"stream": times}))


def counted(case: Case, costs: dict[str, Costs]) -> Group:
    def count(name: str, call: Call) -> dict[str, float]:
        return counts_on(case.pred.device, call, variants(case.kind)[name].slow_to_start)

    calls: Calls = {name: each.call for name, each in costs.items()}
    return _group(case, "cost", counted_rows(calls, count))


def _group(case: Case, measured: str, rows: list[Row], moved: int | None = None) -> Group:
    return Group(case.name, case.kind, "f32/f32", case.entries, measured, moved, rows)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = make_parser("matcher", __doc__)
    parser.add_argument("--cases", nargs="+", choices=KINDS, default=KINDS, help="default: all")
    return parsed(parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
