# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Does it pay to skip invalid boxes by a branch?

    python -m benchmarks.conditional --quick
    python -m benchmarks.conditional --json conditional.json --plot conditional.svg

The seed experiment's open question. One CUDA kernel with the library's GIoU loss, repeated 1 to 256
times for each pair of a padded batch, in variants that write the same: all slots are computed and
the invalid ones' losses replaced by 0; a branch around the formula; a branch around it and the
reading of the prediction; the same with a block's warps in turn at its image's first slots. For
valid slots in front of each image or scattered, and for shares of them from none to all. GPU time
by replaying CUDA graphs, inputs warm. Run again with the same --json, it goes on where it was cut
short. Needs a GPU, nvcc, boxloss and rich; matplotlib for --plot.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import track

from ..common.agreement import DisagreementError
from ..common.losses import UnavailableError
from ..common.output import write_json
from ..common.program import begin, make_parser, open_console, parsed
from ..common.resume import earlier, is_kept
from ..common.timing import Effort
from .cases import LAYOUTS, SHARES, Batch, make_batch, make_case
from .kernels import NO_BRANCH, VARIANTS, Kernels
from .measure import Cell, measure, one_warp
from .plot import plot
from .report import Report, table

SETTINGS: dict[str, Any] = {
    "images": [1024, 32_768],  # the article's, which fits into a GPU's cache, and one that does not
    "layouts": [*LAYOUTS],
    "shares": [*SHARES],
    "repetitions": [1, 2, 4, 8, 16, 32, 64, 128, 256],
    "seconds": 0.05,  # for the variants of one cell together
}
QUICK_SETTINGS = SETTINGS | {
    "images": [64],
    "shares": [0.0, 0.125, 1.0],
    "repetitions": [1, 16, 256],
    "seconds": 0.01,
}
FEWEST_ROUNDS = 11


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parse(arguments)
    console = open_console()
    command, machine = begin("conditional", arguments, options.device, console)
    try:
        document = run(options, command, machine, console)
    except (UnavailableError, DisagreementError) as error:
        print(f"conditional: error: {error}", file=sys.stderr)
        return 1
    report = Report(document)
    for images in report.settings["images"]:
        for layout in report.settings["layouts"]:
            console.print(table(report, images, layout))
    if options.plot:
        plot(document, options.plot)
    return 0


def run(
    options: argparse.Namespace, command: str, machine: dict[str, str], console: Console
) -> dict[str, Any]:
    """The whole document, written whenever there is more of it."""
    kernels = Kernels(options.device)
    settings = QUICK_SETTINGS if options.quick else SETTINGS
    conditions: dict[str, Any] = {
        "machine": machine,
        "settings": settings,
        "kernels": {name: kernels.describe(name) for name in VARIANTS},
    }
    document = {"command": command} | conditions
    written = earlier(options.json)
    kept = is_kept(written, conditions, str(options.json), console)
    before: list[Cell] = written["cells"] if kept else []  # a group was written whole
    if before:
        console.print(f"{options.json} has {len(before)} cells of this run: not measured again")
    launch, batch = kernels.launch(NO_BRANCH), make_batch(1, options.device)
    alone = one_warp(launch, batch, settings["repetitions"], effort(settings))
    document |= {"one_warp_microseconds": alone, "cells": []}

    measured = groups(settings, kernels, options.device, before)
    count = len(settings["images"]) * len(settings["layouts"]) * len(settings["shares"])
    for cells in track(measured, "check and measure", count, console=console):
        document["cells"] += cells
        if options.json:  # every time: a run that is cut short keeps what it has
            write_json(options.json, document)
    return document


def groups(
    settings: dict[str, Any], kernels: Kernels, device: torch.device, before: list[Cell]
) -> Iterator[list[Cell]]:
    """Each has all numbers of repetitions of one share. Those of `before` stay as they are."""
    launches = {name: kernels.launch(name) for name in VARIANTS}
    for images in settings["images"]:
        batch: Batch | None = None
        for layout in settings["layouts"]:
            for share in settings["shares"]:
                wanted = (images, layout, share)
                found = [c for c in before if (c["images"], c["layout"], c["share"]) == wanted]
                if not found:
                    batch = batch or make_batch(images, device)
                    case = make_case(batch, layout, share)
                    found = list(
                        measure(launches, batch, case, settings["repetitions"], effort(settings))
                    )
                yield found


def effort(settings: dict[str, Any]) -> Effort:
    return Effort(settings["seconds"], FEWEST_ROUNDS)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = make_parser("conditional", __doc__)
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw it")
    return parsed(parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
