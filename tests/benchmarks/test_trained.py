# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The study of trainings: scenes are what they say, and a perfect detector has a mAP of 1."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("boxloss.torch")
pytest.importorskip("rich")
pytest.importorskip("skimage")
pytest.importorskip("sklearn")

from benchmarks.studies.trained.scenes import SIDE, Scenes, batches, compose
from benchmarks.studies.trained.training import judged


@pytest.fixture(scope="module")
def scenes() -> Scenes:
    return compose("train", 24, torch.device("cpu"))


def test_boxes_lie_in_their_pictures_of_which_some_are_empty_and_some_crowded(
    scenes: Scenes,
) -> None:
    counts = [len(each) for each in scenes.boxes]
    assert min(counts) == 0
    assert max(counts) >= 20
    corners = torch.cat(scenes.boxes)
    assert corners.min() >= 0
    assert corners.max() <= SIDE
    assert (corners[:, :2] < corners[:, 2:]).all()
    assert torch.equal(compose("train", 24, torch.device("cpu")).pictures, scenes.pictures)
    assert not torch.equal(compose("test", 24, torch.device("cpu")).pictures, scenes.pictures)


def test_a_batch_has_its_objects_where_its_boxes_are() -> None:
    """White squares on black, which stay in their boxes when the picture is zoomed and shifted."""
    pictures = torch.zeros(4, 3, SIDE, SIDE, dtype=torch.uint8)
    pictures[:, :, 80:160, 120:240] = 255
    boxes = [torch.tensor([[120.0, 80, 240, 160]])] * 4
    drawn = batches(Scenes(pictures, boxes, [torch.tensor([3])] * 4), 4, seed=0)
    for _ in range(3):
        found, boxes, labels = next(drawn)
        for picture, box, label in zip(found, boxes, labels, strict=True):
            assert label.tolist() == [3]
            white = (picture[0] > picture[0].max() / 2).nonzero().flip(1)
            low, high = white.amin(0), white.amax(0) + 1
            seen = torch.cat(((low + high) / 2, (high - low).float())) / SIDE
            assert (seen - box[0]).abs().max() <= 1.5 / SIDE


def test_a_perfect_detector_has_a_precision_of_1(scenes: Scenes) -> None:
    pytest.importorskip("pycocotools")
    found = [
        torch.cat((boxes, torch.ones(len(boxes), 1), labels[:, None]), 1)
        for boxes, labels in zip(scenes.boxes, scenes.labels, strict=True)
    ]
    assert judged(found, scenes) == {"mAP50-95": 1, "mAP50-95, small": 1}
    nothing = [torch.zeros(0, 6)] * len(scenes)
    assert judged(nothing, scenes) == {"mAP50-95": 0, "mAP50-95, small": 0}
