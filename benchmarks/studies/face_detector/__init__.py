# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""How long does a training step's loss take when every picture has a different number of boxes?

A small detector of faces is trained, and in each step every variant computes the same loss of the
same predictions, one after the other in an order that is drawn anew: prediction k of a picture is
paired with its k-th ground-truth box, and the losses 1 - GIoU of all pairs are summed and divided
by their number. A variant lays out the ground-truth boxes of a batch, and computes the loss.

    python -m benchmarks face_detector                 two CPU cores, half a minute
    python -m benchmarks face_detector --scale seed    the article's size, for a large GPU

Needs scikit-image.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from boxloss.torch import collate_padded, collate_ragged, implementations
from torch import Tensor
from torch.utils.data import DataLoader, Subset

from ...common import losses as usual
from ...common.cases import boxloss_giou, near
from ...common.exact import mean_giou_truth
from ...common.losses import EPS, Loss, masked_loss
from ...runner import run as runner
from ...runner.agreement import Truth, compare
from ...runner.clocks import wait
from ...runner.run import Run
from .data import DATA, Pictures, Sample
from .model import SCALES, FaceDetector, Scale

SEED = 0
COLLATE = "collate"  # the ground-truth boxes: the data loader's work, which no step waits for
PARTS = ("copy", "loss", "backward")  # of the boxes and their loss, by each variant
TOGETHER, STEP = "together", "whole step"
NETWORK = ("copy of pictures", "forward", "update")
WARM_UP = 3  # steps whose times are not counted
HELD_OUT_BATCHES = 4

Targets = tuple[Tensor, ...]
CollateBoxes = Callable[[list[Tensor], int], Targets]  # (an (n, 4) tensor a picture, slots)
Samples = dict[tuple[str, str], list[float]]  # milliseconds, of whose which part

# --- Variants ---


def as_list(boxes: list[Tensor], slots: int) -> Targets:
    return tuple(boxes)


def padded(boxes: list[Tensor], slots: int) -> Targets:
    target, _ = collate_padded(boxes, slots)
    return (target,)


def padded_with_lengths(boxes: list[Tensor], slots: int) -> Targets:
    return tuple(collate_padded(boxes, slots))


def ragged(boxes: list[Tensor], slots: int) -> Targets:
    return tuple(collate_ragged(boxes))


@dataclass(frozen=True)
class Variant(runner.Variant[torch.device, Loss]):
    collate: CollateBoxes = padded_with_lengths


def concatenated_loss(pred: Tensor, *boxes: Tensor) -> Tensor:
    guesses = torch.cat([row[: len(truths)] for row, truths in zip(pred, boxes, strict=True)])
    truths = torch.cat(boxes)
    return (1 - usual.giou(guesses.float(), truths.float())).sum() / max(len(truths), 1)


def boxloss(layout: str) -> Loss:
    return boxloss_giou(layout, eps=EPS, eps_mode="clamp")


VARIANTS = {
    "mask": Variant(lambda _: masked_loss),  # the usual eager code
    "concat": Variant(lambda _: concatenated_loss, collate=as_list),
    "torchvision": Variant(lambda _: usual.load_torchvision()),
    "torch.compile": Variant(lambda _: usual.load_compiled(), slow_to_start=True),
    "jax.jit": Variant(lambda _: usual.installed("benchmarks.common.jax_loss").masked_loss, True),
    "Triton": Variant(partial(usual.load_triton, layout="lengths"), slow_to_start=True),
    "boxloss padded": Variant(lambda _: boxloss("padded"), collate=padded),
    "boxloss lengths": Variant(lambda _: boxloss("lengths")),
    "boxloss ragged": Variant(lambda _: boxloss("offsets"), collate=ragged),
    "loop": Variant(lambda _: usual.loop_loss, collate=as_list),
}


def with_implementations(
    variants: Mapping[str, Variant], names: Collection[str]
) -> dict[str, Variant]:
    """And those of boxloss once more, by each of the implementations, too."""
    return {**variants} | {
        name.replace("boxloss", implementation): replace(variant, implementation=implementation)
        for implementation in names
        for name, variant in variants.items()
        if name.startswith("boxloss")
    }


# --- Agreement: predictions near the ground-truth boxes, NaN in every slot without one ---


def probe(boxes: list[Tensor], slots: int, dtype: torch.dtype) -> Tensor:
    """(B, slots, 4): a jittered, well-ordered copy of each ground-truth box; NaN where there is
    none, so that a mask that leaks is found out."""
    pred = torch.full((len(boxes) * slots, 4), torch.nan)
    pred[rows_of(boxes, slots)] = near(torch.cat(boxes), torch.Generator().manual_seed(SEED))
    return pred.view(len(boxes), slots, 4).to(dtype)


def rows_of(boxes: list[Tensor], slots: int) -> Tensor:
    """Those of all predictions that have a ground-truth box."""
    return torch.cat([torch.arange(len(each)) + n * slots for n, each in enumerate(boxes)])


