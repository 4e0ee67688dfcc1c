# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Compares two builds of boxloss: the bits of all results, and times in processes that take turns.

    pip install --no-build-isolation --no-deps --target SITE .      in each of the two trees
    python -m benchmarks.compare_builds OLD_SITE NEW_SITE --device cuda --json FILE

A change that must not change a number, or a time, is shown by this: it ends with 1 where something
differs, where a time is out, or where it cannot tell. `--runs 0` leaves out the times.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from rich.console import Console
from rich.table import Table

from ..common.output import check_paths, write_json
from .differences import Difference, differences
from .problems import Records
from .verdicts import Verdict, verdict

MEASURE = "benchmarks.compare_builds.measure"
ROOT = Path(__file__).resolve().parents[2]
WIDEST_FIRST = ("avx512", "avx2", "baseline")
FEWEST_RUNS = 3
SHOWN = 6  # of each implementation; --json has all
NOTHING: Mapping[str, str] = MappingProxyType({})

Times = dict[str, tuple[list[float], list[float]]]  # by row: of each run, old and new


class Build(NamedTuple):
    site: Path
    device: str

    def ask(self, what: str, environment: Mapping[str, str] = NOTHING, **options: Any) -> Any:
        """What a new process with this build says: see measure.py."""
        path = os.pathsep.join([str(self.site), str(ROOT), os.getenv("PYTHONPATH", "")])
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / what
            words = json.dumps(options | {"device": self.device})
            command = [sys.executable, "-m", MEASURE, what, str(file), words]
            variables = {**os.environ, "PYTHONPATH": path, **environment}
            status = subprocess.run(command, env=variables, check=False).returncode
            if status:
                sys.exit(
                    f"compare_builds: {what} of the build in '{self.site}' ended with {status}"
                )
            return torch.load(file) if what == "results" else json.loads(file.read_text())


class Compared(NamedTuple):
    """The results of one implementation, with one of its capabilities where it has some."""

    name: str
    old: Records
    differences: list[Difference]

    def told(self, excused: bool) -> list[Difference]:
        return [each for each in self.differences if each.excused == excused]


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.compare_builds", description=__doc__.splitlines()[0]
    )
    parser.add_argument("old", type=Path, metavar="OLD_SITE")
    parser.add_argument("new", type=Path, metavar="NEW_SITE")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument(
        "--runs", type=int, default=7, help="processes of each build for the times; 0: no times"
    )
    parser.add_argument("--json", type=Path, help="write all that was found")
    options = parser.parse_args(arguments)
    check_paths(parser, options)
    for site in (options.old, options.new):
        if not (site / "boxloss").is_dir():
            parser.error(f"SITE: there is no boxloss in '{site}'")
    if options.runs < FEWEST_RUNS and options.runs != 0:
        parser.error(f"--runs: {options.runs} given; it must be 0, or at least {FEWEST_RUNS}")

    # Not common.program's, which imports a boxloss: each build has processes of its own.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    old, new = (Build(each.resolve(), options.device) for each in (options.old, options.new))
    abouts = [build.ask("about") for build in (old, new)]
    for build, about in zip((old, new), abouts, strict=True):
        if about["site"] != str(build.site):
            parser.error(f"SITE: with '{build.site}' first, Python takes '{about['site']}'")
    in_old_only, in_new_only = (only_in(*each) for each in (abouts, abouts[::-1]))
    console.print(f"in the old build only: {', '.join(in_old_only) or 'nothing'}")
    console.print(f"in the new build only: {', '.join(in_new_only) or 'nothing'}")

    compared = compare_results(old, new, *abouts)
    console.print(results_table(compared))
    for excused, words in (False, "different"), (True, "different in the old build's own runs"):
        told = [(each.name, each.told(excused)) for each in compared]
        console.print(f"{sum(len(found) for _, found in told)} results are {words}")
        for name, found in told:
            for problem, result, text, _ in found[:SHOWN]:
                line = f"  {name}: {problem}: {result}: {text}"
                console.print(line, soft_wrap=True, markup=False)
    is_same = not in_old_only and not any(each.told(excused=False) for each in compared)

    times = compare_times(old, new, options.runs) if options.runs else {}
    verdicts = {row: verdict(row, *runs) for row, runs in times.items()}
    if times:
        console.print(times_table(times, verdicts))
        is_same &= all(each.shows_it for each in verdicts.values())
    console.print("the same" if is_same else "NOT SHOWN to be the same")
    if options.json:
        document = {
            "command": command(arguments, options),
            "machine": abouts[0]["machine"],
            "in the old build only": in_old_only,
            "in the new build only": in_new_only,
            "results": [
                {
                    "implementation": each.name,
                    "problems": len(each.old),
                    "different": each.told(excused=False),
                    "different in the old build's own runs": each.told(excused=True),
                }
                for each in compared
            ],
            "times": {
                row: {"seconds in each run, old and new": runs, **verdicts[row]._asdict()}
                for row, runs in times.items()
            },
            "is the same": is_same,
        }
        write_json(options.json, document)
    return 0 if is_same else 1


