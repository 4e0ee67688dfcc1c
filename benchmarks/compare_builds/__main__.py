# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Compares two builds of boxloss: their speed, in processes that take turns, and their bits.

    pip install --no-build-isolation --no-deps --target SITE .      in each of the two trees
    python -m benchmarks.compare_builds OLD_SITE NEW_SITE --device cuda --json FILE

A change that must not change a number, or a time, is shown by this.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from ..common.machine import describe
from ..common.output import check_paths, write_json

MEASURE = "benchmarks.compare_builds.measure"


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.compare_builds", description=__doc__.splitlines()[0]
    )
    parser.add_argument("sites", nargs=2, type=Path, metavar="SITE", help="the folders: old, new")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--loss", default="giou", help="the new build's; the old one has giou")
    parser.add_argument("--pairs", nargs="+", default=["f32/f32", "bf16/u8"])
    parser.add_argument("--runs", type=int, default=5, help="processes of each build")
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args(arguments)
    check_paths(parser, options)
    for site in options.sites:
        if not (site / "boxloss").is_dir():
            parser.error(f"SITE: there is no boxloss in '{site}'")

    runs: list[list[dict[str, Any]]] = [[], []]
    for _ in range(options.runs):
        for build, loss in enumerate(("giou", options.loss)):
            runs[build].append(run(options.sites[build], loss, options))
    old, new = runs
    figures = {
        name: {
            clock: [[run["times"][name][clock] for run in build] for build in runs]
            for clock in old[0]["times"][name]
        }
        for name in old[0]["times"]
    }
    bits = old[0]["digests"]
    differing = [name for name in bits if any(r["digests"][name] != bits[name] for r in old + new)]

    Console().print(table(figures))
    print(f"{len(bits) - len(differing)} of {len(bits)} results have the same bits in all runs")
    for name in differing[:5]:
        print(f"  not: {name}")
    if options.json:
        document = {
            "command": shlex.join(["python", "-m", "benchmarks.compare_builds", *arguments]),
            "machine": describe(torch.device(options.device)),
            "loss": options.loss,
            "runs": options.runs,
            "seconds in each run, old and new": figures,
            "results": len(bits),
            "results with other bits": differing,
        }
        write_json(options.json, document)
    return 1 if differing and options.loss == "giou" else 0


def run(site: Path, loss: str, options: argparse.Namespace) -> dict[str, Any]:
    command = [sys.executable, "-m", MEASURE, "--device", options.device, "--loss", loss]
    environment = os.environ | {"PYTHONPATH": f"{site}{os.pathsep}{os.getenv('PYTHONPATH', '')}"}
    result = subprocess.run(
        [*command, "--pairs", *options.pairs],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def table(figures: dict[str, dict[str, list[list[float]]]]) -> Table:
    """Medians."""
    result = Table("case", "clock", "old µs", "new µs", "new / old")
    for name, clocks in figures.items():
        for clock, builds in clocks.items():
            old, new = (statistics.median(runs) for runs in builds)
            result.add_row(name, clock, f"{old * 1e6:.2f}", f"{new * 1e6:.2f}", f"{new / old:.3f}")
    return result


if __name__ == "__main__":
    sys.exit(main())
