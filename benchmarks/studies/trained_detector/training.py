# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Trains a detector with one variant of the loss, and keeps the time.

The clock runs while steps run. It stands still while batches are laid out, as data loader workers
would do meanwhile, and while the detector is judged. A batch is a function of the step alone: every
variant sees the same.
"""

from __future__ import annotations

import copy
import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.optim.swa_utils import get_ema_multi_avg_fn

from ...common.losses import Loss
from ...runner.clocks import wait
from .model import CELLS, CellDetector, Scale
from .pictures import Assigned, DrawnPictures
from .quality import SURE, Quality, detect, quality

SEED = 0
BOX_WEIGHT = 2  # of the box loss, beside the objectness
WEIGHT_DECAY = 0.05
RISING = 0.15  # the part of the steps in which the learning rate rises; then it falls
KEPT = 0.98  # of the averaged weights, in each step; they are judged, and less restless
WARM_UP = 3  # steps of a detector that is thrown away: they load kernels and choose algorithms
SHOWN = 6  # held-out pictures
GUESSES = 3  # shown where the detector is sure of nothing

update_average = get_ema_multi_avg_fn(KEPT)

Detections = list[list[float]]  # x1, y1, x2, y2 and score


Targets = tuple[Tensor | list[int], ...]  # tensors go to the device, lists stay on the host
LayOut = Callable[[Sequence[Assigned]], Targets]

# What a data loader would hand over: which pictures, how they are changed, and their true boxes.
HAZE = (-0.4, 0.4)  # how much of another picture lies over it; below zero none
CONTRAST = (0.6, 1.8)
BRIGHTNESS = (-40, 40)  # gray values


def positions(pairs: Sequence[Assigned]) -> Tensor:
    """Each box's row among all predictions of the batch."""
    return torch.cat([cells + image * CELLS**2 for image, (_, cells) in enumerate(pairs)])


@dataclass(frozen=True)
class Batch:
    rows: Tensor  # (B): which pictures
    mirrored: Tensor  # (B) bool
    light: Tensor  # (3, B): HAZE, CONTRAST and BRIGHTNESS
    positives: Tensor  # the positions of cells with a face
    targets: Targets

    def each(self, change: Callable[[Tensor], Tensor]) -> Batch:
        """With all tensors changed, as by a copy to the device."""
        return Batch(
            change(self.rows),
            change(self.mirrored),
            change(self.light),
            change(self.positives),
            tuple(change(each) if isinstance(each, Tensor) else each for each in self.targets),
        )


def make_batch(
    assigned: Sequence[tuple[Assigned, Assigned]], lay_out: LayOut, size: int, step: int
) -> Batch:
    rng = np.random.default_rng((SEED, step))
    rows = rng.choice(len(assigned), size, replace=False)
    mirrored = rng.random(size) < 0.5
    light = [rng.uniform(low, high, size) for low, high in (HAZE, CONTRAST, BRIGHTNESS)]
    pairs = [assigned[row][int(flip)] for row, flip in zip(rows, mirrored, strict=True)]
    return Batch(
        torch.from_numpy(rows),
        torch.from_numpy(mirrored),
        torch.from_numpy(np.stack(light)).float(),
        positions(pairs),
        lay_out(pairs),
    )


def view(pictures: Tensor, batch: Batch) -> Tensor:
    """The batch's pictures as gray values, (B, 256, 256): some mirrored, each in its own light.

    There are few photographs to learn from, and a texture never seen would be taken for faces. So
    another picture lies over many, faintly and upside down.
    """
    haze, contrast, brightness = batch.light[:, :, None, None]
    chosen = pictures[batch.rows].float()
    hazy = chosen.lerp(chosen.roll(1, dims=0).flip(-2), haze.clamp(min=0))
    seen = torch.where(batch.mirrored[:, None, None], hazy.flip(-1), hazy)
    gray: Tensor = (seen - 128) * contrast + 128 + brightness
    return gray.clamp(0, 255)


@dataclass(frozen=True)
class Task:
    train: DrawnPictures
    assigned: list[tuple[Assigned, Assigned]]  # of train
    test: DrawnPictures

    @property
    def shown(self) -> list[int]:
        """The first held-out pictures with faces in the plural."""
        return [row for row, boxes in enumerate(self.test.boxes) if len(boxes) > 1][:SHOWN]


@dataclass
class Evaluation:
    """After a number of steps, of which the losses are the means since the evaluation before."""

    step: int
    seconds: float
    quality: Quality
    box_loss: float | None = None


@dataclass
class Training:
    evaluations: list[Evaluation] = field(default_factory=list)
    step_ms: list[float] = field(default_factory=list)
    loss_ms: list[float] = field(default_factory=list)  # of the box loss, forward and backward
    before: list[Detections] = field(default_factory=list)  # in Task.shown
    after: list[Detections] = field(default_factory=list)


