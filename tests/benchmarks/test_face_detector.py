# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The demo's data are what they say, a wrong loss is refused, the clock counts what it should."""

from __future__ import annotations

import dataclasses
import time

import numpy as np
import pytest
import torch
from torch import Tensor

pytest.importorskip("boxloss.torch")
pytest.importorskip("rich")
pytest.importorskip("skimage")

from benchmarks.common.losses import Loss, masked_loss
from benchmarks.runner.agreement import DisagreementError
from benchmarks.studies.face_detector import (
    VARIANTS,
    WARM_UP,
    Stopwatch,
    Trainer,
    Variant,
    check,
    probe,
    truth,
)
from benchmarks.studies.face_detector.data import DATA, FacePictures, Pictures, RandomPictures
from benchmarks.studies.face_detector.model import SCALES

SEED, SLOTS = 0, 16
CPU = torch.device("cpu")

# --- Data ---


@pytest.mark.parametrize("kind", DATA)
def test_a_picture_depends_on_seed_split_and_index_alone(kind: str) -> None:
    def of(split: str, seed: int, index: int) -> tuple[Tensor, Tensor]:
        pictures: Pictures = DATA[kind](split, seed, 31)
        return pictures[index]

    picture, boxes = of("train", SEED, 5)
    assert torch.equal(picture, of("train", SEED, 5)[0])
    for other in (of("train", SEED + 1, 5), of("test", SEED, 5), of("train", SEED, 6)):
        assert not torch.equal(picture, other[0])
    assert picture.dtype == boxes.dtype == torch.uint8
    assert (boxes[:, :2] < boxes[:, 2:]).all()


def test_face_pixels_are_exactly_those_in_the_boxes() -> None:
    white = np.full((3, 25, 25), 255, dtype=np.uint8)
    black = np.zeros((300, 280), dtype=np.uint8)
    data = FacePictures("train", SEED, 31, faces=white, photographs=[black])
    seen = 0
    for index in range(60):
        picture, boxes = data[index]
        expected = torch.zeros(256, 256, dtype=torch.uint8)
        for x1, y1, x2, y2 in boxes.tolist():
            expected[y1:y2, x1:x2] = 255
        assert torch.equal(picture, expected)
        assert boxes[:, 0].tolist() == sorted(boxes[:, 0].tolist())
        seen += len(boxes)
    assert seen > 60


# --- Agreement ---


def gradient_missing_in_one_picture(pred: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
    some = int(lengths.argmax())
    kept = torch.cat([pred[:some], pred[some : some + 1].detach(), pred[some + 1 :]])
    return masked_loss(kept, target, lengths)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_wrong_loss_is_refused(dtype: torch.dtype) -> None:
    pictures = RandomPictures("train", SEED, SLOTS)
    boxes = [pictures[index][1] for index in range(64)]
    pred, wrong = probe(boxes, SLOTS, dtype), gradient_missing_in_one_picture
    with pytest.raises(DisagreementError, match=r"^wrong: gradient 0.*fp64 gives -?\d"):
        check("wrong", Variant(lambda _: wrong), wrong, pred, boxes, truth(pred, boxes))


# --- Time ---


def test_times_of_the_warm_up_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter([0, 9] * WARM_UP + [0, 1, 0, 3, 0, 2])
    monkeypatch.setattr(time, "perf_counter", lambda: next(seconds))
    clock = Stopwatch(CPU)
    for _ in range(WARM_UP + 3):
        with clock("mask", "loss"):
            pass
    assert clock.milliseconds() == {("mask", "loss"): [1000, 3000, 2000]}


def test_variants_take_turns() -> None:
    """One that came first each time would have its boxes cold, one after the loop a heap in
    disorder."""
    order: list[str] = []

    def noted(name: str) -> Loss:
        def loss(pred: Tensor, *targets: Tensor) -> Tensor:
            order.append(name)
            return masked_loss(pred, *targets)

        return loss

    names = ("mask", "torchvision", "boxloss lengths")
    trainer = Trainer(dataclasses.replace(SCALES["small"], batch=4), CPU, 30)
    variants = {name: (VARIANTS[name], noted(name)) for name in names}
    trainer.train(RandomPictures("train", 0, 5), variants)
    turns = [tuple(order[at : at + 3]) for at in range(0, len(order), 3)]
    assert all(set(turn) == set(names) for turn in turns)
    assert {turn[0] for turn in turns} == set(names)
