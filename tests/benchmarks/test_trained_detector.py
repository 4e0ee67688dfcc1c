# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Quality is judged as COCO does it, boxes reach their cells, and only steps are timed."""

from __future__ import annotations

import dataclasses
import itertools
import time
from typing import Any

import pytest
import torch
from torch import Tensor

pytest.importorskip("boxloss.torch")
pytest.importorskip("rich")
pytest.importorskip("skimage")

from benchmarks.runner.agreement import DisagreementError
from benchmarks.studies.face_detector.data import FacePictures
from benchmarks.studies.trained_detector import OURS, SLOWEST, VARIANTS, check
from benchmarks.studies.trained_detector.model import CELL, SCALES, CellDetector
from benchmarks.studies.trained_detector.pictures import Assigned, assign, assign_all, draw, mirror
from benchmarks.studies.trained_detector.quality import (
    average_precision,
    iou,
    judge,
    match,
    suppress,
)
from benchmarks.studies.trained_detector.training import Task, make_batch, train, view

CPU = torch.device("cpu")
TINY = dataclasses.replace(
    SCALES["quick"], batch=4, evaluations=2, steps_between=2, train_pictures=8, test_pictures=8
)


@pytest.fixture(scope="module")
def task() -> Task:
    train_set, test_set = draw("train", 0, TINY.train_pictures), draw("test", 0, TINY.test_pictures)
    return Task(train_set, assign_all(train_set), test_set)


@pytest.fixture(scope="module")
def pairs(task: Task) -> list[Assigned]:
    return [as_drawn for as_drawn, _ in task.assigned]


# --- Quality ---


@pytest.mark.parametrize(
    ("right", "truths", "expected"),
    [
        ([True, True], 2, 1),
        ([False, False], 2, 0),
        # Precision is 1, 1/2 and 2/3 at recalls of 1/2, 1/2 and 1: an area of 1/2 + 1/2 * 2/3.
        ([True, False, True], 2, 5 / 6),
        ([True, False, True], 4, 5 / 12),  # two that nobody found
        # Precision is 0, 1/2 and 2/3, so that 2/3 is had at every recall up to 1.
        ([False, True, True], 2, 2 / 3),
        ([True, False, False, False], 1, 1),  # all is found before the first error
    ],
)
def test_average_precision(right: list[bool], truths: int, expected: float) -> None:
    order = torch.randperm(len(right), generator=torch.Generator().manual_seed(0))
    scores = torch.linspace(0.9, 0.1, len(right))
    found = average_precision(scores[order], torch.tensor(right)[order], truths)
    assert found == pytest.approx(expected)


def test_iou_and_suppression() -> None:
    boxes = torch.tensor([[[0, 0, 2, 2], [5, 5, 5, 5]]]).float()
    truths = torch.tensor([[[1, 1, 3, 3], [0, 0, 2, 1], [2, 0, 4, 2], [5, 5, 5, 5]]]).float()
    expected = torch.tensor([[[1 / 7, 1 / 2, 0, 0], [0, 0, 0, 0]]])
    torch.testing.assert_close(iou(boxes, truths), expected)
    near = torch.tensor([[0, 0, 10, 10], [0, 0, 10, 8], [0, 0, 10, 6], [20, 20, 30, 30]]).float()
    # The second comes first; the third overlaps it by 3/4, the first by 8/10.
    scores = torch.tensor([[0.5, 0.9, 0.8, 0.1]])
    found, left = suppress(near[None], scores, most=4, overlap=0.7)
    assert left[0].tolist() == pytest.approx([0.9, 0, 0, 0.1])
    assert found[0, 0].tolist() == near[1].tolist()


def test_a_truth_is_found_once_and_padding_never() -> None:
    overlaps = torch.tensor([[[0.9, 0.6, 0.8], [0.7, 0.6, 0.8], [0.7, 0.4, 0.8]]])
    valid = torch.tensor([[True, True, False]])
    right = match(overlaps, valid, torch.tensor([0.5, 0.65]))
    assert right.tolist() == [[[True, True, False]], [[True, False, False]]]


