# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What a study is given: its options, and how to load, time, count, record and show."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import torch
from torch import Tensor

from . import clocks as timing
from .clocks import Call, Calls, Effort, Samples
from .results import OWN, Results, Row, summary

if TYPE_CHECKING:
    from rich.console import Console  # which tests that import a study may lack

THOROUGH, QUICK = Effort(0.5, 5), Effort(0.02, 3)
HOST_CLOCKS = {name: getattr(timing, f"{name}_samples") for name in ("wall", "stream", "host")}
CALLS_IN_TRACE = 10
SEPARATOR = "\n\n"  # of reasons
# By the names that runner.counts gives them.
COUNTS = {
    "kernels": ("kernels", ""),
    "launches": ("launches", ""),
    "waits": ("waits", ""),
    "busy_microseconds": ("busy", "µs"),
    "peak_bytes": ("peak", "bytes"),
}
PASSES = FORWARD, BOTH = ("forward", "forward + backward")

Values = Sequence[float] | float
Case = TypeVar("Case")
Loaded = TypeVar("Loaded")


class UnavailableError(Exception):
    """Says why a variant cannot run here."""


@dataclass(frozen=True)
class Variant(Generic[Case, Loaded]):
    load: Callable[[Case], Loaded]  # raises UnavailableError
    slow_to_start: bool = False  # left out by --quick
    implementation: str | None = None  # of boxloss, where not the device's best

    def chosen(self) -> AbstractContextManager[None]:
        """For forward and backward: the latter asks for the implementation at its own time."""
        if self.implementation is None:
            return nullcontext()
        from boxloss.torch import use_implementation  # not before: compare_builds has two builds

        return use_implementation(self.implementation)

    def choosing(self, call: Call) -> Call:
        """The same call, by this implementation."""
        if self.implementation is None:
            return call

        def chosen() -> object:
            with self.chosen():
                return call()

        return chosen


