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
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ...runner.run import Run
from .differences import Difference, differences
from .problems import Records

ROOT = Path(__file__).resolve().parents[3]
WIDEST_FIRST = ("avx512", "avx2", "baseline")
FEWEST_RUNS = 3
SHOWN = 6  # differences of each implementation
QUICK_STEP = 97


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


class Build(NamedTuple):
    site: Path
    device: str

    def ask(self, what: str, capability: str = "", **options: Any) -> Any:
        """What a new process with this build says: see process.py."""
        path = os.pathsep.join([str(self.site), str(ROOT), os.getenv("PYTHONPATH", "")])
        variables = {**os.environ, "PYTHONPATH": path}
        if capability:  # threads that wait leave the cores to the other build's process
            variables |= {"BOXLOSS_CPU_CAPABILITY": capability, "OMP_WAIT_POLICY": "passive"}
        with tempfile.TemporaryDirectory() as folder:
            given, said = Path(folder) / "given", Path(folder) / "said"
            torch.save(options | {"device": self.device}, given)
            command = [sys.executable, "-m", f"{__name__}.process", what, str(given), str(said)]
            status = subprocess.run(command, env=variables, check=False).returncode
            if status:
                sys.exit(f"compare_builds: {what} of '{self.site}' ended with {status}")
            return torch.load(said)


def measure(run: Run) -> bool:
    """Whether the builds are shown to be the same."""
    options = run.options
    old, new = (Build(each.resolve(), run.device.type) for each in (options.old, options.new))
    abouts = [build.ask("about") for build in (old, new)]
    for build, about in zip((old, new), abouts, strict=True):
        if about["site"] != str(build.site):
            sys.exit(f"SITE: with '{build.site}' first, Python takes '{about['site']}'")
    gone, come = only_in(*abouts), only_in(*abouts[::-1])
    run.say(f"in the old build only: {', '.join(gone) or 'nothing'}")
    run.say(f"in the new build only: {', '.join(come) or 'nothing'}")
    is_same = not gone
    for name, records, found in compare_results(old, new, *abouts, QUICK_STEP if run.quick else 1):
        about = {"case": "results", "variant": name}
        refused = sum(isinstance(each, str) for each in records.values())
        run.record(about, "problems", "", len(records))
        run.record(about, "refused by old", "", refused)
        run.record(about, "different", "", len({each.problem for each in found}))
        for each in found[:SHOWN]:
            line = f"{name}: {each.problem}: {each.result}: {each.words}"
            run.console.print(line, soft_wrap=True, markup=False)
        is_same &= not found
    run.show({"case": "results"}, ratios=())
    times = compare_times(old, new, options.runs) if options.runs else {}
    for row, runs in times.items():
        for variant, samples in zip(("old", "new"), runs, strict=True):
            microseconds = [1e6 * each for each in samples]
            run.record({"case": row, "variant": variant}, "time", "µs", microseconds)
        run.show({"case": row})
        word, ratio, limit = verdict(row, *runs)
        run.say(f"{word}: {ratio:.4f} times as long; limit {limit:.4f}")
        is_same &= word in NOT_SLOWER
    run.say("the same" if is_same else "NOT SHOWN to be the same")
    return is_same


def only_in(here: dict[str, Any], there: dict[str, Any]) -> list[str]:
    names = ((what, name) for what in ("losses", "implementations") for name in here[what])
    return [f"{what}: {name}" for what, name in names if name not in there[what]]


# --- Bits ---


def compare_results(
    old: Build, new: Build, old_about: dict[str, Any], new_about: dict[str, Any], every: int
) -> Iterator[tuple[str, Records, list[Difference]]]:
    """Of each implementation, by each capability it has, of each `every`-th problem."""
    losses, names = (
        [name for name in old_about[what] if name in new_about[what]]
        for what in ("losses", "implementations")
    )
    widest = old_about["capability"]
    settings = [(widest, [name for name in names if name.startswith((old.device, "aten"))])]
    if old.device == "cpu" and every == 1:
        narrower = WIDEST_FIRST[WIDEST_FIRST.index(widest) + 1 :]
        settings += [(capability, ["cpu/native"]) for capability in narrower]
    # Two at a time on a CPU: most of a problem's time is one thread's.
    with ThreadPoolExecutor(2 if old.device == "cpu" else 1) as pool:
        for capability, chosen in settings:
            asked = {"losses": losses, "implementations": chosen, "every": every}
            both = [pool.submit(each.ask, "results", capability, **asked) for each in (old, new)]
            before, after = (each.result() for each in both)
            for name, records in before.items():
                label = f"{name}, {capability}" if name == "cpu/native" else name
                yield label, records, list(differences(records, after[name]))


# --- Times ---
# A large row, but for its host time, is bound by memory or arithmetic: the medians may be 1 %
# apart. All others are launches and host code, whose time differs from process to process; there
# the slowest of the old build's runs is the limit. The median of a build that is like the old one
# is above it by chance, of seven runs each in one row of 29: the upper four of fourteen runs must
# all be new. So what is not as it was is measured anew, and what those runs say counts: by chance
# one row in 800 remains. Where the old build's own runs are too far apart to see it, the row shows
# nothing: it is "noisy".

WITHIN = 0.01  # of a large row: the medians, and the old build's runs
SPREAD = 0.5  # of another: the old build's runs; beside an H200 host times are 2 to 65 % apart
NOT_SLOWER = ("same", "faster")

Times = dict[str, tuple[list[float], list[float]]]  # by row: of each run, old and new


def verdict(row: str, old: list[float], new: list[float]) -> tuple[str, float, float]:
    """ "same", "faster", "slower" or "noisy"; the medians' ratio, new to old; and its limit."""
    before, after = statistics.median(old), statistics.median(new)
    is_large = ", large, " in row and not row.endswith(", host")
    limit = max(max(old) / before, 1 + WITHIN if is_large else 1)
    if after / before > limit:
        word = "slower"
    elif (max(old) - min(old)) / before > (WITHIN if is_large else SPREAD):
        word = "noisy"
    else:
        word = "faster" if after < min(old) else "same"
    return word, after / before, limit


def compare_times(old: Build, new: Build, runs: int) -> Times:
    times = take_turns(old, new, runs, None)
    doubtful = [row for row, each in times.items() if verdict(row, *each)[0] not in NOT_SLOWER]
    return times | (take_turns(old, new, runs, doubtful) if doubtful else {})


def take_turns(old: Build, new: Build, runs: int, rows: list[str] | None) -> Times:
    found = [[build.ask("times", rows=rows) for build in (old, new)] for _ in range(runs)]
    before, after = zip(*found, strict=True)
    return {
        row: ([run[row] for run in before], [run[row] for run in after])
        for row in (rows or before[0])
    }
