# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Trains the toy detector and times each part of a step: the network, and the loss of each variant.

In a step all variants have the same predictions to compute the loss of, one after the other in an
order that is drawn anew, so that none of them always comes first or after the slowest.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile, record_function, tensorboard_trace_handler
from torch.utils.data import DataLoader, Subset

from ..common.losses import Loss, masked_loss
from ..common.timing import wait
from .data import Pictures, Sample
from .model import FaceDetector, Scale
from .variants import CollateBoxes, Targets, Variant, padded_with_lengths

NETWORK = ("copy of pictures", "forward", "update")
COLLATE = "collate"  # the true boxes: the data loader's work, which no step waits for
PARTS = ("copy", "loss", "backward")  # of the boxes and their loss, by each variant
WARM_UP = 3  # steps whose times are not counted
PROFILED = {"wait": 5, "warmup": 5, "active": 10}  # the article's schedule
HELD_OUT_BATCHES = 4
SHOWN = 6  # held-out pictures

Milliseconds = dict[str, list[float]]  # of each part, step by step
Batch = tuple[Tensor, dict[CollateBoxes, tuple[Targets, float]]]


@dataclass(frozen=True)
class Shown:
    """A held-out picture, its true boxes, and the prediction that is paired with each."""

    picture: Tensor
    boxes: Tensor
    predictions: Tensor


@dataclass(frozen=True)
class Result:
    network: Milliseconds
    variants: dict[str, Milliseconds]
    losses: list[float]  # of each training step
    largest_difference: float  # between two variants' losses in a step
    held_out_loss: float
    shown: list[Shown]  # the first that have a true box

    @property
    def held_out_mean_giou(self) -> float:
        return 1 - self.held_out_loss

    def together(self, name: str) -> list[float]:
        """What a step takes for the sake of the loss, ms."""
        return _sums(self.variants[name][part] for part in PARTS)

    def network_together(self) -> list[float]:
        return _sums(self.network.values())

    def step(self, name: str) -> list[float]:
        return _sums([self.together(name), self.network_together()])


def _sums(parts: Iterable[list[float]]) -> list[float]:
    """Step by step."""
    return [sum(each) for each in zip(*parts, strict=True)]


class Stopwatch:
    """Times named parts, fenced so that each pays for its own work on a GPU, and names them in a
    profile."""

    def __init__(self, device: torch.device) -> None:
        self._times: dict[tuple[str, str], list[float]] = defaultdict(list)
        self._device = device

    @contextmanager
    def __call__(self, whose: str, part: str) -> Iterator[None]:
        with record_function(f"{whose}: {part}"):
            wait(self._device)
            start = time.perf_counter()
            yield
            wait(self._device)
            self.note(whose, part, (time.perf_counter() - start) * 1e3)

    def note(self, whose: str, part: str, milliseconds: float) -> None:
        """What was timed elsewhere."""
        self._times[whose, part].append(milliseconds)

    def milliseconds(self, whose: str, parts: Collection[str]) -> Milliseconds:
        return {part: self._times[whose, part][WARM_UP:] for part in parts}


def collate(samples: list[Sample], layouts: Collection[CollateBoxes], slots: int) -> Batch:
    """Pictures, and for each layout the true boxes and the milliseconds that it took to lay them
    out."""
    images, boxes = zip(*samples, strict=True)
    laid_out = {}
    for layout in layouts:
        start = time.perf_counter()
        targets = layout(list(boxes), slots)
        laid_out[layout] = targets, (time.perf_counter() - start) * 1e3
    return torch.stack(images), laid_out


def batches(
    pictures: Pictures,
    scale: Scale,
    layouts: Collection[CollateBoxes],
    count: int,
    device: torch.device,
) -> DataLoader[Any]:
    """The first `count` batches, each as from `collate`."""
    return DataLoader(
        Subset(pictures, range(count * scale.batch)),
        batch_size=scale.batch,
        num_workers=scale.workers,
        # JAX's threads do not survive a fork.
        multiprocessing_context="forkserver" if scale.workers else None,
        worker_init_fn=_share_by_name,
        pin_memory=device.type == "cuda",
        collate_fn=partial(collate, layouts=layouts, slots=scale.slots),
    )


