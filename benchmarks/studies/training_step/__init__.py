# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What does a whole training step of a real detector cost, with its own criterion and with boxloss?

Forward, criterion, backward and a step of AdamW, under autocast to bfloat16, of models of their
real size with random weights: DETRs of transformers, YOLO11m of Ultralytics, with an angle (obb)
and without, Faster R-CNN R50 of torchvision, RF-DETR-M. Images are noise and have as many
ground-truth boxes as COCO's, or, crowded, 100 each, or 60 masks. original has its own criterion,
boxloss what use_boxloss puts there; vectorized is that with plain torch in place of boxloss, where
the study `detectors` has it. compiled is the whole model by torch.compile, RF-DETR as its trainer
compiles it, with its criterion's compiled parts. A model is compiled once: to the crowded batch its
code comes from that with COCO's boxes, and the compiler makes what differs dynamic, as in training.
In graphs has fixed shapes for 100 boxes an image, with denoising queries for as many boxes as the
fullest image has, as without, and is compiled into CUDA graphs; captured has them, too, and is one
graph of the whole step, with the optimizer, that nothing compiles. In both, transformers' encoders
and checks ask for nothing that the host must wait for, and DETR's encoder has one dropout of two
less for it. AdamW is the fused one. no criterion has the means of all outputs in its place, so that
the original less that is the criterion's share; Faster R-CNN, which samples by its matching, cannot
go without.

A compiler that fails is tried again; what it said is recorded whole. A second pass counts what a
step asks for. A profiler may slow down what comes after it, so start the program anew for each
detector; and three times, so that figures are those of three runs. Needs transformers (with SciPy,
PIL), torchvision, ultralytics and rfdetr (with its extra "train"), each for its own.
"""

from __future__ import annotations

import argparse
import os
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from boxloss.torch.compat.stand_in import ImpossibleError, put_stand_ins
from torch import Tensor, nn

from ...runner.agreement import DisagreementError
from ...runner.run import Row, Run, UnavailableError, Variant
from .detectors import CLASSES, DETECTORS, MOST_BOXES, Batch, Detector, use_plain_torch

DEVICES = ("cuda",)
CASES = tuple(DETECTORS)
BOXES = ("COCO", "crowded")

# Ground truth of 16 images, as many on average as COCO's 7.3; smaller batches take the first.
COCO = (3, 1, 12, 7, 2, 20, 5, 0, 4, 9, 1, 15, 6, 2, 25, 5)

# Two compiled models share the code of their layers, which has a variant for each and each batch.
torch._dynamo.config.recompile_limit = 32
CALLS_IN_TRACE = 3

# --- Cases ---


@dataclass(frozen=True)
class Case:
    name: str
    boxes: str  # "COCO" or "crowded"
    run: Run
    compiled: dict[str, Step] = field(default_factory=dict)  # by variant, for other boxes

    @property
    def detector(self) -> Detector:
        return DETECTORS[self.name]

    @property
    def size(self) -> tuple[int, int]:
        return self.detector.quick if self.run.quick else self.detector.size

    @property
    def columns(self) -> Row:
        return {"case": self.name, "boxes": self.boxes, "images": self.size[0]}

    @property
    def counts(self) -> tuple[int, ...]:
        images, _ = self.size
        crowd = self.detector.crowd // (10 if self.run.quick else 1)
        return COCO[:images] if self.boxes == "COCO" else (crowd,) * images

    def model(self) -> nn.Module:
        torch.manual_seed(0)
        try:
            return self.detector.make(self.size[1]).to(self.run.device).train()
        except ImportError as error:
            raise UnavailableError(f"not installed ({error})") from error

    def batch(self, fixed: bool = False) -> Batch:
        """The same numbers on every device."""
        generator, device = torch.Generator().manual_seed(0), self.run.device
        (count, side), counts = self.size, self.counts
        images = torch.rand(count, 3, side, side, generator=generator).to(device)
        sides = 0.05 + 0.35 * torch.rand(sum(counts), 2, generator=generator)
        centres = 0.2 + 0.6 * torch.rand(sum(counts), 2, generator=generator)
        boxes = torch.cat((centres, sides), 1).to(device)
        labels = torch.randint(CLASSES, (sum(counts),), generator=generator).to(device)
        make = self.detector.fixed if fixed else self.detector.batch
        assert make is not None
        return make([*images], [*boxes.split(counts)], [*labels.split(counts)])


# --- Variants ---

Change = Callable[[Case, nn.Module], Any]
Call = Callable[[], Tensor]


class Step:
    """A training step, which gives its loss."""

    def __init__(
        self, case: Case, change: Change, compile: Callable[[nn.Module], Any] = lambda model: model
    ) -> None:
        model = case.model()
        change(case, model)
        self._optimizer = torch.optim.AdamW(
            model.parameters(), lr=1e-6, fused=True, capturable=True
        )
        self._model = compile(model)
        self._device = case.run.device.type

    def __call__(self, batch: Batch) -> Tensor:
        torch.manual_seed(0)  # of denoising queries
        return self._step(batch)

    def _step(self, batch: Batch, cache: bool = True) -> Tensor:
        self._optimizer.zero_grad()
        with torch.autocast(self._device, torch.bfloat16, cache_enabled=cache):
            loss = batch(self._model)
        loss.backward()
        self._optimizer.step()
        return loss.detach()


CHECKS = "TRANSFORMERS_DISABLE_TORCH_CHECK"


class FixedStep(Step):
    """Without transformers' checks of sizes, for which the host must wait."""

    def __call__(self, batch: Batch) -> Tensor:
        os.environ[CHECKS] = "1"
        try:
            return self.in_fixed_shapes(batch)
        finally:
            del os.environ[CHECKS]

    def in_fixed_shapes(self, batch: Batch) -> Tensor:
        return super().__call__(batch)


