# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Which tests pass on this GPU?

The conformance suite of implementations in BUILD, a build with tests (cmake --preset cuda); the
same under the tools of compute-sanitizer; and Python's tests, of the boxloss that this Python
imports: those of them that --parts names. None depends on another's time, so they run beside each
other. What passed is counted in assertions where Catch2 tests, else in tests.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from ..runner.run import Run

ROOT = Path(__file__).resolve().parents[2]
DEVICES = ("cuda",)
IMPLEMENTATIONS = ("cuda/native", "cuda/kokkos", "hip/native")
# A tool, and what of the suite: one loss in named cases, and mixes of all, since all losses access
# the same; of what threads of a block do to each other the mixes alone have every kernel.
SANITIZERS = {
    "memcheck": ("-c", "every case"),
    "racecheck": ("random mixes agree with the oracle*",),
    "synccheck": ("random mixes agree with the oracle*",),
}
FOLDERS = ("tests/torch", "tests/jax", "tests/peers")
# What few builds have, and what needs detectors: only when --parts names it.
UNUSUAL = ("cuda/kokkos", "hip/native", "tests/peers")
SUITE = "tests/conformance/boxloss_conformance"
LONGEST_SECONDS = 3600  # of a part
# Processes of pytest share the cores, JAX leaves the others some memory, and no test of a GPU is
# left out in silence (tests/torch/conftest.py).
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "BOXLOSS_TEST_GPU": "1"}
ENVIRONMENT |= {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)")


@dataclass(frozen=True)
class Part:
    name: str
    command: tuple[str, ...]
    report: str  # the option that names a JUnit file

    @property
    def file(self) -> str:
        return re.sub(r"\W+", "-", self.name)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("build", type=Path, metavar="BUILD")
    parser.add_argument("--logs", type=Path, required=True, metavar="DIR", help="what tests print")
    parser.add_argument("--processes", type=int, default=4, help="of pytest, for each folder")
    names = (*IMPLEMENTATIONS, *SANITIZERS, *FOLDERS)
    usual = [name for name in names if name not in UNUSUAL]
    parser.add_argument("--parts", nargs="+", choices=names, default=usual)


def parts(options: argparse.Namespace) -> Iterator[Part]:
    suite = str(options.build / SUITE)
    for name in IMPLEMENTATIONS:
        yield Part(name, (suite, "--implementation", name), "--reporter=junit::out=")
    for name, chosen in SANITIZERS.items():
        tool = ("compute-sanitizer", "--tool", name, "--error-exitcode=1")
        subject = (suite, "--implementation", IMPLEMENTATIONS[0], *chosen)
        yield Part(name, (*tool, *subject), "--reporter=junit::out=")
    for folder in FOLDERS:  # -v: one that is stopped has named what failed
        pytest = (sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", folder)
        yield Part(folder, (*pytest, f"--numprocesses={options.processes}"), "--junitxml=")


def check_options(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    options.build, options.logs = options.build.resolve(), options.logs.resolve()
    if not (options.build / SUITE).exists():
        parser.error(f"BUILD: there is no {SUITE} in '{options.build}'")
    if not options.logs.is_dir():
        parser.error(f"--logs: there is no directory '{options.logs}'")


def measure(run: Run) -> bool:
    """Whether all passed."""
    options = run.options
    chosen = [part for part in parts(options) if part.name in options.parts]
    passed = True
    with ThreadPoolExecutor(len(chosen)) as threads:
        running = {threads.submit(run_part, part, options.logs): part for part in chosen}
        for done in as_completed(running):
            part, found = running[done], done.result()
            columns = {"tests": part.name, "command": shlex.join(part.command), "variant": ""}
            for quantity, value in found.items():
                run.record(columns, quantity, "", value)
            run.say(f"{part.name}: {', '.join(f'{n:g} {word}' for word, n in found.items())}")
            passed = passed and not found["failed"]
    return passed


def run_part(part: Part, logs: Path) -> dict[str, float]:
    """How many passed, failed and were skipped. A part that crashes, hangs, is killed or tests
    nothing has failed at least once."""
    report, log = (logs / f"{part.file}.{kind}" for kind in ("xml", "log"))
    report.unlink(missing_ok=True)
    with log.open("w") as output:
        try:
            status = subprocess.run(
                [*part.command, f"{part.report}{report}"],
                cwd=ROOT,
                env={**os.environ, **ENVIRONMENT},
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
                timeout=LONGEST_SECONDS,
            ).returncode
        except (OSError, subprocess.TimeoutExpired) as error:
            output.write(f"{error}\n")
            status = 1
    found = counted(report)
    summaries = SUMMARY.findall(log.read_text(errors="replace"))
    found["failed"] += sum(map(int, summaries))
    is_silent = part.name in SANITIZERS and not summaries
    if status != 0 or is_silent or not found["passed"]:
        found["failed"] = max(found["failed"], 1)
    return found


def counted(report: Path) -> dict[str, float]:
    try:
        suites = list(ElementTree.parse(report).getroot().iter("testsuite"))
    except (OSError, ElementTree.ParseError):  # whoever is killed leaves none, or a part of one
        suites = []

    def total(*names: str) -> int:
        return sum(int(suite.get(name, 0)) for suite in suites for name in names)

    failed, skipped = total("failures", "errors"), total("skipped")
    return {"passed": total("tests") - failed - skipped, "failed": failed, "skipped": skipped}
