# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Trains the toy detector with one variant of the loss, and times each part of a step."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile, record_function, tensorboard_trace_handler
from torch.utils.data import DataLoader, Subset

from ..common.losses import Loss, masked_loss
from .data import Pictures, Sample
from .model import FaceDetector, Scale
from .variants import CollateBoxes, Targets, Variant, padded_with_lengths

PARTS = ("copy", "forward", "loss", "loss backward", "update")
WARM_UP = 3  # steps whose times are not counted
PROFILED = {"wait": 5, "warmup": 5, "active": 10}  # the article's schedule
HELD_OUT_BATCHES = 4


@dataclass(frozen=True)
class Result:
    milliseconds: dict[str, float]  # median of each part
    losses: list[float]  # of each training step
    held_out_loss: float

    @property
    def loss_milliseconds(self) -> float:
        return self.milliseconds["loss"] + self.milliseconds["loss backward"]


class Stopwatch:
    """Times named parts, fenced so that each pays for its own work on a GPU, and names them in a
    profile."""

    def __init__(self, device: torch.device) -> None:
        self.milliseconds: dict[str, list[float]] = defaultdict(list)
        self._device = device

    @contextmanager
    def __call__(self, part: str) -> Iterator[None]:
        with record_function(part):
            self._wait()
            start = time.perf_counter()
            yield
            self._wait()
            self.milliseconds[part].append((time.perf_counter() - start) * 1e3)

    def _wait(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)

    def medians(self) -> dict[str, float]:
        return {
            part: statistics.median(times[WARM_UP:]) for part, times in self.milliseconds.items()
        }


def batches(
    pictures: Pictures, scale: Scale, collate_boxes: CollateBoxes, count: int, device: torch.device
) -> DataLoader[Any]:
    """The first `count` batches, with the true boxes laid out by a variant's collate function."""

    def collate(samples: list[Sample]) -> tuple[Tensor, Targets]:
        images, boxes = zip(*samples, strict=True)
        return torch.stack(images), collate_boxes(list(boxes), scale.slots)

    return DataLoader(
        Subset(pictures, range(count * scale.batch)),
        batch_size=scale.batch,
        num_workers=scale.workers,
        pin_memory=device.type == "cuda",
        collate_fn=collate,
    )


def train(
    model: FaceDetector,
    variant: Variant,
    loss: Loss,
    scale: Scale,
    data: tuple[Pictures, Pictures],
    *,
    device: torch.device,
    steps: int,
    seed: int,
    trace: tuple[Path, str] | None,
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
    clock = Stopwatch(device)
    losses = []
    with _profiler(trace) if trace else nullcontext() as profiler:
        for images, targets in batches(train_set, scale, variant.collate, steps, device):
            with clock("copy"):
                images = images.to(device, non_blocking=True)
                targets = tuple(t.to(device, non_blocking=True) for t in targets)
            with clock("forward"), autocast:
                pred = predict(images)
            # The loss's own backward ends at the predictions; the model's goes on from there.
            leaf = pred.detach().requires_grad_()
            with clock("loss"):
                value = loss(leaf, *targets)
            with clock("loss backward"):
                value.backward()
            with clock("update"):
                optimiser.zero_grad(set_to_none=True)
                pred.backward(leaf.grad)
                optimiser.step()
            losses.append(value.item())
            if profiler:
                profiler.step()
            on_step()
    held_out = _held_out_loss(model, test_set, scale, device, autocast)
    return Result(clock.medians(), losses, held_out)


def _profiler(trace: tuple[Path, str]) -> profile:
    directory, name = trace
    activities = [ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(ProfilerActivity.CUDA)
    return profile(
        activities=activities,
        schedule=torch.profiler.schedule(**PROFILED, repeat=1),
        on_trace_ready=tensorboard_trace_handler(str(directory), worker_name=name),
    )


@torch.no_grad()
def _held_out_loss(
    model: FaceDetector,
    pictures: Pictures,
    scale: Scale,
    device: torch.device,
    autocast: torch.autocast,
) -> float:
    """Mean over all true boxes of the held-out batches, the same way for every variant."""
    total, count = 0.0, 0
    for images, targets in batches(pictures, scale, padded_with_lengths, HELD_OUT_BATCHES, device):
        target, lengths = (t.to(device) for t in targets)
        with autocast:
            pred = model(images.to(device))
        boxes = int(lengths.sum())
        total += masked_loss(pred, target, lengths).item() * boxes
        count += boxes
    return total / max(count, 1)