def _share_by_name(worker: int) -> None:
    """Or each of a thousand small tensors would be an open file."""
    torch.multiprocessing.set_sharing_strategy("file_system")


def train(
    model: FaceDetector,
    variants: Mapping[str, Variant],
    losses: Mapping[str, Loss],
    scale: Scale,
    data: tuple[Pictures, Pictures],
    *,
    device: torch.device,
    steps: int,
    seed: int,
    trace: Path | None,
    on_step: Callable[[], None],
) -> Result:
    """Trains from the seed's initial weights on the first batches of `data`'s first part, then
    measures on its second."""
    model.initialise(seed)
    optimiser = torch.optim.Adam(model.parameters(), lr=scale.learning_rate, fused=True)
    predict = torch.compile(model) if scale.compiled else model
    autocast = torch.autocast(
        device.type, torch.bfloat16, enabled=scale.predictions is torch.bfloat16
    )
    train_set, test_set = data
    layouts = {variants[name].collate for name in losses}
    order = random.Random(seed)
    clock = Stopwatch(device)
    history, differences = [], []
    with _profiler(trace) if trace else nullcontext() as profiler:
        for images, laid_out in batches(train_set, scale, layouts, steps, device):
            with clock("network", "copy of pictures"):
                images = images.to(device, non_blocking=True)
            with clock("network", "forward"), autocast:
                pred = predict(images)
            values = []
            for name in order.sample(list(losses), len(losses)):
                # The loss's own backward ends at the predictions; the model's goes on from there.
                leaf = pred.detach().requires_grad_()
                on_host, milliseconds = laid_out[variants[name].collate]
                clock.note(name, COLLATE, milliseconds)
                with clock(name, "copy"):
                    targets = [each.to(device, non_blocking=True) for each in on_host]
                with variants[name].chosen():
                    with clock(name, "loss"):
                        value = losses[name](leaf, *targets)
                    with clock(name, "backward"):
                        value.backward()
                        value = value.detach()  # what is left of the graph is freed on its own time
                values.append(value.item())
                del targets
            with clock("network", "update"):
                optimiser.zero_grad(set_to_none=True)
                pred.backward(leaf.grad)  # of whichever variant came last: they agree
                optimiser.step()
            history.append(values[-1])
            differences.append(max(values) - min(values))
            if profiler:
                profiler.step()
            on_step()
    return Result(
        clock.milliseconds("network", NETWORK),
        {name: clock.milliseconds(name, (COLLATE, *PARTS)) for name in losses},
        history,
        max(differences),
        *_held_out(model, test_set, scale, device, autocast),
    )


def _profiler(directory: Path) -> profile:
    activities = [ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(ProfilerActivity.CUDA)
    return profile(
        activities=activities,
        schedule=torch.profiler.schedule(**PROFILED, repeat=1),
        on_trace_ready=tensorboard_trace_handler(str(directory)),
    )


@torch.no_grad()
def _held_out(
    model: FaceDetector,
    pictures: Pictures,
    scale: Scale,
    device: torch.device,
    autocast: torch.autocast,
) -> tuple[float, list[Shown]]:
    """Mean over all true boxes of the held-out batches, and the first pictures that have any."""
    total, count = 0.0, 0
    shown: list[Shown] = []
    layouts = [padded_with_lengths]
    for images, laid_out in batches(pictures, scale, layouts, HELD_OUT_BATCHES, device):
        on_host, _ = laid_out[padded_with_lengths]
        target, lengths = (each.to(device) for each in on_host)
        with autocast:
            pred = model(images.to(device))
        boxes = int(lengths.sum())
        total += masked_loss(pred, target, lengths).item() * boxes
        count += boxes
        for index, length in enumerate(lengths.tolist()):
            if length and len(shown) < SHOWN:
                truths, guesses = target[index, :length], pred[index, :length]
                shown.append(Shown(images[index], truths.cpu(), guesses.float().cpu()))
    return total / max(count, 1), shown