def command(arguments: list[str], options: argparse.Namespace) -> str:
    """Without the folders of somebody's machine."""
    names = {str(options.old): "OLD_SITE", str(options.new): "NEW_SITE"}
    words = [names.get(str(Path(each)), each) for each in arguments]
    return shlex.join(["python", "-m", "benchmarks.compare_builds", *words])


def only_in(here: dict[str, Any], there: dict[str, Any]) -> list[str]:
    return [
        f"{word} {name}"
        for word, words in (("loss", "losses"), ("implementation", "implementations"))
        for name in here[words]
        if name not in there[words]
    ]


def compare_results(
    old: Build, new: Build, old_about: dict[str, Any], new_about: dict[str, Any]
) -> list[Compared]:
    """On a GPU, the old build's from two processes: it need not give the same bits each time."""
    shared = {
        what: [name for name in old_about[what] if name in new_about[what]]
        for what in ("losses", "implementations")
    }
    here = [name for name in shared["implementations"] if name.startswith((old.device, "aten"))]
    widest = old_about["capability"]
    settings = [(widest, here)]
    if old.device == "cpu":
        narrower = WIDEST_FIRST[WIDEST_FIRST.index(widest) + 1 :]
        settings += [(capability, ["cpu/native"]) for capability in narrower]

    builds = (old, new) if old.device == "cpu" else (old, new, old)
    compared = []
    # Two at a time: most of a problem's time is one thread's.
    with ThreadPoolExecutor(2 if old.device == "cpu" else 1) as pool:
        waiting = [
            [
                pool.submit(
                    build.ask,
                    "results",
                    # Threads that wait leave the cores to the other process.
                    {"BOXLOSS_CPU_CAPABILITY": capability, "OMP_WAIT_POLICY": "passive"},
                    losses=shared["losses"],
                    implementations=implementations,
                )
                for build in builds
            ]
            for capability, implementations in settings
        ]
        for (capability, _), runs in zip(settings, waiting, strict=True):
            found, after, *more = (run.result() for run in runs)
            again = more[0] if more else found
            for name in found:
                label = f"{name}, {capability}" if name == "cpu/native" else name
                told = list(differences(found[name], again[name], after[name]))
                compared.append(Compared(label, found[name], told))
    return compared


def results_table(compared: list[Compared]) -> Table:
    table = Table("implementation", title="problems, and in how many of them results differ")
    for heading in ("drawn", "problems", "refused by old", "different", "old from itself"):
        table.add_column(heading, justify="left" if heading == "drawn" else "right")
    for each in compared:
        for kind in dict.fromkeys(map(kind_of, each.old)):
            records = [record for problem, record in each.old.items() if kind_of(problem) == kind]
            refused = sum(isinstance(record, str) for record in records)
            different, excused = (
                {found.problem for found in each.told(excused) if kind_of(found.problem) == kind}
                for excused in (False, True)
            )
            counts = (len(records), refused, len(different), len(excused))
            table.add_row(each.name, kind, *map(str, counts))
    return table


def kind_of(problem: str) -> str:
    return problem.partition(" ")[0]


def compare_times(old: Build, new: Build, runs: int) -> Times:
    """Whatever is not as it was is measured once more, and that counts: see verdicts.py."""
    times = take_turns(old, new, runs)
    doubtful = [row for row, each in times.items() if not verdict(row, *each).shows_it]
    return times | (take_turns(old, new, runs, doubtful) if doubtful else {})


def take_turns(old: Build, new: Build, runs: int, rows: list[str] | None = None) -> Times:
    found = [[build.ask("times", rows=rows) for build in (old, new)] for _ in range(runs)]
    before, after = zip(*found, strict=True)
    return {
        row: ([run[row] for run in before], [run[row] for run in after])
        for row in (rows or before[0])
    }


def times_table(times: Times, verdicts: dict[str, Verdict]) -> Table:
    table = Table("what is timed", title="medians of the runs")
    for heading in ("old µs", "new µs", "new / old", "limit", ""):
        table.add_column(heading, justify="right")
    for row, (word, ratio, limit) in verdicts.items():
        old, new = (f"{statistics.median(runs) * 1e6:.2f}" for runs in times[row])
        table.add_row(row, old, new, f"{ratio:.4f}", f"{limit:.4f}", word)
    return table


if __name__ == "__main__":
    sys.exit(main())
