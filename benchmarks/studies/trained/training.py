# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""A plain training loop, and the test by pycocotools."""

from __future__ import annotations

import io
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from copy import deepcopy
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

from ...runner.clocks import wait
from .detectors import Detector
from .scenes import CLASSES, Scenes, batches

POINTS = 5  # of a training, at which it is tested
WARM_UP = 0.05  # of all steps
LOWEST_RATE = 0.01  # of the highest, at the end
TESTED_AT_ONCE = 64
COMPARED_BATCHES = 16

Change = Callable[[nn.Module], Any]


@dataclass(frozen=True)
class Way:
    change: Change  # of the criterion
    in_fixed_shapes: bool = False


@dataclass(frozen=True)
class Point:
    percent: int  # of all steps
    seconds: float  # of training alone
    loss: float  # mean since the point before, as the criterion sums it
    precision: dict[str, float]
    same_outputs: dict[str, float]  # mean loss by each of the compared criteria


def train(
    detector: Detector,
    way: Way,
    seed: int,
    train: Scenes,
    test: Scenes,
    compared: Mapping[str, Change],
) -> Iterator[Point]:
    device = train.pictures.device
    torch.manual_seed(seed)
    model = detector.make().to(device).train()
    way.change(model)
    make = detector.fixed if way.in_fixed_shapes else detector.batch
    torch.manual_seed(seed)  # of denoising queries
    decayed = [each for each in model.parameters() if each.ndim > 1]
    others = [each for each in model.parameters() if each.ndim <= 1]
    groups = [{"params": decayed}, {"params": others, "weight_decay": 0}]
    optimizer = torch.optim.AdamW(groups, detector.rate, weight_decay=detector.decay, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda at: rate(at / detector.steps))
    drawn = batches(train, detector.images, seed)
    seconds, steps = 0.0, detector.steps // POINTS
    for point in range(1, POINTS + 1):
        total = torch.zeros((), device=device)
        wait(device)
        start = time.perf_counter()
        for _ in range(steps):
            pictures, boxes, labels = next(drawn)
            with torch.autocast(device.type, torch.bfloat16):
                loss = make([*pictures], boxes, labels)(model)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), detector.clip)
            optimizer.step()
            schedule.step()
            total += loss.detach()
        wait(device)
        seconds += time.perf_counter() - start
        yield Point(
            100 * point // POINTS,
            seconds,
            (total / steps).item(),
            average_precision(detector, model, test),
            losses_of_same_outputs(
                detector, model, compared, batches(train, detector.images, seed)
            ),
        )


def rate(part: float) -> float:
    """A cosine, after a warm-up."""
    if part < WARM_UP:
        return part / WARM_UP
    cosine = (1 + math.cos(math.pi * (part - WARM_UP) / (1 - WARM_UP))) / 2
    return LOWEST_RATE + (1 - LOWEST_RATE) * cosine


@torch.no_grad()
def losses_of_same_outputs(
    detector: Detector, model: nn.Module, compared: Mapping[str, Change], drawn: Iterator[Any]
) -> dict[str, float]:
    """Of copies of a model that differ in their criterion alone, on the same batches."""
    copies = {name: deepcopy(model) for name in compared}
    for name, change in compared.items():
        change(copies[name])
    losses = dict.fromkeys(compared, 0.0)
    for step, (pictures, boxes, labels) in enumerate(
        islice(drawn, COMPARED_BATCHES if compared else 0)
    ):
        batch = detector.batch([*pictures], boxes, labels)
        for name, copied in copies.items():
            with (
                torch.random.fork_rng(),
                torch.autocast(pictures.device.type, torch.bfloat16),
            ):
                torch.manual_seed(step)  # the same denoising queries
                losses[name] += batch(copied).item() / COMPARED_BATCHES
    return losses


# --- The test ---


def average_precision(detector: Detector, model: nn.Module, test: Scenes) -> dict[str, float]:
    """mAP50-95, of all boxes and of small ones."""
    model.eval()
    found: list[Tensor] = []
    with torch.no_grad():
        for pictures in test.pictures.split(TESTED_AT_ONCE):
            found += [each.cpu() for each in detector.detect(model, pictures.float() / 255)]
    model.train()
    return judged(found, test)


def judged(found: list[Tensor], test: Scenes) -> dict[str, float]:
    """Of what is found in each picture, (k, 6): corners, score, class."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    counts = torch.tensor([len(each) for each in found])
    picture = torch.arange(len(found)).repeat_interleave(counts)[:, None]
    low, high, score, label = torch.cat(found).double().split([2, 2, 1, 1], 1)
    rows = torch.cat((picture, low, high - low, score, label), 1).numpy()
    if not len(rows):  # which COCO does not take
        return {"mAP50-95": 0.0, "mAP50-95, small": 0.0}
    with redirect_stdout(io.StringIO()):
        truth = COCO()
        truth.dataset = as_coco(test)
        truth.createIndex()
        judge = COCOeval(truth, truth.loadRes(rows), "bbox")
        judge.evaluate()
        judge.accumulate()
        judge.summarize()
    return {"mAP50-95": float(judge.stats[0]), "mAP50-95, small": float(judge.stats[3])}


def as_coco(scenes: Scenes) -> dict[str, Any]:
    annotations: list[dict[str, Any]] = []
    for picture, (boxes, labels) in enumerate(zip(scenes.boxes, scenes.labels, strict=True)):
        for (left, top, right, bottom), label in zip(boxes.tolist(), labels.tolist(), strict=True):
            width, height = right - left, bottom - top
            annotations.append(
                {
                    "id": len(annotations) + 1,  # 0 would count as none
                    "image_id": picture,
                    "category_id": label,
                    "bbox": [left, top, width, height],
                    "area": width * height,
                    "iscrowd": 0,
                }
            )
    return {
        "info": {},
        "images": [{"id": each} for each in range(len(scenes))],
        "categories": [{"id": each} for each in range(CLASSES)],
        "annotations": annotations,
    }
