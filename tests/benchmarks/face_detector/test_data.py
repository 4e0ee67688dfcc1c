# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The pictures are reproducible, their boxes are true, and train and test share nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

pytest.importorskip("skimage")

from benchmarks.face_detector.data import (
    DATA,
    FACE_SIDES,
    PHOTOGRAPHS,
    FacePictures,
    Pictures,
    RandomPictures,
    box_count,
    load_faces,
    load_photographs,
    resize_square,
)

SEED = 0
MOST = 31


@pytest.fixture(params=DATA, scope="module")
def pictures(request: pytest.FixtureRequest) -> Pictures:
    return DATA[request.param]("train", SEED, MOST)


def test_a_picture_depends_on_seed_split_and_index_alone(pictures: Pictures) -> None:
    kind = type(pictures)
    picture, boxes = pictures[5]
    again, boxes_again = kind("train", SEED, MOST)[5]
    assert torch.equal(picture, again)
    assert torch.equal(boxes, boxes_again)
    for other in (kind("train", SEED + 1, MOST)[5], kind("test", SEED, MOST)[5], pictures[6]):
        assert not torch.equal(picture, other[0])


def test_boxes_are_uint8_and_lie_inside_the_picture(pictures: Pictures) -> None:
    for index in range(200):
        picture, boxes = pictures[index]
        assert picture.shape == (256, 256)
        assert picture.dtype == boxes.dtype == torch.uint8
        assert boxes.shape == (len(boxes), 4)
        # uint8 holds [0, 255] anyhow; that no corner wrapped shows in their order.
        assert (boxes[:, :2] < boxes[:, 2:]).all()


def test_box_counts_follow_the_articles_distribution() -> None:
    rng = np.random.default_rng(SEED)
    draws = 20_000
    counts = np.array([box_count(rng, 255) for _ in range(draws)])
    for count in range(6):
        # floor(|Normal(0, 3)|) == count
        share = math.erf((count + 1) / (3 * math.sqrt(2))) - math.erf(count / (3 * math.sqrt(2)))
        deviation = math.sqrt(share * (1 - share) / draws)
        assert abs((counts == count).mean() - share) < 5 * deviation
    assert max(box_count(rng, 2) for _ in range(200)) == 2


def test_random_boxes_reach_the_articles_bounds() -> None:
    data = RandomPictures("train", SEED, 255)
    rng = np.random.default_rng(SEED)
    _, boxes = data.draw(rng, 20_000)
    assert boxes[:, :2].min() == 0
    assert boxes[:, :2].max() == 254
    assert boxes[:, 2:].min() >= 1
    assert boxes[:, 2:].max() == 255


def test_face_pixels_are_exactly_those_in_the_boxes() -> None:
    white = np.full((3, 25, 25), 255, dtype=np.uint8)
    black = np.zeros((300, 280), dtype=np.uint8)
    data = FacePictures("train", SEED, MOST, faces=white, photographs=[black])
    seen = 0
    for index in range(100):
        picture, boxes = data[index]
        expected = torch.zeros(256, 256, dtype=torch.uint8)
        for x1, y1, x2, y2 in boxes.tolist():
            expected[y1:y2, x1:x2] = 255
            assert FACE_SIDES[0] <= x2 - x1 == y2 - y1 <= FACE_SIDES[1]
        assert torch.equal(picture, expected)
        seen += len(boxes)
    assert seen > 100


def test_a_pasted_face_is_the_face() -> None:
    face = load_faces("train")[0]
    # At its own size the face is itself; twice as large, each 2x2 block averages to near it.
    assert np.array_equal(resize_square(face, 25), face)
    ramp = np.tile(np.arange(0, 250, 10, dtype=np.uint8), (25, 1))
    large = resize_square(ramp, 50)
    assert large.shape == (50, 50)
    assert large[0, :4].tolist() == [0, 2, 8, 12]  # 0, 2.5, 7.5, 12.5, rounded half to even
    assert (large == large[0]).all()


def test_boxes_run_from_left_to_right() -> None:
    data = FacePictures("train", SEED, MOST)
    left_edges = [data[index][1][:, 0].tolist() for index in range(50)]
    assert left_edges == [sorted(edges) for edges in left_edges]
    assert max(map(len, left_edges)) > 1


def test_train_and_test_share_no_face_and_no_photograph() -> None:
    train, test = ({face.tobytes() for face in load_faces(split)} for split in ("train", "test"))
    assert len(train) == 80
    assert len(test) == 20
    assert not train & test
    assert not PHOTOGRAPHS["train"].keys() & PHOTOGRAPHS["test"].keys()


@pytest.mark.parametrize("split", PHOTOGRAPHS)
def test_photographs_hold_a_whole_crop(split: str) -> None:
    for photograph in load_photographs(split):
        assert photograph.dtype == np.uint8
        assert photograph.ndim == 2
        assert min(photograph.shape) >= 256