def test_quality_of_two_pictures() -> None:
    truths = [torch.tensor([[0, 0, 10, 10]]), torch.tensor([[0, 0, 20, 20], [50, 50, 60, 60]])]
    boxes = torch.tensor([[[0, 0, 10, 10.0]], [[0, 0, 20, 15.0]]])
    found = judge(boxes, torch.tensor([[0.9], [0.8]]), truths)
    assert found.ap50 == pytest.approx(2 / 3)
    assert found.ap == pytest.approx((6 * 2 / 3 + 4 * 1 / 3) / 10)  # 0.75 is enough up to 0.75
    assert found.mean_iou == pytest.approx((1 + 0.75) / 3)


# --- Boxes and their cells ---


def test_a_face_belongs_to_the_cell_of_its_centre_where_the_smallest_stays() -> None:
    boxes = torch.tensor([[0, 0, 31, 31], [40, 0, 101, 60], [200, 230, 255, 255]]).short()
    kept, cells = assign(boxes)
    assert torch.equal(kept, boxes)
    assert cells.tolist() == [0, 16 * 1 + 4, 16 * 15 + 14]
    crowd = torch.tensor([[10, 10, 50, 50], [0, 0, 60, 60], [100, 100, 130, 130]]).short()
    assert torch.equal(assign(crowd)[0], crowd[[0, 2]])
    assert assign(torch.zeros(0, 4).short())[1].shape == (0,)


def test_mirrored_boxes_lie_on_mirrored_faces(task: Task) -> None:
    picture = torch.zeros(1, 256, 256, dtype=torch.uint8)
    picture[0, 20:60, 0:40] = 255
    batch = make_batch(task.assigned, VARIANTS[OURS].lay_out, 1, step=0)
    as_it_is = torch.tensor([[0.0], [1.0], [0.0]])
    batch = dataclasses.replace(
        batch, rows=torch.tensor([0]), mirrored=torch.tensor([True]), light=as_it_is
    )
    seen = view(picture, batch)[0]
    ((x1, y1, x2, y2),) = mirror(torch.tensor([[0, 20, 40, 60]], dtype=torch.int16)).tolist()
    assert seen[y1:y2, x1:x2].min() == 255
    assert seen.sum() == 255 * 40 * 40


@pytest.mark.parametrize("scale", SCALES)
def test_a_cell_predicts_a_box_around_it(scale: str) -> None:
    torch.manual_seed(0)
    logits, boxes = CellDetector(SCALES[scale])(torch.rand(2, 256, 256) * 255)
    assert logits.shape == (2, 256)
    assert (boxes[..., 2:] > boxes[..., :2]).all()
    cells = torch.arange(256)
    middles = torch.stack([cells % 16, cells // 16], dim=1) * CELL + CELL / 2
    assert (((boxes[..., :2] + boxes[..., 2:]) / 2 - middles).abs() < CELL).all()


# --- Agreement and training ---


@pytest.mark.parametrize("name", VARIANTS)
def test_a_wrong_loss_is_refused(name: str, pairs: list[Assigned]) -> None:
    right = VARIANTS[name]
    check(name, right, [pair for pair in pairs if not len(pair[0])], CPU)  # no face at all

    def doubled(*arguments: Any) -> Tensor:
        return 2 * right.loss(*arguments)

    def half_a_gradient(pred: Tensor, *targets: Any) -> Tensor:
        return right.loss((pred + pred.detach()) / 2, *targets)

    for wrong, complaint in ((doubled, "loss"), (half_a_gradient, "gradient")):
        with pytest.raises(DisagreementError, match=f"{name}: {complaint}"):
            check(name, right._replace(loss=wrong), pairs, CPU)


def test_all_variants_see_the_demos_pictures_in_one_order(task: Task) -> None:
    picture, boxes = FacePictures("test", 0, 255)[3]
    assert torch.equal(task.test.pictures[3], picture)
    assert torch.equal(task.test.boxes[3], boxes.short())

    def rows(name: str, step: int) -> list[int]:
        return make_batch(task.assigned, VARIANTS[name].lay_out, 4, step).rows.tolist()

    assert rows(OURS, 1) == rows(SLOWEST, 1)
    assert rows(OURS, 1) != rows(OURS, 2)


def test_the_clock_stands_still_between_steps(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reading is a second after the last: three for a step, and three for the ends."""
    ticks = itertools.count()
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(ticks)))
    training = train(TINY, *VARIANTS[OURS], task, CPU)
    each = 3 * TINY.steps_between + 2
    assert [row.seconds for row in training.evaluations] == [0, each, 2 * each]
    assert training.loss_ms == [1000] * 4
    assert training.step_ms == [3000] * 4
