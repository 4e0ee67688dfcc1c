# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Trains a face detector to the end, once with each way to compute its box loss.

    python -m benchmarks.trained_detector --json trained.json --plot trained.svg
    python -m benchmarks.trained_detector --quick

The data are benchmarks.face_detector's: real faces in real photographs, others in training than in
the held-out pictures. Each variant trains from the same weights on the same batches; at even steps
the held-out average precision is noted, with the seconds of training so far. So the time to the
same quality can be told. On a GPU three or four minutes under bf16 autocast; on CPU cores a smaller
detector, fewer steps and about ten minutes.

With --json each variant is written when it is done, and a run that was stopped goes on from its
last evaluation. --plot writes held-out pictures before and after training, too: FILE-pictures.png.
Needs boxloss, scikit-image and rich; matplotlib for --plot.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ..common.agreement import DisagreementError
from ..common.output import write_json
from ..common.program import begin, make_parser, open_console, parsed
from ..common.resume import earlier, is_kept
from ..face_detector.data import Split
from .agreement import check
from .model import SCALES, Scale
from .pictures import DrawnPictures, assign_all, draw
from .plot import plot, plot_pictures
from .report import Figures, figures, line, table
from .training import Task, train
from .variants import VARIANTS

CHECKPOINTS = Path(__file__).parents[1] / "out" / "trained_detector"
SEED = 0


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parse(arguments)
    console = open_console()
    command, machine = begin("trained_detector", arguments, options.device, console)
    chosen = "quick" if options.quick else "gpu" if options.device.type == "cuda" else "cpu"
    scale = SCALES[chosen]
    settings = {"scale": chosen, "seed": SEED} | asdict(scale)
    console.print(
        f"{scale.steps:,} steps of {scale.batch} pictures, judged {scale.evaluations} times on "
        f"{scale.test_pictures:,} held-out ones"
    )

    task = make_task(scale, options.device, console)
    pairs = [as_drawn for as_drawn, _ in task.assigned[: scale.batch]]
    try:
        agreed = {
            name: check(name, variant, pairs, options.device) for name, variant in VARIANTS.items()
        }
    except DisagreementError as error:
        print(f"trained_detector: error: {error}", file=sys.stderr)
        return 1
    console.print(f"{len(agreed)} variants agree on one batch, in loss and gradient. Training ...")

    conditions = {"machine": machine, "settings": settings}
    before = earlier(options.json)
    kept = is_kept(before, conditions, str(options.json), console)
    runs: dict[str, Figures] = before["variants"] if kept else {}
    document = conditions | {
        "command": command,
        "agreed_losses": agreed,
        "shown": task.shown,
        "variants": runs,
    }
    torch.backends.cudnn.benchmark = True  # all batches have one size
    for name, variant in VARIANTS.items():
        if name in runs:
            console.print(f"{name}: taken from {options.json}")
            continue
        checkpoint = checkpoint_of(name, settings, machine) if options.json else None
        if checkpoint and checkpoint.exists():
            console.print(f"{name}: goes on from {checkpoint}")
        with progress(name, scale.steps, console) as advance:
            run = train(scale, variant, task, options.device, SEED, checkpoint, advance)
        console.print(line(name, run))
        runs[name] = figures(run)
        if options.json:  # every time: a long run that is cut short keeps what it has
            write_json(options.json, document)
        if checkpoint:
            checkpoint.unlink()

    console.print(table(runs))
    if options.plot:
        pictures = options.plot.with_name(f"{options.plot.stem}-pictures.png")
        plot(document, options.plot)
        plot_pictures(document, pictures)
        console.print(f"Drawn: {options.plot}, and held-out pictures: {pictures}")
    return 0


def make_task(scale: Scale, device: torch.device, console: Console) -> Task:
    """Draws its pictures, and puts them on the device."""

    def drawn(split: Split, count: int) -> DrawnPictures:
        with progress(f"drawing {split} pictures", count, console) as advance:
            made = draw(split, SEED, count, advance)
        return DrawnPictures(made.pictures.to(device), made.boxes)

    train_set = drawn("train", scale.train_pictures)
    return Task(train_set, assign_all(train_set), drawn("test", scale.test_pictures))


@contextmanager
def progress(words: str, total: int, console: Console) -> Iterator[Callable[[int], None]]:
    """A bar, told how far it is."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(
        *columns,
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as shown:
        task = shown.add_task(words, total=total)
        yield lambda done: shown.update(task, completed=done)


def checkpoint_of(name: str, settings: dict[str, Any], machine: dict[str, str]) -> Path:
    """Another one for other settings, and for another machine."""
    key = json.dumps([settings, machine], sort_keys=True).encode()
    return CHECKPOINTS / f"{hashlib.sha256(key).hexdigest()[:12]}-{name}.pt"


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = make_parser("trained_detector", __doc__)
    parser.add_argument(
        "--plot",
        type=Path,
        metavar="FILE.svg",
        help="draw the training, and in FILE-pictures.png held-out pictures with their boxes",
    )
    return parsed(parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