class Trainer:
    def __init__(self, scale: Scale, loss: Loss, device: torch.device) -> None:
        torch.manual_seed(SEED)
        on_gpu = device.type == "cuda"
        self.model = CellDetector(scale)
        if on_gpu:
            self.model.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.autocast = torch.autocast(device.type, torch.bfloat16, enabled=on_gpu)
        self.optimiser = torch.optim.AdamW(
            self.model.parameters(), scale.learning_rate, weight_decay=WEIGHT_DECAY, fused=True
        )
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(
            self.optimiser, scale.learning_rate, scale.steps, pct_start=RISING
        )
        # AveragedModel would wait for the GPU in each step.
        self.average = copy.deepcopy(self.model)
        self._averaged, self._latest = _numbers(self.average), _numbers(self.model)
        self._loss = loss
        self._device = device

    def step(self, pictures: Tensor, batch: Batch, laps: Laps) -> Tensor:
        """The box loss."""
        laps.mark()
        batch = batch.each(lambda each: each.to(self._device, non_blocking=True))
        with self.autocast:
            logits, boxes = self.model(view(pictures, batch))
        # The loss's own backward ends at the boxes, so that it can be timed; the model's goes on.
        leaf = boxes.detach().requires_grad_()
        laps.mark()
        box_loss = self._loss(leaf, *batch.targets)
        box_loss.backward()
        box_loss = box_loss.detach()  # what is left of its graph is freed on its own time
        laps.mark()
        assert leaf.grad is not None
        faces = logits.new_zeros(logits.numel()).index_fill_(0, batch.positives, 1)
        objectness_loss = binary_cross_entropy_with_logits(
            logits.flatten(), faces, reduction="sum"
        ) / max(len(batch.positives), 1)
        self.optimiser.zero_grad()
        torch.autograd.backward([objectness_loss, boxes], [None, BOX_WEIGHT * leaf.grad])
        self.optimiser.step()
        self.schedule.step()
        update_average(self._averaged, self._latest, None)
        return box_loss


def _numbers(model: CellDetector) -> list[Tensor]:
    """Its parameters and running statistics, where they lie."""
    return [each for each in model.state_dict().values() if each.is_floating_point()]


class Laps:
    """Marks on the clock, three in each step, that nobody waits for."""

    def __init__(self, device: torch.device) -> None:
        self._on_gpu = device.type == "cuda"
        self._marks: list[Any] = []

    def mark(self) -> None:
        if self._on_gpu:
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            self._marks.append(event)
        else:
            self._marks.append(time.perf_counter())

    def milliseconds(self) -> tuple[list[float], list[float]]:
        """Of each step, and of its loss, once the last mark is reached."""
        starts, losses, ends = self._marks[::3], self._marks[1::3], self._marks[2::3]
        steps = [self._between(*each) for each in itertools.pairwise(starts)]
        return steps, [self._between(*each) for each in zip(losses, ends, strict=True)]

    def _between(self, start: Any, end: Any) -> float:
        milliseconds: float = start.elapsed_time(end) if self._on_gpu else (end - start) * 1e3
        return milliseconds


def train(scale: Scale, lay_out: LayOut, loss: Loss, task: Task, device: torch.device) -> Training:
    """From the seed's weights."""

    def batches(first: int, count: int) -> list[Batch]:
        made = [
            make_batch(task.assigned, lay_out, scale.batch, step)
            for step in range(first, first + count)
        ]
        return [each.each(Tensor.pin_memory) for each in made] if device.type == "cuda" else made

    discarded = Trainer(scale, loss, device)
    for batch in batches(0, WARM_UP):
        discarded.step(task.train.pictures, batch, Laps(device))

    trainer, training = Trainer(scale, loss, device), Training()
    training.before = _shown(trainer, task)
    training.evaluations.append(Evaluation(0, 0.0, _judge(trainer, task)))
    seconds = 0.0
    for done in range(0, scale.steps, scale.steps_between):
        prepared, laps = batches(done, scale.steps_between), Laps(device)
        losses = []
        wait(device)
        start = time.perf_counter()
        for batch in prepared:
            losses.append(trainer.step(task.train.pictures, batch, laps))
        laps.mark()
        wait(device)
        seconds += time.perf_counter() - start
        of_steps, of_losses = laps.milliseconds()
        training.step_ms += of_steps
        training.loss_ms += of_losses
        box_loss = torch.stack(losses).mean().item()
        found = _judge(trainer, task)
        training.evaluations.append(
            Evaluation(done + scale.steps_between, seconds, found, box_loss)
        )
    training.after = _shown(trainer, task)
    return training


def _judge(trainer: Trainer, task: Task) -> Quality:
    return quality(trainer.average, task.test, trainer.autocast)


def _shown(trainer: Trainer, task: Task) -> list[Detections]:
    """What the detector is sure of in the pictures that are shown, or else its best guesses."""
    boxes, scores = detect(trainer.average, task.test.pictures[task.shown], trainer.autocast)
    shown = []
    for picture in torch.cat([boxes, scores[..., None]], dim=-1):
        sure = picture[picture[:, -1] >= SURE]
        best = sure if len(sure) else picture[picture[:, -1] > 0][:GUESSES]
        shown.append([[round(each, 3) for each in row] for row in best.tolist()])
    return shown
