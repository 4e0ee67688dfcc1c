# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Trains a toy face detector, and times each way to compute its loss in every step.

    python -m benchmarks.face_detector                  two CPU cores, half a minute
    python -m benchmarks.face_detector --scale seed     the article's size, a large GPU

Needs boxloss, scikit-image and rich; matplotlib for --plot.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from ..common.agreement import DisagreementError
from ..common.losses import Loss, UnavailableError
from ..common.machine import describe
from ..common.output import write_json
from ..common.program import add_implementations, check_implementations, open_console, parsed
from .agreement import check, probe_predictions
from .data import DATA, Pictures
from .model import SCALES, FaceDetector, Scale
from .plot import plot_pictures, plot_times
from .report import Report, conditions, document, times_table, training_line
from .training import PROFILED, WARM_UP, Result, train
from .variants import VARIANTS, Variant, label, with_implementations

QUESTION = """\
How long does a training step's loss take when every picture has a different number of boxes?
A small detector of faces is trained, and in each step every variant computes the same loss."""
MORE = """\
See more: --steps 500 predicts better, --variants mask torch.compile boxloss-lengths compiles, too,
--help has the rest. Whole detectors' losses, on a GPU as well: docs/detectors.md."""


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parse(arguments)
    console = open_console(100, soft_wrap=True)
    console.print(QUESTION, style="bold")
    scale = SCALES[options.scale]
    settings = {
        "data": options.data,
        "scale": options.scale,
        "device": str(options.device),
        "batch": scale.batch,
        "slots": scale.slots,
        "steps": options.steps,
        "seed": options.seed,
        "predictions": str(scale.predictions).removeprefix("torch."),
    }
    machine = describe(options.device)
    for line in conditions(machine, settings):
        console.print(f"  {line}")

    asked = {name: VARIANTS[name] for name in options.variants or VARIANTS}
    variants = with_implementations(asked, options.implementations)
    losses, skipped = load(variants, options)
    for reason, names in by_reason(skipped).items():
        console.print(f"[yellow]skipped {names}[/]: {reason}")

    make_pictures = DATA[options.data]
    train_set = make_pictures("train", options.seed, scale.slots - 1)
    test_set = make_pictures("test", options.seed, scale.slots - 1)
    try:
        agreed = agree(variants, losses, train_set, scale, options)
    except DisagreementError as error:
        print(f"face_detector: error: {error}", file=sys.stderr)
        return 1
    console.print(f"{len(agreed)} variants agree on one batch, in loss and gradient. Training ...")

    result = measure(variants, losses, (train_set, test_set), scale, options, console)
    command = shlex.join(["python", "-m", "benchmarks.face_detector", *arguments])
    report = Report(command, machine, settings, agreed, result, variants, skipped)
    console.print(times_table(report))
    console.print(training_line(report))
    if options.json:
        write_json(options.json, document(report))
        console.print(f"Figures: {options.json}")
    if options.plot:
        pictures = options.plot.with_name(f"{options.plot.stem}-pictures.png")
        plot_times(document(report), options.plot)
        plot_pictures(report, pictures)
        console.print(f"Times, drawn: {options.plot}")
        console.print(f"Held-out pictures with their boxes: {pictures}")
    console.print(MORE)
    return 0


def load(
    variants: dict[str, Variant], options: argparse.Namespace
) -> tuple[dict[str, Loss], dict[str, str]]:
    """Those that can run here, and why the others are skipped."""
    losses, skipped = {}, {}
    for name, variant in variants.items():
        try:
            if variant.gpu_only and options.device.type == "cpu":
                raise UnavailableError("it runs on GPUs only")
            if variant.slow_to_start and options.variants is None and options.scale == "small":
                raise UnavailableError(
                    "compiling takes longer than all else here; --variants NAME runs it"
                )
            losses[name] = variant.load()
        except UnavailableError as reason:
            skipped[name] = str(reason)
    return losses, skipped


def by_reason(skipped: dict[str, str]) -> dict[str, str]:
    """The names of those skipped, for each reason once."""
    reasons = dict.fromkeys(skipped.values())
    return {
        reason: ", ".join(label(name) for name, why in skipped.items() if why == reason)
        for reason in reasons
    }


def agree(
    variants: dict[str, Variant],
    losses: dict[str, Loss],
    pictures: Pictures,
    scale: Scale,
    options: argparse.Namespace,
) -> dict[str, float]:
    """Each variant's loss on the boxes of the first batch, or DisagreementError."""
    boxes = [pictures[index][1] for index in range(scale.batch)]
    pred = probe_predictions(boxes, scale.slots, scale.predictions, options.seed)
    pred = pred.to(options.device)
    agreed = {}
    for name, loss in losses.items():
        targets = variants[name].collate(boxes, scale.slots)
        targets = tuple(t.to(options.device) for t in targets)
        with variants[name].chosen():
            agreed[name] = check(name, loss, pred, targets, boxes)
    return agreed


def measure(
    variants: dict[str, Variant],
    losses: dict[str, Loss],
    data: tuple[Pictures, Pictures],
    scale: Scale,
    options: argparse.Namespace,
    console: Console,
) -> Result:
    with options.device:
        model = FaceDetector(scale)
    columns = BarColumn(), MofNCompleteColumn(), TextColumn("steps")
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task("", total=options.steps)
        return train(
            model,
            variants,
            losses,
            scale,
            data,
            device=options.device,
            steps=options.steps,
            seed=options.seed,
            trace=options.trace,
            on_step=lambda: progress.advance(task),
        )


def parse(arguments: list[str]) -> argparse.Namespace:
    summaries = "".join(f"\n  {name:<17}{v.summary}" for name, v in VARIANTS.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.face_detector",
        description=__doc__,
        epilog=f"variants:{summaries}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", choices=DATA, default="faces", help="default: faces")
    parser.add_argument(
        "--scale",
        choices=SCALES,
        default="small",
        help="seed is the article's size; default: small",
    )
    parser.add_argument("--device", help="cpu, cuda or cuda:N; default: cuda where there is one")
    parser.add_argument("--variants", nargs="+", metavar="NAME", help="listed below; default: all")
    add_implementations(parser)
    parser.add_argument("--steps", type=int, help=f"more than {WARM_UP}; default: the scale's")
    parser.add_argument("--seed", type=int, default=0, help="of data and weights; default: 0")
    parser.add_argument(
        "--trace",
        type=Path,
        metavar="DIR",
        help="write profiler traces for TensorBoard or Perfetto; times then include the profiler",
    )
    parser.add_argument(
        "--plot",
        type=Path,
        metavar="FILE.svg",
        help="draw the times, and in FILE-pictures.png held-out pictures with their boxes",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    options = parsed(parser, arguments)
    for name in options.variants or ():
        if name not in VARIANTS:
            parser.error(f"--variants: unknown variant '{name}'; allowed: {', '.join(VARIANTS)}")
    if options.steps is None:
        options.steps = SCALES[options.scale].steps
    fewest = sum(PROFILED.values()) if options.trace else WARM_UP + 1
    if options.steps < fewest:
        why = " with --trace" if options.trace else ""
        parser.error(f"--steps: {options.steps} given; at least {fewest} allowed{why}")
    if options.seed < 0:
        parser.error(f"--seed: {options.seed} given; 0 or more allowed")
    check_implementations(parser, options)
    return options


if __name__ == "__main__":
    sys.exit(main())