class CapturedStep(FixedStep):
    """All of it, with the optimizer, is one CUDA graph from the second call on."""

    _graph: torch.cuda.CUDAGraph | None = None

    def in_fixed_shapes(self, batch: Batch) -> Tensor:
        if self._graph is None:
            self._graph = torch.cuda.CUDAGraph()
            beside = torch.cuda.Stream()
            beside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(beside):
                for _ in range(3):
                    self._step(batch, cache=False)
            torch.cuda.current_stream().wait_stream(beside)
            with torch.cuda.graph(self._graph):
                self._loss = self._step(batch, cache=False)
        self._graph.replay()
        return self._loss


def as_it_is(case: Case, model: nn.Module) -> None:
    pass


def with_boxloss(case: Case, model: nn.Module) -> None:
    case.detector.use_boxloss(model)


def vectorized(case: Case, model: nn.Module) -> None:
    use_plain_torch(model, case.counts)


def without_criterion(case: Case, model: nn.Module) -> None:
    with_boxloss(case, model)
    try:
        with torch.autocast(case.run.device.type, torch.bfloat16):
            put_stand_ins(model, case.batch())
    except ImpossibleError as error:
        raise UnavailableError(error) from error


def load(case: Case, change: Change) -> Call:
    return partial(Step(case, change), case.batch())


def of_compiled(name: str, change: Change) -> Variant[Case, Call]:
    def load(case: Case) -> Call:
        return started(case, name, lambda: Step(case, change, case.detector.compile), case.batch())

    return Variant(load, slow_to_start=True)


def with_fixed_shapes(case: Case, model: nn.Module) -> None:
    if case.detector.fixed is None:
        raise UnavailableError(f"{case.name} is not tried in fixed shapes")
    most = min(MOST_BOXES, case.detector.crowd)
    case.detector.use_boxloss(model, max_boxes=most, denoising_boxes=max(case.counts))
    for each in model.modules():  # transformers' encoders ask in training what they must wait for
        if type(each).__name__.endswith("EncoderLayer"):
            each.training = False


def load_captured(case: Case) -> Call:
    step = partial(CapturedStep(case, with_fixed_shapes), case.batch(fixed=True))
    try:
        step()
    except RuntimeError as error:  # a network may copy what lies on the host
        raise UnavailableError(f"cannot be captured: {str(error).splitlines()[0]}") from error
    return step


def load_in_graphs(case: Case) -> Call:
    in_graphs = partial(torch.compile, mode="reduce-overhead")
    name = f"boxloss, in graphs, {case.boxes}"  # of other shapes
    return started(
        case, name, lambda: FixedStep(case, with_fixed_shapes, in_graphs), case.batch(fixed=True)
    )


def started(case: Case, name: str, make: Callable[[], Step], batch: Batch) -> Call:
    """The step for other boxes goes on with these. Where that, or a new one, cannot be compiled, it
    is tried once more, with nothing compiled before it."""
    failures = []
    for words in ("the first try", "the second"):
        try:
            step = case.compiled.pop(name, None) or make()
            step(batch)
        except UnavailableError:
            raise
        except Exception:  # a compiler fails with any
            told = traceback.format_exc()
            failures.append(f"{case.name}, {case.boxes}, {words} to compile it:\n{told}")
            torch.compiler.reset()
        else:
            if failures:
                case.run.skip(f"{name}, once", failures[0])
            case.compiled[name] = step
            return partial(step, batch)
    raise UnavailableError("\n".join(failures))