class Run:
    def __init__(self, options: argparse.Namespace, results: Results, about: dict[str, Any]):
        """`about` has command, commit and machine."""
        self.options = options
        self.device: torch.device = options.device
        self.on_gpu = self.device.type == "cuda"
        self.quick: bool = options.quick
        self.effort = QUICK if self.quick else THOROUGH
        self.console = open_console()
        self.skipped: dict[str, str] = {}
        self.results = results
        self._json: Path | None = options.json
        results.runs.append({**about, "skipped": self.skipped})

    # --- Before timing ---

    def each(self, cases: Mapping[str, Callable[[], Case]]) -> Iterator[Case]:
        """One after the other, since the largest fill a GPU; says how far it is. Those that --cases
        names, if the study has CASES: what is before a comma, or all of it."""
        asked = getattr(self.options, "cases", None)
        chosen = {
            name: load
            for name, load in cases.items()
            if asked is None or name in asked or name.partition(",")[0] in asked
        }
        for place, (name, load) in enumerate(chosen.items(), 1):
            self.say(f"\n[bold]{name}[/] ({place} of {len(chosen)})")
            torch.compiler.reset()  # past a few shapes torch.compile would quietly run eagerly
            yield load()

    def load(self, variants: Mapping[str, Variant[Case, Loaded]], case: Case) -> dict[str, Loaded]:
        """Those that can run here."""
        available = {}
        for name, variant in variants.items():
            try:
                if variant.slow_to_start and self.quick:
                    raise UnavailableError("compiling takes longer than all else with --quick")
                available[name] = variant.load(case)
            except UnavailableError as reason:
                self.skip(name, str(reason))
        return available

    def skip(self, name: str, reason: str) -> None:
        from rich.markup import escape  # a traceback has brackets

        known = self.skipped.get(name, "")
        if reason not in known.split(SEPARATOR):  # once is loud enough
            self.say(f"[yellow]skipped {name}[/]: {escape(reason)}")
            self.skipped[name] = f"{known}{SEPARATOR}{reason}" if known else reason
            self._write()

    def say(self, text: str) -> None:
        self.console.print(text)

    # --- Measuring ---

    def time(
        self, columns: Row, calls: Calls, clocks: Sequence[str], captured: Calls | None = None
    ) -> None:
        """All calls side by side, by clocks of runner.clocks, "gpu" only where there is one;
        `captured` is what a CUDA graph can hold of the calls, by default all."""
        for clock in clocks:
            if clock == "gpu" and not self.on_gpu:
                continue
            for name, seconds in self._samples(clock, calls, captured).items():
                self._add(columns | {"variant": name}, clock, "µs", seconds, 1e6)
        self._write()
        self.show(columns)

    def _samples(self, clock: str, calls: Calls, captured: Calls | None) -> Samples:
        if clock != "gpu":
            return HOST_CLOCKS[clock](calls, self.device, self.effort)
        samples, refused = timing.gpu_samples(calls if captured is None else captured, self.effort)
        for name, reason in refused.items():
            self.skip(f"{name}, GPU time", reason)
        return samples

    def time_passes(
        self,
        columns: Row,
        losses: Mapping[str, Callable[[], Tensor]],
        leaf: Tensor,
        clocks: Sequence[str],
        limits: Callable[[str], Calls] = lambda _: {},
        moved: Mapping[str, int] | None = None,
        variants: Mapping[str, Variant[Any, Any]] = MappingProxyType({}),
    ) -> None:
        """`time` for each of PASSES, of losses whose gradient goes to `leaf`. `limits(pass)` are
        calls of the hardware's, `moved[pass]` the least bytes, `variants` what losses are of."""
        for each in PASSES:
            calls: Calls = {}
            captured: Calls = {}
            for name, loss in losses.items():
                variant = variants.get(name, Variant(lambda _: None))
                # A graph returns the gradient: it cannot give it to a leaf anew at each call.
                both = partial(backward, leaf, loss), partial(gradient, leaf, loss)
                both = (loss, loss) if each == FORWARD else both
                calls[name], captured[name] = map(variant.choosing, both)
            beside = limits(each)
            about = columns | {"pass": each} | ({"bytes": moved[each]} if moved else {})
            with torch.set_grad_enabled(each == BOTH):
                self.time(about, calls | beside, clocks, captured | beside)
        leaf.grad = None

    def record(self, columns: Row, quantity: str, unit: str, values: Values) -> None:
        """Adds a row, and writes all rows so far: a long run that is cut short keeps them."""
        self._add(columns, quantity, unit, values)
        self._write()

    def _add(
        self, columns: Row, quantity: str, unit: str, values: Values, scale: float = 1
    ) -> None:
        samples = [float(values)] if isinstance(values, int | float) else list(values)
        about = {"quantity": quantity, "unit": unit, "run": len(self.results.runs) - 1}
        self.results.add(columns | about | summary(samples, scale))

    def _write(self) -> None:
        if self._json:
            self.results.write(self._json)

    def count(self, columns: Row, calls: Calls, in_trace: int = CALLS_IN_TRACE) -> None:
        """What a call asks of the GPU, of `in_trace` calls; after all times, since a profiler that
        has run may slow down every launch after it."""
        from .counts import counts

        for name, call in calls.items():
            try:
                for quantity, value in counts(call, in_trace).items():
                    self._add(columns | {"variant": name}, *COUNTS[quantity], value)
            except UnavailableError as reason:
                self.skip(f"{name}, counts", str(reason))
        self._write()
        self.show(columns)

    def time_and_count(
        self,
        cases: Mapping[str, Callable[[], Any]],
        agreed: Callable[[Any], Calls],
        clocks: Sequence[str] = ("stream",),
    ) -> None:
        """Of cases that have `columns`, the calls that run and agree."""
        for case in self.each(cases):
            if calls := agreed(case):
                self.time(case.columns, calls, clocks)
        for case in self.each(cases if self.on_gpu else {}):
            self.count(case.columns, agreed(case))

    def show(
        self,
        columns: Row,
        variants: Sequence[str] | None = None,
        ratios: Sequence[str] | None = None,
    ) -> None:
        """Prints the rows that have these columns and no others, a variant in each line, with
        `ratios` to the first variant for these quantities, by default for all."""
        from .tables import table

        chosen = [
            row
            for row in self.results.rows
            if columns.items() <= row.items()
            and row.keys() <= columns.keys() | {*OWN, "run"}
            and (variants is None or row["variant"] in variants)
        ]
        self.console.print(table(chosen, columns, ratios))


def compile_now(call: Call) -> None:
    """By a first call of what torch.compile gave; UnavailableError if it fails."""
    try:
        call()
    except RuntimeError as error:
        raise UnavailableError(f"cannot be compiled: {str(error).splitlines()[0]}") from error


def backward(leaf: Tensor, loss: Callable[[], Tensor]) -> None:
    """As training does it, into the leaf's grad."""
    leaf.grad = None
    loss().backward()


def gradient(leaf: Tensor, loss: Callable[[], Tensor]) -> Tensor:
    (result,) = torch.autograd.grad(loss(), leaf)
    return result


def open_console() -> Console:
    from rich.console import Console

    # Without a terminal rich assumes 80 columns, which the tables exceed.
    return Console(highlight=False, width=None if sys.stdout.isatty() else 120)
