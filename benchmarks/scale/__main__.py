# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""How the GIoU loss scales: with boxes, images, slots, uneven batches, and GPUs.

    python -m benchmarks.scale --quick                  seconds, to see what it does
    python -m benchmarks.scale --gpus 2 --json scale.json --plot scale.svg

Part "one" times one GPU: dense pairs from 100 to a billion where the memory holds them, batches of
16 to 65,536 images, 16 to 4,096 slots, and batches with as many boxes in all that three
distributions share out. Part "several" times the parts of a training step on several GPUs that
share one normalizer, in a process for each. A model of the cost is fitted to both. Interrupted, it
goes on where it was with the same --json. Needs boxloss, NumPy and rich; matplotlib for --plot.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import Progress

from ..common.agreement import DisagreementError
from ..common.losses import UnavailableError
from ..common.output import write_json
from ..common.program import begin, make_parser, open_console, parsed
from ..common.resume import earlier, is_kept
from .cases import Job, Row, jobs, needed_bytes
from .findings import findings
from .measure import measure
from .plot import plot
from .ranks import measure_ranks
from .report import tables
from .settings import Settings, settings_for

PARTS = ("one", "several")

Report = dict[str, Any]
Save = Callable[[], None]


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parse(arguments)
    console = open_console(160)
    command, machine = begin("scale", arguments, options.device, console)
    settings = settings_for(options.device, options.quick)
    report: Report = {
        "command": command,
        "machine": machine,
        "settings": asdict(settings),
        "skipped": {},
    }
    before = earlier(options.json)
    report |= {part: before[part] for part in PARTS if part in before}

    def save() -> None:
        if options.json:
            write_json(options.json, report)

    try:
        if "one" in options.parts:
            run_one(report, settings, options.device, console, save)
        if "several" in options.parts:
            run_several(report, settings, options, console, save)
    except DisagreementError as error:
        print(f"scale: error: {error}", file=sys.stderr)
        return 1
    report["findings"] = findings(report)
    save()
    for table in tables(report):
        console.print(table)
    if options.plot:
        plot(json.loads(json.dumps(report)), options.plot)  # as from a file
    return 0


def run_one(
    report: Report, settings: Settings, device: torch.device, console: Console, save: Save
) -> None:
    rows = resumed("one", report, {}, console)
    skipped = report["one"]["skipped"] = {}
    asked = list(jobs(settings))
    left = [job for job in asked if not any(job.where.items() <= row.items() for row in rows)]
    if len(left) < len(asked):
        console.print(f"{len(asked) - len(left)} of {len(asked)} cases are in the file already")
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        for job in progress.track(left, description="one GPU"):
            try:
                check_memory(job, device)
                rows += measure(job, device, settings)
            except (UnavailableError, torch.OutOfMemoryError) as error:
                reason = str(error).partition("\n")[0]
                console.print(f"[yellow]skipped {job.name}[/]: {reason}")
                skipped[job.name] = reason
            else:
                console.print(f"{job.name}: all agree in loss and gradient, and are timed")
            save()


def resumed(part: str, report: Report, conditions: dict[str, Any], console: Console) -> list[Row]:
    """The part's rows: those of the file, if they were measured under the same conditions."""
    conditions = conditions | {name: report[name] for name in ("machine", "settings")}
    written = report.get(part, {})
    kept = is_kept(written, conditions, f"part {part}", console)
    rows: list[Row] = written["rows"] if kept else []
    report[part] = conditions | {"rows": rows, "command": report["command"]}
    return rows


def check_memory(job: Job, device: torch.device) -> None:
    """UnavailableError, if the GPU has too little."""
    if job.case or device.type == "cpu":
        return
    torch.cuda.empty_cache()
    free, _ = torch.cuda.mem_get_info(device)
    needed = needed_bytes(job.where["pair"], job.where["size"])
    if needed > free:
        raise UnavailableError(
            f"it needs {needed / 2**30:.0f} GiB, of which {free / 2**30:.0f} are free"
        )


def run_several(
    report: Report, settings: Settings, options: argparse.Namespace, console: Console, save: Save
) -> None:
    device_type = options.device.type
    if device_type == "cuda" and torch.cuda.device_count() < options.gpus:
        reason = f"--gpus {options.gpus} given, but there is {torch.cuda.device_count()}"
        console.print(f"[yellow]skipped several GPUs[/]: {reason}")
        report["skipped"]["several"] = reason
        return
    backend = "NCCL" if device_type == "cuda" else "gloo"
    conditions = {"ranks": options.gpus, "backend": backend}
    rows = resumed("several", report, conditions, console)
    done = whole_sizes(rows, settings)
    if done:
        console.print(f"{len(done)} of {len(settings.rank_sizes)} sizes are in the file already")
    rows[:] = [row for row in rows if done and row.get("boxes", done[0]) in done]
    left = [size for size in settings.rank_sizes if size not in done]
    if not left:
        return
    if device_type == "cuda":
        torch.cuda.empty_cache()  # the ranks' own processes need it
    console.print(f"{options.gpus} ranks, {', '.join(f'{size:,}' for size in left)} boxes each ...")
    for row in measure_ranks(options.gpus, device_type, settings, left, collectives=not done):
        rows.append(row)
        save()


def whole_sizes(rows: list[Row], settings: Settings) -> list[int]:
    """Those with all their steps: a run may have been cut short between two."""
    steps = 3 + len(settings.parameters)
    numbers = [row["boxes"] for row in rows if row["part"] == "step"]
    return [size for size in settings.rank_sizes if numbers.count(size) == steps]


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = make_parser("scale", __doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="default: both")
    parser.add_argument(
        "--gpus", type=int, default=2, help='in part "several"; on the CPU processes; default: 2'
    )
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw it")
    options = parsed(parser, arguments)
    if options.gpus < 2:
        parser.error(f"--gpus: {options.gpus} given; 2 or more allowed")
    return options


if __name__ == "__main__":
    sys.exit(main())
