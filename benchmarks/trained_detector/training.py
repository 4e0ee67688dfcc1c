# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Trains a detector with one variant of the loss, and keeps the time.

The clock runs while steps run. It stands still while batches are laid out, as data loader workers
would do meanwhile, and while the detector is judged.
"""

from __future__ import annotations

import copy
import itertools
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.optim.swa_utils import get_ema_multi_avg_fn

from ..common.timing import wait
from .batches import Batch, make_batch, view
from .evaluation import SURE, detect, quality
from .model import CellDetector, Scale
from .pictures import Assigned, DrawnPictures
from .variants import Variant

BOX_WEIGHT = 2  # of the box loss, beside the objectness
WEIGHT_DECAY = 0.05
RISING = 0.15  # the part of the steps in which the learning rate rises; then it falls
KEPT = 0.98  # of the averaged weights, in each step; they are judged, and less restless
WARM_UP = 3  # steps of a detector that is thrown away: they load kernels and choose algorithms
SHOWN = 6  # held-out pictures
GUESSES = 3  # shown where the detector is sure of nothing

update_average = get_ema_multi_avg_fn(KEPT)

Detections = list[list[float]]  # x1, y1, x2, y2 and score


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
class Run:
    """What is known of a variant's training so far."""

    history: list[dict[str, float]] = field(default_factory=list)  # step, seconds and Quality
    box_losses: list[float] = field(default_factory=list)  # of each step
    objectness_losses: list[float] = field(default_factory=list)
    step_ms: list[float] = field(default_factory=list)
    loss_ms: list[float] = field(default_factory=list)  # of the box loss, forward and backward
    before: list[Detections] = field(default_factory=list)  # in Task.shown
    after: list[Detections] = field(default_factory=list)


class Trainer:
    def __init__(self, scale: Scale, variant: Variant, device: torch.device, seed: int) -> None:
        torch.manual_seed(seed)
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
        self._loss = variant.loss
        self._device = device

    def step(self, pictures: Tensor, batch: Batch, laps: Laps) -> tuple[Tensor, Tensor]:
        """The box loss and the objectness loss."""
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
        return box_loss, objectness_loss.detach()


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


def train(
    scale: Scale,
    variant: Variant,
    task: Task,
    device: torch.device,
    seed: int,
    checkpoint: Path | None,
    on_evaluation: Callable[[int], None],
) -> Run:
    """From the seed's weights, or from the checkpoint, which is written at each evaluation."""

    def batches(first: int, count: int) -> list[Batch]:
        made = [
            make_batch(task.assigned, variant.lay_out, scale.batch, seed, step)
            for step in range(first, first + count)
        ]
        return [each.each(Tensor.pin_memory) for each in made] if device.type == "cuda" else made

    discarded = Trainer(scale, variant, device, seed)
    for batch in batches(0, WARM_UP):
        discarded.step(task.train.pictures, batch, Laps(device))

    trainer, run = Trainer(scale, variant, device, seed), Run()
    if checkpoint and checkpoint.exists():
        run = _load(trainer, checkpoint, device)
    else:
        run.before = _shown(trainer, task)
        _judge(trainer, task, run, step=0, seconds=0.0)
    while (done := int(run.history[-1]["step"])) < scale.steps:
        prepared, laps = batches(done, scale.steps_between), Laps(device)
        losses = []
        wait(device)
        start = time.perf_counter()
        for batch in prepared:
            losses.append(torch.stack(trainer.step(task.train.pictures, batch, laps)))
        laps.mark()
        wait(device)
        seconds = run.history[-1]["seconds"] + time.perf_counter() - start
        _note(run, torch.stack(losses), laps)
        _judge(trainer, task, run, done + scale.steps_between, seconds)
        if checkpoint:
            _save(trainer, run, checkpoint)
        on_evaluation(done + scale.steps_between)
    run.after = _shown(trainer, task)
    return run


def _note(run: Run, losses: Tensor, laps: Laps) -> None:
    box, objectness = losses.t().tolist()
    run.box_losses += box
    run.objectness_losses += objectness
    of_steps, of_losses = laps.milliseconds()
    run.step_ms += of_steps
    run.loss_ms += of_losses


def _judge(trainer: Trainer, task: Task, run: Run, step: int, seconds: float) -> None:
    found = quality(trainer.average, task.test, trainer.autocast)
    run.history.append({"step": step, "seconds": seconds} | asdict(found))


def _shown(trainer: Trainer, task: Task) -> list[Detections]:
    """What the detector is sure of in the pictures that are shown, or else its best guesses."""
    boxes, scores = detect(trainer.average, task.test.pictures[task.shown], trainer.autocast)
    shown = []
    for picture in torch.cat([boxes, scores[..., None]], dim=-1):
        sure = picture[picture[:, -1] >= SURE]
        best = sure if len(sure) else picture[picture[:, -1] > 0][:GUESSES]
        shown.append([[round(each, 3) for each in row] for row in best.tolist()])
    return shown


def _save(trainer: Trainer, run: Run, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part")
    state = {
        "model": trainer.model.state_dict(),
        "average": trainer.average.state_dict(),
        "optimiser": trainer.optimiser.state_dict(),
        "schedule": trainer.schedule.state_dict(),
        "run": asdict(run),
    }
    torch.save(state, unfinished)
    unfinished.replace(path)  # at once: whoever stops it leaves the one or the other


def _load(trainer: Trainer, path: Path, device: torch.device) -> Run:
    state = torch.load(path, map_location=device, weights_only=True)
    trainer.model.load_state_dict(state["model"])
    trainer.average.load_state_dict(state["average"])
    trainer.optimiser.load_state_dict(state["optimiser"])
    trainer.schedule.load_state_dict(state["schedule"])
    return Run(**state["run"])
