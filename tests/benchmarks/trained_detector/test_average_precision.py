# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Average precision, with numbers worked out by hand."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

pytest.importorskip("boxloss.torch")
pytest.importorskip("skimage")

from benchmarks.trained_detector.average_precision import average_precision, iou, match, suppress
from benchmarks.trained_detector.evaluation import judge


def of(right: list[bool], truths: int) -> float:
    """By falling score."""
    scores = torch.linspace(0.9, 0.1, len(right))
    return average_precision(scores, torch.tensor(right), truths)


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
    assert of(right, truths) == pytest.approx(expected)


def test_scores_alone_give_the_order() -> None:
    scores, right = (
        torch.tensor([[0.2, 0.9], [0.8, 0.1]]),
        torch.tensor([[True, True], [False, False]]),
    )
    assert average_precision(scores, right, 2) == pytest.approx(of([True, False, True], 2))


def test_iou() -> None:
    boxes = torch.tensor([[[0, 0, 2, 2], [5, 5, 5, 5]]]).float()
    truths = torch.tensor([[[1, 1, 3, 3], [0, 0, 2, 1], [2, 0, 4, 2], [5, 5, 5, 5]]]).float()
    expected = torch.tensor([[[1 / 7, 1 / 2, 0, 0], [0, 0, 0, 0]]])
    torch.testing.assert_close(iou(boxes, truths), expected)


def test_the_best_of_near_boxes_stays() -> None:
    boxes = torch.tensor([[0, 0, 10, 10], [0, 0, 10, 8], [0, 0, 10, 6], [20, 20, 30, 30]]).float()
    scores = torch.tensor([0.5, 0.9, 0.8, 0.1])
    # The second comes first; the third overlaps it by 3/4, the first by 8/10.
    found, left = suppress(boxes[None], scores[None], most=4, overlap=0.7)
    assert left.tolist() == [[pytest.approx(0.9), 0, 0, pytest.approx(0.1)]]
    assert found[0, [0, 3]].tolist() == boxes[[1, 3]].tolist()
    assert not found[0, 1:3].any()
    # By 0.78 the third stays; with it the first goes for the second's sake alone.
    _, left = suppress(boxes[None], scores[None], most=4, overlap=0.78)
    assert left[0].gt(0).tolist() == [True, True, False, True]


def test_a_suppressed_box_suppresses_no_other() -> None:
    # Each overlaps the next by 3/5 and more, but not the one after it.
    boxes = torch.tensor([[0, 0, 10, 1], [2.5, 0, 12.5, 1], [5, 0, 15, 1]])
    _, left = suppress(boxes[None], torch.tensor([[0.9, 0.8, 0.7]]), most=3, overlap=0.5)
    assert left[0].gt(0).tolist() == [True, False, True]


def matched(overlaps: list[list[float]], counted: list[bool], *thresholds: float) -> Tensor:
    found = match(torch.tensor([overlaps]), torch.tensor([counted]), torch.tensor(thresholds))
    return found[:, 0]


def test_a_truth_is_found_once() -> None:
    assert matched([[0.9], [0.95]], [True], 0.5).tolist() == [[True, False]]


def test_the_second_takes_what_is_free() -> None:
    overlaps = [[0.9, 0.6], [0.8, 0.7]]
    found = matched(overlaps, [True, True], 0.5, 0.75)
    assert found.tolist() == [[True, True], [True, False]]


def test_one_that_is_not_near_enough_takes_nothing() -> None:
    assert matched([[0.4], [0.5]], [True], 0.5).tolist() == [[False, True]]


def test_padding_is_no_truth() -> None:
    assert matched([[0.9, 0.2]], [False, True], 0.5).tolist() == [[False]]


def test_quality_of_two_pictures() -> None:
    truths = [
        torch.tensor([[0, 0, 10, 10], [50, 50, 60, 60]], dtype=torch.int16),
        torch.zeros(0, 4, dtype=torch.int16),
    ]
    # One face found with IoU 0.78, one missed, one seen where there is none.
    boxes = torch.tensor([[[0, 0, 10, 7.8], [0, 0, 0, 0]], [[5, 5, 9, 9], [0, 0, 0, 0]]]).float()
    scores = torch.tensor([[0.9, 0.0], [0.6, 0.0]])
    found = judge(boxes, scores, truths)
    assert found.ap50 == pytest.approx(1 / 2)
    assert found.ap == pytest.approx(1 / 2 * 6 / 10)  # right from 0.5 to 0.75
    assert found.mean_iou == pytest.approx(0.78 / 2)


def test_mean_iou_counts_what_is_sure() -> None:
    truth = torch.tensor([[0, 0, 10, 10]], dtype=torch.int16)
    box = torch.tensor([[[0, 0, 10, 10]]]).float()
    assert judge(box, torch.tensor([[0.4]]), [truth]).mean_iou == 0
    assert judge(box, torch.tensor([[0.6]]), [truth]).mean_iou == 1