# The first is what ratios are taken to.
VARIANTS: dict[str, Variant[Case, Call]] = {
    "boxloss": Variant(partial(load, change=with_boxloss)),
    "original": Variant(partial(load, change=as_it_is)),
    "vectorized": Variant(partial(load, change=vectorized)),
    "no criterion": Variant(partial(load, change=without_criterion)),
    "boxloss, compiled": of_compiled("boxloss, compiled", with_boxloss),
    "original, compiled": of_compiled("original, compiled", as_it_is),
    "boxloss, captured": Variant(load_captured, True),
    "boxloss, in graphs": Variant(load_in_graphs, True),
}

# How far the first losses may be apart, relative: heads give bfloat16, in which the originals form
# corners, 2^-8 of a coordinate, and matches that are nearly equal may be others. A wrong weight, or
# a loss left out, is more.
APART = 0.03
AGREEING = ("boxloss", "vectorized")

# --- Measuring ---


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--boxes", nargs="+", choices=BOXES, default=[*BOXES])
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=[*VARIANTS])


def measure(run: Run) -> None:
    for cases in run.each({name: partial(cases_of, run, name) for name in DETECTORS}):
        timed = [(case, calls) for case in cases for calls in timed_calls(run, case)]
        for case, calls in timed if run.on_gpu else ():
            run.count(case.columns, dict(calls), CALLS_IN_TRACE)


def cases_of(run: Run, name: str) -> list[Case]:
    compiled: dict[str, Step] = {}
    return [Case(name, boxes, run, compiled) for boxes in run.options.boxes]


def timed_calls(run: Run, case: Case) -> Iterator[dict[str, Call]]:
    """First what needs no compiler: that may take long, or fail."""
    for is_slow in (False, True):
        chosen = {
            name: variant
            for name, variant in VARIANTS.items()
            if name in run.options.variants and variant.slow_to_start == is_slow
        }
        calls = run.load(chosen, case)
        check(case, calls)
        if calls:
            run.time(case.columns, dict(calls), ("stream",))
            yield calls


def check(case: Case, calls: Mapping[str, Call]) -> None:
    """DisagreementError, unless the first losses are the original's."""
    if "original" not in calls:
        return
    original = calls["original"]().item()
    for name in AGREEING:
        if name not in calls:
            continue
        loss = calls[name]().item()
        if not abs(loss - original) <= APART * abs(original):
            raise DisagreementError(
                f"{case.name}: the loss is {loss} with {name}, the original's is {original}"
            )


# --- The picture ---

DRAWN = ("RT-DETR-R50", "D-FINE-L", "RF-DETR-M", "YOLO11m")
BARS = {
    "original": "GREY",
    "original, compiled": "PALE",
    "vectorized": "PALE_BLUE",
    "boxloss": "BLUE",
    "boxloss, compiled": "DARK_BLUE",
}
IN_WORDS = {"COCO": "boxes as\nin COCO", "crowded": "100 boxes\nan image"}


def draw(frame: Any, machine: Mapping[str, str]) -> Any:
    """A column for each detector, a row for each kind of images."""
    from ...runner import pictures as drawing

    timed = drawing.pick(frame, quantity="stream", variant=[*BARS])
    names = [name for name in DRAWN if name in set(timed["case"])]
    if not names:
        return None
    bars = [name for name in BARS if name in set(timed["variant"])]
    size = (2 + 1.9 * len(names), 0.8 + 0.6 * len(bars))
    figure, panels = drawing.plt.subplots(
        len(BOXES), len(names), figsize=size, sharex="col", sharey=True, squeeze=False
    )
    for boxes, line in zip(BOXES, panels, strict=True):
        line[0].set_ylabel(IN_WORDS[boxes], fontsize=8)
        for name, panel in zip(names, line, strict=True):
            draw_steps(panel, drawing.pick(timed, case=name, boxes=boxes), bars)
    for name, panel in zip(names, panels[0], strict=True):
        panel.set_title(name, fontsize=9)
    figure.set_layout_engine("constrained")
    title = f"A whole training step, ms, whiskers are quartiles: {drawing.where(machine)}"
    drawing.title_figure(figure, title)
    return figure


def draw_steps(panel: Any, timed: Any, bars: list[str]) -> None:
    """Bars from zero; what was not measured has none."""
    from ...runner import pictures as drawing

    for row in timed.itertuples():
        middle, low, high = (each / 1000 for each in (row.median, row.low, row.high))
        place, spread = bars.index(row.variant), [[middle - low], [high - middle]]
        colour = getattr(drawing, BARS[row.variant])
        style = {"color": colour, "ecolor": drawing.DARK, "height": 0.68}
        drawn = panel.barh(place, middle, xerr=spread, **style)
        panel.bar_label(drawn, [drawing.number(middle)], padding=3, fontsize=8)
    panel.set_yticks(range(len(bars)), bars)
    panel.set_ylim(len(bars) - 0.5, -0.5)
    panel.margins(x=0.3)
    drawing.quiet_axes(panel)


PICTURES = {"training_step": draw}
