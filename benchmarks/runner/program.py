# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The one program of all studies: from the arguments to the files.

A study is a module of benchmarks.studies. The first line of its docstring is its question; its
`measure(run)` does the work, and returns False for an exit status of 1. It may also have
`CASES` that --cases chooses from, `add_options(parser)`, `check_options(parser, options)`,
`DEVICES` that it runs on, by default both, and `PICTURES`: by name, what draws a figure, or None
where there is nothing to draw, from a frame of rows and the machine.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import TYPE_CHECKING

from .results import Results, read_results

if TYPE_CHECKING:
    import torch

BENCHMARKS = Path(__file__).resolve().parent.parent


def main(arguments: list[str]) -> int:
    found = studies()
    if arguments[:1] == ["--list"]:
        for name in found:
            print(f"{name:<18} {question(load(name))}")
        return 0
    if arguments[:1] == ["all"]:
        from .everything import main as run_everything

        return run_everything(arguments[1:])
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", epilog="python -m benchmarks STUDY --help has its options"
    )
    parser.add_argument("--list", action="store_true", help="all studies, and their questions")
    parser.add_argument("study", choices=found, metavar="STUDY", help=", ".join(found))
    name = parser.parse_args(arguments[:1]).study
    return run_study(name, arguments[1:])


def studies() -> list[str]:
    return [each.name for each in iter_modules([str(BENCHMARKS / "studies")])]


def load(name: str) -> ModuleType:
    return import_module(f"benchmarks.studies.{name}")


def question(study: ModuleType) -> str:
    return (study.__doc__ or "").partition("\n")[0]


def run_study(name: str, arguments: list[str]) -> int:
    from .agreement import DisagreementError
    from .machine import describe
    from .run import Run

    study = load(name)
    options = parse(name, study, arguments)
    if options.redraw:
        draw(study, read_results(options.redraw), options.redraw.parent)
        return 0
    results = Results(name)
    if options.json and options.json.exists():
        results = read_results(options.json)
    if options.add:
        for file in options.add:
            results.merge(read_results(file))
        results.write(options.json)
        return 0
    machine = describe(options.device)
    about = {
        "command": shlex.join(["python", "-m", "benchmarks", name, *arguments]),
        "commit": commit(),
        "machine": machine,
    }
    run = Run(options, results, about)
    run.say(f"[bold]{question(study)}[/]")
    installed = (f"{key} {each}" for key, each in machine.items() if each != "not installed")
    run.say("; ".join(installed).replace("gpu ", "").replace("cpu ", "", 1))
    try:
        succeeded = study.measure(run)
    except DisagreementError as error:
        print(f"{name}: error: {error}", file=sys.stderr)
        return 1
    if options.json and run.skipped:  # perhaps since the last row
        results.write(options.json)
    if options.pictures:
        draw(study, results, options.pictures)
    return 1 if succeeded is False else 0


def parse(name: str, study: ModuleType, arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks {name}",
        description=study.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--device", help="cpu, cuda or cuda:N; default: cuda where there is one")
    parser.add_argument("--quick", action="store_true", help="small and short, in seconds")
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="write what is measured; a file that is there gets one more run",
    )
    parser.add_argument(
        "--add",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="measure nothing, add the runs of these files to that of --json",
    )
    if hasattr(study, "PICTURES"):
        parser.add_argument("--pictures", type=Path, metavar="DIR", help="draw them there")
        parser.add_argument(
            "--redraw", type=Path, metavar="FILE", help="measure nothing, draw pictures beside it"
        )
    if hasattr(study, "CASES"):
        parser.add_argument(
            "--cases", nargs="+", choices=study.CASES, metavar="CASE", help=", ".join(study.CASES)
        )
    if hasattr(study, "add_options"):
        study.add_options(parser)
    parser.set_defaults(pictures=None, redraw=None)
    options = parser.parse_args(arguments)
    if options.add and not options.json:
        parser.error("--add needs --json")
    for file in filter(None, (options.redraw, *options.add)):
        if not file.exists():
            parser.error(f"{'--add' if options.add else '--redraw'}: there is no file '{file}'")
    for file in filter(None, (options.json, options.redraw, *options.add)):
        if file.exists() and (of := study_of(file)) != name:
            parser.error(f"'{file}' has the results of {of}, not of {name}")
    # Before anything is measured: a path that nothing can be written to would lose it all.
    folders = {"--json": options.json and options.json.parent, "--pictures": options.pictures}
    for option, folder in folders.items():
        if folder and not folder.is_dir():
            parser.error(f"{option}: there is no directory '{folder}'")
    if options.redraw or options.add:  # which need no device
        return options
    options.device = chosen_device(parser, options.device, getattr(study, "DEVICES", ()))
    if hasattr(study, "check_options"):
        study.check_options(parser, options)
    return options


def study_of(file: Path) -> str:
    try:
        return read_results(file).study
    except (KeyError, TypeError, ValueError):
        return "no study"


def chosen_device(
    parser: argparse.ArgumentParser, asked: str | None, of_study: tuple[str, ...]
) -> torch.device:
    import torch

    gpus = torch.cuda.device_count()
    there = ["cpu", *(["cuda"] if gpus else []), *(f"cuda:{i}" for i in range(gpus))]
    allowed = [each for each in there if not of_study or each.partition(":")[0] in of_study]
    seen = f"PyTorch {torch.__version__} sees {gpus or 'no'} GPU{'' if gpus == 1 else 's'}"
    if not allowed:
        parser.error(f"needs {' or '.join(of_study)} ({seen})")
    name = asked or ("cuda" if "cuda" in allowed else allowed[0])
    if name not in allowed:
        parser.error(f"--device: '{name}' given; allowed here: {', '.join(allowed)} ({seen})")
    if name == "cuda":
        name = f"cuda:{torch.cuda.current_device()}"
    device = torch.device(name)
    if device.type == "cuda":
        torch.cuda.set_device(device)  # events, graphs and Triton work on the current one
    return device


def commit() -> str:
    """Of the sources, with a + if they were changed. For a copy that lacks its git, or has another,
    COMMIT says it, where that is set."""
    if "COMMIT" in os.environ:
        return os.environ["COMMIT"]
    command = ["git", "-C", str(BENCHMARKS), "describe", "--always", "--abbrev=12", "--dirty=+"]
    described = subprocess.run(
        [*command, "--exclude=*"], capture_output=True, text=True, check=False
    )
    return described.stdout.strip() or "unknown"


def draw(study: ModuleType, results: Results, folder: Path) -> None:
    from .pictures import save_figure

    if not results.rows:  # all was skipped
        return
    for name, make in getattr(study, "PICTURES", {}).items():
        figure = make(results.frame(), results.machine)
        if figure is not None:
            path = folder / f"{name}.svg"
            save_figure(figure, path)
            print(path)
