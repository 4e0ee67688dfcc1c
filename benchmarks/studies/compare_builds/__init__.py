# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Does a change leave every bit and every time as it was?

Compares two builds of boxloss: the bits of all results, and times in processes that take turns.

    pip install --no-build-isolation --no-deps --target SITE .      in each of the two trees
    python -m benchmarks compare_builds OLD_SITE NEW_SITE --device cuda

It ends with 1 where something differs, where a time is out, or where it cannot tell. `--runs 0`
leaves out the times; --quick takes few of the problems.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import torch

from ...runner.run import Run
from .differences import Difference, differences
from .problems import Records
from .verdicts import verdict

MEASURE = "benchmarks.studies.compare_builds.measure"
ROOT = Path(__file__).resolve().parents[3]
WIDEST_FIRST = ("avx512", "avx2", "baseline")
FEWEST_RUNS = 3
SHOWN = 6  # differences of each implementation
QUICK_STEP = 97
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


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("old", type=Path, metavar="OLD_SITE")
    parser.add_argument("new", type=Path, metavar="NEW_SITE")
    parser.add_argument(
        "--runs", type=int, default=7, help="processes of each build for the times; 0: no times"
    )


def check_options(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    for site in (options.old, options.new):
        if not (site / "boxloss").is_dir():
            parser.error(f"SITE: there is no boxloss in '{site}'")
    if options.runs < FEWEST_RUNS and options.runs != 0:
        parser.error(f"--runs: {options.runs} given; it must be 0, or at least {FEWEST_RUNS}")


def measure(run: Run) -> bool:
    """Whether the builds are shown to be the same."""
    options = run.options
    old, new = (Build(each.resolve(), run.device.type) for each in (options.old, options.new))
    abouts = [build.ask("about") for build in (old, new)]
    for build, about in zip((old, new), abouts, strict=True):
        if about["site"] != str(build.site):
            sys.exit(f"SITE: with '{build.site}' first, Python takes '{about['site']}'")
    in_old_only, in_new_only = (only_in(*each) for each in (abouts, abouts[::-1]))
    run.say(f"in the old build only: {', '.join(in_old_only) or 'nothing'}")
    run.say(f"in the new build only: {', '.join(in_new_only) or 'nothing'}")

    compared = compare_results(old, new, *abouts, every=QUICK_STEP if run.quick else 1)
    for each in compared:
        record_results(run, each)
    run.show({"case": "results"}, ratios=())
    for excused, words in (False, "different"), (True, "different in the old build's own runs"):
        told = [(each.name, each.told(excused)) for each in compared]
        run.say(f"{sum(len(found) for _, found in told)} results are {words}")
        for name, found in told:
            for problem, result, text, _ in found[:SHOWN]:
                line = f"  {name}: {problem}: {result}: {text}"
                run.console.print(line, soft_wrap=True, markup=False)
    is_same = not in_old_only and not any(each.told(excused=False) for each in compared)

    times = compare_times(old, new, options.runs) if options.runs else {}
    for row, runs in times.items():
        for variant, samples in zip(("old", "new"), runs, strict=True):
            run.record(
                {"case": row, "variant": variant}, "time", "µs", [1e6 * each for each in samples]
            )
        found = verdict(row, *runs)
        is_same &= found.shows_it
        run.show({"case": row})
        run.say(f"{found.word}: {found.ratio:.4f} times as long; limit {found.limit:.4f}")
    run.say("the same" if is_same else "NOT SHOWN to be the same")
    return is_same


def record_results(run: Run, compared: Compared) -> None:
    """How many problems, and in how many of them results differ."""
    about = {"case": "results", "variant": compared.name}
    for quantity, count in (
        ("problems", len(compared.old)),
        ("refused by old", sum(isinstance(each, str) for each in compared.old.values())),
        ("different", len({each.problem for each in compared.told(excused=False)})),
        ("old from itself", len({each.problem for each in compared.told(excused=True)})),
    ):
        run.record(about, quantity, "", count)


def only_in(here: dict[str, Any], there: dict[str, Any]) -> list[str]:
    return [
        f"{word} {name}"
        for word, words in (("loss", "losses"), ("implementation", "implementations"))
        for name in here[words]
        if name not in there[words]
    ]


def compare_results(
    old: Build,
    new: Build,
    old_about: dict[str, Any],
    new_about: dict[str, Any],
    every: int = 1,
) -> list[Compared]:
    """Of each `every`-th problem. On a GPU, the old build's from two processes: it need not give
    the same bits each time."""
    shared = {
        what: [name for name in old_about[what] if name in new_about[what]]
        for what in ("losses", "implementations")
    }
    here = [name for name in shared["implementations"] if name.startswith((old.device, "aten"))]
    widest = old_about["capability"]
    settings = [(widest, here)]
    if old.device == "cpu" and every == 1:
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
                    every=every,
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