def truth(pred: Tensor, boxes: list[Tensor]) -> Truth:
    return mean_giou_truth(pred, rows_of(boxes, pred.shape[1]), torch.cat(boxes))


def check(
    name: str, variant: Variant, loss: Loss, pred: Tensor, boxes: list[Tensor], expected: Truth
) -> None:
    """DisagreementError, unless loss and gradient are right on these boxes."""
    leaf = pred.detach().clone().requires_grad_()
    targets = (each.to(pred.device) for each in variant.collate(boxes, pred.shape[1]))
    with variant.chosen():
        value = loss(leaf, *targets)
        value.backward()
    assert leaf.grad is not None
    compare(name, value, leaf.grad.cpu(), expected, f"{len(boxes)} pictures")


# --- Training, and the time of each part of a step ---


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", choices=DATA, default="faces", help="default: faces")
    parser.add_argument("--scale", choices=SCALES, default="small", help="default: small")
    parser.add_argument(
        "--implementations",
        nargs="+",
        default=[],
        choices=implementations(),
        metavar="NAME",
        help="of boxloss, timed beside the best one",
    )
    parser.add_argument("--steps", type=int, help=f"more than {WARM_UP}; default: the scale's")


def check_options(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if options.steps is None:
        options.steps = 6 if options.quick else SCALES[options.scale].steps
    if options.steps <= WARM_UP:
        parser.error(f"--steps: {options.steps} given; more than {WARM_UP} allowed")


def measure(run: Run) -> None:
    options, scale = run.options, SCALES[run.options.scale]
    variants = with_implementations(VARIANTS, options.implementations)
    if options.scale == "small":
        slow = [name for name, each in variants.items() if each.slow_to_start]
        run.skip(", ".join(slow), "compiling takes longer than all else here")
        variants = {name: each for name, each in variants.items() if name not in slow}
    losses = run.load(variants, run.device)
    make = DATA[options.data]
    train_set, test_set = (make(split, SEED, scale.slots - 1) for split in ("train", "test"))
    boxes = [train_set[index][1] for index in range(scale.batch)]
    pred = probe(boxes, scale.slots, scale.predictions)
    expected = truth(pred, boxes)
    for name, loss in losses.items():
        check(name, variants[name], loss, pred.to(run.device), boxes, expected)
    run.say(f"{len(losses)} variants agree on one batch, in loss and gradient. Training ...")

    trainer = Trainer(scale, run.device, options.steps)
    milliseconds = trainer.train(
        train_set, {name: (variants[name], losses[name]) for name in losses}
    )
    about = {"data": options.data, "pictures": scale.batch, "slots": scale.slots}
    network = (milliseconds["network", part] for part in NETWORK)
    of_network = [sum(parts) for parts in zip(*network, strict=True)]
    for name in losses:
        parts = {part: milliseconds[name, part] for part in PARTS}
        together = [sum(each) for each in zip(*parts.values(), strict=True)]
        step = [sum(each) for each in zip(together, of_network, strict=True)]
        of_collate = {COLLATE: milliseconds[name, COLLATE]}
        for part, samples in (of_collate | parts | {TOGETHER: together, STEP: step}).items():
            run.record(about | {"variant": name}, part, "ms", samples)
    run.show(about, variants=list(losses), ratios=(TOGETHER,))
    run.say(
        f"{COLLATE}: laying out the ground-truth boxes, which the data loader does meanwhile\n"
        f"{TOGETHER}: copy, loss and backward; its ratios are to the first variant's\n"
        f"{STEP}: that and the network's {statistics.median(of_network):.1f} ms\n"
        f"Trained: loss {trainer.history[0]:.3f} -> {trainer.history[-1]:.3f}, mean GIoU of "
        f"held-out pictures {trainer.held_out(test_set):.3f}; the variants' losses differ by "
        f"{trainer.largest_difference:.1g} at most in a step."
    )


class Stopwatch:
    """Times named parts, fenced so that each pays for its own work on a GPU."""

    def __init__(self, device: torch.device) -> None:
        self._times: Samples = defaultdict(list)
        self._device = device

    @contextmanager
    def __call__(self, whose: str, part: str) -> Iterator[None]:
        wait(self._device)
        start = time.perf_counter()
        yield
        wait(self._device)
        self.note(whose, part, (time.perf_counter() - start) * 1e3)

    def note(self, whose: str, part: str, milliseconds: float) -> None:
        """What was timed elsewhere."""
        self._times[whose, part].append(milliseconds)

    def milliseconds(self) -> Samples:
        return {key: each[WARM_UP:] for key, each in self._times.items()}


class Trainer:
    def __init__(self, scale: Scale, device: torch.device, steps: int) -> None:
        with device:
            self._model = FaceDetector(scale)
        self._model.initialise(SEED)
        self._scale, self._device, self._steps = scale, device, steps
        self._autocast = torch.autocast(
            device.type, torch.bfloat16, enabled=scale.predictions is torch.bfloat16
        )
        self.history: list[float] = []  # the loss of each step
        self.largest_difference = 0.0  # between two variants' losses in a step

    def train(self, pictures: Pictures, variants: Mapping[str, tuple[Variant, Loss]]) -> Samples:
        optimiser = torch.optim.Adam(
            self._model.parameters(), lr=self._scale.learning_rate, fused=True
        )
        predict = torch.compile(self._model) if self._scale.compiled else self._model
        layouts = {variant.collate for variant, _ in variants.values()}
        order, clock = random.Random(SEED), Stopwatch(self._device)
        for images, laid_out in self._batches(pictures, layouts, self._steps):
            with clock("network", "copy of pictures"):
                images = images.to(self._device, non_blocking=True)
            with clock("network", "forward"), self._autocast:
                pred = predict(images)
            values = []
            for name in order.sample(list(variants), len(variants)):
                variant, loss = variants[name]
                # The loss's own backward ends at the predictions; the model's goes on there.
                leaf = pred.detach().requires_grad_()
                on_host, milliseconds = laid_out[variant.collate]
                clock.note(name, COLLATE, milliseconds)
                with clock(name, "copy"):
                    targets = [each.to(self._device, non_blocking=True) for each in on_host]
                with variant.chosen():
                    with clock(name, "loss"):
                        value = loss(leaf, *targets)
                    with clock(name, "backward"):
                        value.backward()
                        value = value.detach()  # the graph's rest is freed on its own time
                values.append(value.item())
                del targets
            with clock("network", "update"):
                optimiser.zero_grad(set_to_none=True)
                pred.backward(leaf.grad)  # of whichever variant came last: they agree
                optimiser.step()
            self.history.append(values[-1])
            self.largest_difference = max(self.largest_difference, max(values) - min(values))
        return clock.milliseconds()

    @torch.no_grad()
    def held_out(self, pictures: Pictures) -> float:
        """The mean GIoU of all ground-truth boxes of the first held-out batches."""
        total, count = 0.0, 0
        for images, laid_out in self._batches(pictures, {padded_with_lengths}, HELD_OUT_BATCHES):
            target, lengths = (each.to(self._device) for each in laid_out[padded_with_lengths][0])
            with self._autocast:
                pred = self._model(images.to(self._device))
            boxes = int(lengths.sum())
            total += masked_loss(pred, target, lengths).item() * boxes
            count += boxes
        return 1 - total / max(count, 1)

    def _batches(
        self, pictures: Pictures, layouts: Collection[CollateBoxes], count: int
    ) -> DataLoader[Any]:
        """The first `count` batches, each as from `collate`."""
        scale = self._scale
        return DataLoader(
            Subset(pictures, range(count * scale.batch)),
            batch_size=scale.batch,
            num_workers=scale.workers,
            # JAX's threads do not survive a fork.
            multiprocessing_context="forkserver" if scale.workers else None,
            worker_init_fn=_share_by_name,
            pin_memory=self._device.type == "cuda",
            collate_fn=partial(collate, layouts=layouts, slots=scale.slots),
        )


def collate(
    samples: list[Sample], layouts: Collection[CollateBoxes], slots: int
) -> tuple[Tensor, dict[CollateBoxes, tuple[Targets, float]]]:
    """Pictures, and for each layout the ground-truth boxes and the milliseconds that it took to lay
    them out."""
    images, boxes = zip(*samples, strict=True)
    laid_out = {}
    for layout in layouts:
        start = time.perf_counter()
        targets = layout(list(boxes), slots)
        laid_out[layout] = targets, (time.perf_counter() - start) * 1e3
    return torch.stack(images), laid_out


def _share_by_name(worker: int) -> None:
    """Or each of a thousand small tensors would be an open file."""
    torch.multiprocessing.set_sharing_strategy("file_system")


# --- Picture ---

FAR = 5


def draw(frame: Any, machine: dict[str, str]) -> Any:
    """The loss alone, and the whole step. What takes FAR times as long as the first runs out of the
    picture, or the others' bars would all be alike."""
    from ...runner import pictures as drawing

    names = drawing.medians(frame, quantity=TOGETHER)
    figure, panels = drawing.plt.subplots(
        1, 2, sharey=True, figsize=(10, 1.5 + 0.34 * len(names)), layout="constrained"
    )
    titles = {
        TOGETHER: "copy of the boxes, loss and backward, ms",
        STEP: "the whole step, network and loss, ms",
    }
    for panel, (part, title) in zip(panels, titles.items(), strict=True):
        times = drawing.medians(frame, quantity=part)
        first = next(iter(times.values()))
        drawing.bars(panel, {name: times[name] for name in names}, longest=FAR * first)
        panel.set_title(title, fontsize=10, loc="left")
    first = frame.iloc[0]
    drawing.title_figure(
        figure,
        f"A training step with {first['pictures']:,} pictures of {first['slots']} predicted boxes: "
        f"{drawing.where(machine)}",
    )
    return figure


PICTURES = {"face_detector": draw}
