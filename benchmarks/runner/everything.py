# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""All figures of one kind of machine with a GPU: python -m benchmarks all FOLDER

Each run is a process of less than ten minutes, whose file in FOLDER/runs says that it is done:
whoever has a machine for a short time calls it again, and it goes on. At the end the runs of each
study are one file in FOLDER.
"""

from __future__ import annotations

import argparse
import os
import queue
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path

from .results import Results, read_results

ROOT = Path(__file__).resolve().parents[2]
LONGEST_SECONDS = 600
WHOLE = (
    *("box_loss", "rotated", "assigners", "detectors", "matcher", "matched_pairs"),
    *("linear_assignment", "article", "face_detector", "host", "jax"),
)


def runs() -> dict[str, list[str]]:
    """The arguments of each, by a name that begins with its study's."""
    from ..studies import trained, training_step
    from ..studies.trained.paired import SEEDS

    found = {name: [name] for name in WHOLE}
    for case in training_step.CASES:
        for boxes in training_step.BOXES:
            arguments = ["--cases", case, "--boxes", boxes]
            found[f"training_step {case} {boxes}"] = ["training_step", *arguments]
    for case in trained.CASES:
        for seed in SEEDS:
            for way in trained.ways(case):
                arguments = ["--cases", case, "--seeds", str(seed), "--variants", way]
                found[f"trained {case} {seed} {way}"] = ["trained", *arguments]
    return found


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks all",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--only", nargs="+", default=["*"], help="patterns of names")
    parser.add_argument("--gpus", type=int, default=1, help="each has one run at a time")
    parser.add_argument("--list", action="store_true", help="names the runs that are left")
    parser.add_argument("--quick", action="store_true", help="small and short, to try it")
    options = parser.parse_args(arguments)
    chosen = {
        name: each
        for name, each in runs().items()
        if any(fnmatch(name, pattern) for pattern in options.only)
        and not file_of(options.folder, name).exists()
    }
    if options.list:
        print("\n".join(chosen))
        return 0
    file_of(options.folder, "").parent.mkdir(parents=True, exist_ok=True)
    failed = run_all(chosen, options.folder, options.gpus, ["--quick"] * options.quick)
    join(options.folder)
    return 1 if failed else 0


def file_of(folder: Path, name: str) -> Path:
    return folder / "runs" / f"{re.sub(r'[^A-Za-z0-9_]+', '-', name)}.json"


def run_all(
    chosen: Mapping[str, Sequence[str]], folder: Path, gpus: int, more: Sequence[str]
) -> list[str]:
    """Those that failed."""
    free: queue.Queue[int] = queue.Queue()
    for gpu in range(gpus):
        free.put(gpu)
    failed = []

    def run(name: str) -> None:
        gpu, start = free.get(), time.monotonic()
        told = run_one([*chosen[name], *more], file_of(folder, name), gpu)
        print(f"{name}: {told or 'done'}, {time.monotonic() - start:.0f} s", flush=True)
        free.put(gpu)
        if told:
            failed.append(name)

    with ThreadPoolExecutor(gpus) as threads:
        list(threads.map(run, chosen))
    return failed


def run_one(arguments: Sequence[str], file: Path, gpu: int) -> str:
    """What went wrong, or nothing. An unfinished file is not the run's."""
    unfinished = file.with_suffix(".unfinished")
    unfinished.unlink(missing_ok=True)
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    number = visible[gpu] if gpu < len(visible) and visible[gpu] else str(gpu)
    command = [sys.executable, "-m", "benchmarks", *arguments, "--json", str(unfinished.resolve())]
    with file.with_suffix(".log").open("w") as log:
        try:
            status = subprocess.run(
                command,
                cwd=ROOT,
                env={**os.environ, "CUDA_VISIBLE_DEVICES": number},
                stdout=log,
                stderr=subprocess.STDOUT,
                check=False,
                timeout=LONGEST_SECONDS,
            ).returncode
        except subprocess.TimeoutExpired:
            return f"stopped; see {log.name}"
    if status or not unfinished.exists():
        return f"ended with {status}; see {log.name}"
    unfinished.replace(file)
    return ""


def join(folder: Path) -> None:
    studies: dict[str, Results] = {}
    for file in sorted(folder.glob("runs/*.json")):
        found = read_results(file)
        studies.setdefault(found.study, Results(found.study)).merge(found)
    for name, results in studies.items():
        results.write(folder / f"{name}.json")
