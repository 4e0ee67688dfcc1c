# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The scenes of the study of trainings are what they say."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("boxloss.torch")
pytest.importorskip("rich")
pytest.importorskip("skimage")

from benchmarks.studies.face_detector.data import load_faces
from benchmarks.studies.trained import scenes
from benchmarks.studies.trained.scenes import SIDE, Scenes, batches


def compose(split: str) -> Scenes:
    return scenes.compose(split, 24, torch.device("cpu"))


def test_boxes_lie_in_their_pictures_of_which_some_are_empty_and_some_crowded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Digits are scikit-learn's, which need not be there.
    monkeypatch.setattr(scenes, "load_digits", lambda split: scenes.as_objects(load_faces(split)))
    train, test = compose("train"), compose("test")
    counts = [len(each) for each in train.boxes]
    assert min(counts) == 0
    assert max(counts) >= 20
    corners = torch.cat(train.boxes)
    assert corners.min() >= 0
    assert corners.max() <= SIDE
    assert (corners[:, :2] < corners[:, 2:]).all()
    assert torch.equal(compose("train").pictures, train.pictures)
    assert not torch.equal(test.pictures, train.pictures)


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
