# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What the programs that time losses alone have in common: from the options to the files."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

import torch
from boxloss.torch import implementations
from rich.console import Console
from rich.table import Table

from .agreement import DisagreementError
from .groups import Group, document
from .losses import UnavailableError
from .machine import describe
from .output import check_paths, write_json
from .timing import Effort

THOROUGH, QUICK = Effort(0.5, 5), Effort(0.02, 3)

Case = TypeVar("Case", contravariant=True)
Loaded = TypeVar("Loaded", covariant=True)
Run = Callable[[argparse.Namespace, dict[str, str], Console], Iterator[Group]]


class Loadable(Protocol[Case, Loaded]):
    @property
    def slow_to_start(self) -> bool: ...  # left out by --quick
    @property
    def load(self) -> Callable[[Case], Loaded]: ...  # raises UnavailableError


def open_console(width: int = 120, soft_wrap: bool = False) -> Console:
    # Without a terminal rich assumes 80 columns, which the tables exceed.
    width_here = None if sys.stdout.isatty() else width
    return Console(highlight=False, width=width_here, soft_wrap=soft_wrap)


def begin(
    name: str, arguments: list[str], device: torch.device, console: Console
) -> tuple[str, dict[str, str]]:
    """The command and the machine, which is shown."""
    machine = describe(device)
    for key, value in machine.items():
        console.print(f"{key:>12}  {value}")
    return shlex.join(["python", "-m", f"benchmarks.{name}", *arguments]), machine


def carry_out(
    name: str,
    arguments: list[str],
    options: argparse.Namespace,
    run: Run,
    table: Callable[[Group], Table],
    beside: Mapping[str, Any] = MappingProxyType({}),
) -> list[Group] | None:
    """Shows and writes each group of `run` as soon as it is there; None if a loss is wrong. What
    `run` puts `beside` the groups is written, too."""
    console = open_console()
    command, machine = begin(name, arguments, options.device, console)
    skipped: dict[str, str] = {}
    groups: list[Group] = []
    try:
        for each in run(options, skipped, console):
            groups.append(each)
            console.print(table(each))
            if options.json:  # every time: a long run that is cut short keeps what it has
                write_json(options.json, document(command, machine, skipped, groups) | {**beside})
    except DisagreementError as error:
        print(f"{name}: error: {error}", file=sys.stderr)
        return None
    return groups


def load_available(
    peers: Mapping[str, Loadable[Case, Loaded]],
    case: Case,
    quick: bool,
    skipped: dict[str, str],
    console: Console,
) -> dict[str, Loaded]:
    """`skipped` collects who is not, and why."""
    available = {}
    for name, peer in peers.items():
        try:
            if peer.slow_to_start and quick:
                raise UnavailableError("compiling takes longer than all else with --quick")
            available[name] = peer.load(case)
        except UnavailableError as reason:
            if skipped.get(name) != str(reason):  # once is loud enough
                console.print(f"[yellow]skipped {name}[/]: {reason}")
            skipped[name] = str(reason)
    return available


def make_parser(
    name: str, description: str | None, any_device: bool = True
) -> argparse.ArgumentParser:
    """With the options that all have."""
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if any_device:
        parser.add_argument(
            "--device", help="cpu, cuda or cuda:N; default: cuda where there is one"
        )
    parser.add_argument("--quick", action="store_true", help="small and short, in seconds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    return parser


def parsed(parser: argparse.ArgumentParser, arguments: list[str]) -> argparse.Namespace:
    """With a device that there is, and paths that can be written to."""
    options = parser.parse_args(arguments)
    options.device = chosen_device(parser, options.device)
    check_paths(parser, options)
    return options


def add_implementations(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--implementations", nargs="+", default=[], help="of boxloss, timed beside the best one"
    )


def check_implementations(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    on_cpu = options.device.type == "cpu"
    known = [name for name in implementations() if (name[:4] == "cpu/") == on_cpu]
    for name in options.implementations:
        if name not in known:
            parser.error(f"--implementations: '{name}' given; allowed here: {', '.join(known)}")


def chosen_device(parser: argparse.ArgumentParser, asked: str | None) -> torch.device:
    gpus = torch.cuda.device_count()
    allowed = ["cpu", *(["cuda"] if gpus else []), *(f"cuda:{i}" for i in range(gpus))]
    name = asked or ("cuda" if gpus else "cpu")
    if name not in allowed:
        seen = f"PyTorch {torch.__version__} sees {gpus or 'no'} GPU{'' if gpus == 1 else 's'}"
        parser.error(f"--device: '{name}' given; allowed here: {', '.join(allowed)} ({seen})")
    if name == "cuda":
        name = f"cuda:{torch.cuda.current_device()}"
    device = torch.device(name)
    if device.type == "cuda":
        torch.cuda.set_device(device)  # events, graphs and Triton work on the current one
    return device
