# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""task_aligned_match by hand, with all of its options.

tests/conformance has the rule in words of its own for every implementation, tests/peers
Ultralytics' assigners, that of rotated boxes, too.
"""

import math
from typing import Any

import pytest
import torch
from boxloss.torch import TaskAlignedMatch, box_loss, task_aligned_match
from devices import Implementation
from task_aligned import OVERLAP_ERROR, Problem, problem
from torch import Tensor

# A box of 8 x 4, and predictions that end earlier, the last one soonest.
BOX = torch.tensor([[2.0, 2, 10, 6]])
PRED = torch.tensor([[2.0, 2, 2 + width, 6] for width in (8, 6, 7, 4, 2)])
SCORES = torch.tensor([0.5, 0.9, 0.7, 0.8, 0.3])
INSIDE = torch.tensor([[3.0, 3], [4, 3], [5, 3], [6, 3], [7, 3]])
# What each option says: which anchors are chosen, of them the highest scores or overlaps.
RULES: list[tuple[Problem, list[int]]] = [
    ({}, [0, 1, 2, 3, 4]),
    ({"topk": 2, "alpha": 1.0, "beta": 0.0}, [1, 3]),
    ({"topk": 3, "topk2": 1, "alpha": 1.0, "beta": 0.0}, [1]),
    ({"topk": 2, "alpha": 0.0, "beta": 1.0}, [0, 2]),
    ({"topk": 2, "alpha": 1.0, "beta": 1.0}, [1, 2]),
]


def by_hand(device: torch.device, **options: Any) -> Problem:
    values = {"scores": SCORES[None, :, None], "pred": PRED[None], "points": INSIDE, "target": BOX}
    values |= {"offsets": torch.tensor([0, 1]), "labels": torch.tensor([0])}
    return {name: each.to(device) for name, each in values.items()} | options


@pytest.mark.parametrize(("options", "chosen"), RULES)
def test_by_hand(implementation: Implementation, options: Problem, chosen: list[int]) -> None:
    values = by_hand(implementation.device, **options)
    index, score, overlap = (each[0].cpu() for each in task_aligned_match(**values))
    assert (index >= 0).nonzero().flatten().tolist() == chosen
    assert set(index.tolist()) <= {0, -1}
    own = index >= 0
    wanted = (1 - box_loss(PRED, BOX.expand(5, 4), "ciou", reduction="none")) * own
    assert ((overlap - wanted).abs() <= OVERLAP_ERROR).all()
    # One metric over another, times an overlap; powers are off by a millionth.
    beta = options.get("beta", 6.0)
    metric = SCORES ** options.get("alpha", 0.5) * wanted**beta * own
    right = metric / metric.amax() * wanted.amax()
    relative = (2 * beta + 1) * OVERLAP_ERROR / wanted.clamp(min=0.01) + 1e-6
    assert ((score - right).abs() <= relative * right).all()


# --- The reference by hand ---

SQUARE = [0.0, 0, 4, 4]


def example(points: list[list[float]], scores: list[list[float]], **others: Any) -> Problem:
    """Predictions and the one ground-truth box are a square, unless they are given."""
    values = {"pred": [SQUARE] * len(points), "target": [SQUARE], "labels": [0]}
    return values | {"points": points, "scores": scores} | others


def three_boxes(**changed: Any) -> Problem:
    """Two that choose anchor 0, and a third one that overlaps more with it, but chooses another."""
    target, labels = [[0.0, 0, 4, 5], [0, 0, 5, 4], SQUARE], [0, 0, 1]
    values = example([[1, 1], [2, 2]], [[1, 0.25], [0.01, 0.81]], target=target, labels=labels)
    return values | changed


def small(**options: float) -> Problem:
    box = [10.0, 10, 12, 14]
    points = [[9.5, 11], [8.5, 11], [11, 14.5]]
    return example(points, [[1]] * 3, pred=[box] * 3, target=[box], **options)


# Half of a prediction is missing: iou is 1/2, the centres are 1 apart, the diagonal squared is 32,
# and v = 4 / pi^2 (atan(1) - atan(1/2))^2 = 0.04195, alpha = v / (1/2 + v).
HALF = 0.5 - 1 / 32 - 0.04195487 * 0.04195487 / (0.5 + 0.04195487)
IN_OR_OUT = example([[1, 1], [2, 2], [5, 2], [4, 2], [2, 0]], [[0.25], [0.81], [1], [1], [1]])
HALF_MISSING = example([[1, 1], [2, 2]], [[1], [0.25]], pred=[[0, 0, 2, 4], SQUARE], beta=1.0)
ZERO_AND_NAN = example(
    [[1, 1], [2, 2], [3, 3], [1, 3]],
    [[0], [0.5], [math.nan], [0.5]],
    pred=[*[SQUARE] * 3, [20, 20, 30, 30]],  # the last one's CIoU is negative
)
NAN_BOX = {**ZERO_AND_NAN, "pred": [SQUARE, [0, 0, math.nan, 4], *ZERO_AND_NAN["pred"][2:]]}
OF_SECOND_CLASS = example([[1, 1]], [[0.5, 0.5]], labels=[1])
SUM_OF_0 = {**OF_SECOND_CLASS, "target": [[-2.0, -2, 2, 2]]}
BEST, ALL = ([-1, 2], [0, 1]), ([2, 2], [0.5 / 0.9, 1])
# Each anchor's row, its score, and its overlap where that is not 1 for all that have a box.
EXAMPLES: list[tuple[Problem, list[int], list[float], list[float] | None]] = [
    (IN_OR_OUT, [0, 0, -1, -1, -1], [0.5 / 0.9, 1, 0, 0, 0], None),
    ({**IN_OR_OUT, "topk": 1}, [-1, 0, -1, -1, -1], [0, 1, 0, 0, 0], None),
    # A metric is the score's power times the overlap's.
    (HALF_MISSING, [0, 0], [HALF / 0.5, 1], [HALF, 1]),
    # An anchor that several boxes choose goes to the one that overlaps most with it.
    (three_boxes(topk=1), *ALL, None),
    # A box keeps its best topk2 anchors; one that has more than it chose keeps them where topk2 is
    # topk.
    (three_boxes(topk=2), *ALL, None),
    (three_boxes(topk=2, topk2=1), *BEST, None),
    (three_boxes(topk=2, topk2=2), *ALL, None),
    (three_boxes(topk=1, topk2=1), *ALL, None),
    # Points lie in small boxes that were enlarged: x from 9 to 13, y as it is.
    (small(), [-1, -1, -1], [0, 0, 0], None),
    (small(min_side=4.0), [0, -1, -1], [1, 0, 0], None),
    (small(min_side=4.0, small_side=2.0), [-1, -1, -1], [0, 0, 0], None),  # which the width is
    (small(min_side=4.0, small_side=2.5), [0, -1, -1], [1, 0, 0], None),
    # Only a metric above 0 counts.
    (ZERO_AND_NAN, [-1, 0, -1, -1], [0, 1, 0, 0], None),
    (NAN_BOX, [-1, -1, -1, -1], [0, 0, 0, 0], None),
    (OF_SECOND_CLASS, [0], [1], None),
    ({**OF_SECOND_CLASS, "is_padded": True}, [0], [1], None),
    ({**SUM_OF_0, "is_padded": True}, [-1], [0], None),
]


def matched(values: Problem) -> TaskAlignedMatch:
    """Of one image."""
    values = dict(values)
    target = torch.tensor(values.pop("target"), dtype=torch.float64)
    labels, offsets = torch.tensor(values.pop("labels")), torch.tensor([0, len(target)])
    if values.pop("is_padded", False):
        target, labels, offsets = target[None], labels[None], None
    scores, pred, points = (
        torch.tensor(values.pop(name), dtype=torch.float64) for name in ("scores", "pred", "points")
    )
    return task_aligned_match(scores[None], pred[None], points, target, offsets, labels, **values)


@pytest.mark.usefixtures("reference")
@pytest.mark.parametrize(("values", "rows", "scores", "overlaps"), EXAMPLES)
def test_examples(
    values: Problem, rows: list[int], scores: list[float], overlaps: list[float] | None
) -> None:
    index, score, overlap = (each[0].tolist() for each in matched(values))
    assert index == rows
    assert score == pytest.approx(scores, abs=1e-6)
    assert overlap == pytest.approx(overlaps or [float(row >= 0) for row in rows], abs=1e-6)


def oriented(points: list[Any], box: list[float], moved: float = 0, **others: Any) -> Problem:
    """Predictions are the box, moved along x."""
    pred = [[box[0] + moved, *box[1:]]] * len(points)
    return example(points, [[1]] * len(points), pred=pred, target=[box], **others)


LONG = [10.0, 10, 8, 2, 0]
ALONG_DIAGONAL = [[12, 12], [12, 8], [14, 10], [10.6, 9.4], [10.8, 9.2]]
AROUND_EDGES = [[14, 11], [14.1, 11], [6, 9], [6, 8.9]]
UNIT = 2.0**-40
LEFT = [[-2, 0]], [-2.0, 0, 1, 1]
ORIENTED: list[tuple[Problem, list[int], float]] = [
    # Points lie in a rotated box, its edges included.
    (oriented(ALONG_DIAGONAL, [*LONG[:4], math.pi / 4]), [0, -1, -1, 0, -1], 1),
    (oriented(ALONG_DIAGONAL, [*LONG[:4], -45], angle_unit="degrees"), [0, -1, -1, 0, -1], 1),
    (oriented(AROUND_EDGES, LONG), [0, -1, 0, -1], 1),
    (oriented(AROUND_EDGES, LONG, min_side=3.0), [0, -1, 0, 0], 1),  # of the height alone
    (oriented(AROUND_EDGES, LONG, min_side=3.0, small_side=2.0), [0, -1, 0, -1], 1),
    # Rounding leaves no room beside the edges of a box as small as the last place.
    (oriented([[4096 + UNIT, 4096]], [4096, 4096, 2 * UNIT, 2 * UNIT, 0]), [0], 1),
    # The overlap is probiou: of Gaussians that are alike and moved by d along a variance v,
    # D = d^2 / (8 v), v = 64 / 12.
    (oriented([[10, 10]], LONG, 2), [0], 1 - math.sqrt(-math.expm1(-4 / (8 * 64 / 12)))),
    # A padded list's box counts if its numbers add up to more than 0.
    (oriented([[1, 0]], [1, 0, 2, 2, 0.5], is_padded=True), [0], 1),
    (oriented(LEFT[0], [*LEFT[1], 0], is_padded=True), [-1], 1),
    (oriented(LEFT[0], [*LEFT[1], 0.1], is_padded=True), [0], 1),
    (oriented(LEFT[0], [*LEFT[1], 0.1], is_padded=True, angle_unit="degrees"), [-1], 1),
    (oriented(LEFT[0], [*LEFT[1], -90], is_padded=True, angle_unit="degrees"), [0], 1),
]


@pytest.mark.usefixtures("reference")
@pytest.mark.parametrize(("values", "rows", "overlap"), ORIENTED)
def test_oriented_examples(values: Problem, rows: list[int], overlap: float) -> None:
    found = matched(values)
    assert found.target_index[0].tolist() == rows
    wanted = [overlap if row >= 0 else 0 for row in rows]
    assert found.overlap[0].tolist() == pytest.approx(wanted, abs=1e-7)


@pytest.mark.usefixtures("reference")
def test_which_box_has_an_anchor() -> None:
    """That of a candidate that overlaps most, which the third box is not; and that of the one box
    that chooses it, whatever overlaps more."""
    other_point = [[1, 4.5], [2, 2]]
    target = [[0.0, 0, 4, 5], [0, 0, 5, 5], SQUARE]
    for values in (
        three_boxes(topk=1, points=other_point, target=target),
        three_boxes(topk=1, labels=[0, 1, 1]),
    ):
        assert matched(values).target_index.tolist() == [[0, 2]]
    assert matched(SUM_OF_0).target_index.tolist() == [[0]]  # no padding


@pytest.mark.parametrize("pred_format", ["xywh", "cxcywh"])
def test_formats(device: torch.device, pred_format: str) -> None:
    first, size = PRED[:, :2], PRED[:, 2:] - PRED[:, :2]
    pred = torch.cat((first + size / 2 if pred_format == "cxcywh" else first, size), -1)[None]
    results = task_aligned_match(**by_hand(device, pred=pred.to(device), pred_format=pred_format))
    assert all(map(torch.equal, results, task_aligned_match(**by_hand(device))))


def test_points_of_each_image(device: torch.device) -> None:
    values = problem(3, device, is_padded=True)
    shifts = torch.tensor([[[0.0, 0.0]], [[3.0, 1.0]], [[-5.0, 2.0]]], device=device)
    values["points"] = values["points"] + shifts
    values["labels"] = values["labels"].clamp(min=0)
    results = task_aligned_match(**values)
    for b in range(3):
        of_image = {n: v[b : b + 1] for n, v in values.items() if isinstance(v, Tensor)}
        index, *others = task_aligned_match(**of_image, offsets=None)
        boxes = values["target"].shape[1]
        assert torch.equal(torch.where(index < 0, -1, index + b * boxes)[0], results[0][b])
        assert all(
            torch.equal(mine[0], all_[b]) for mine, all_ in zip(others, results[1:], strict=True)
        )


def test_on_a_gpu_a_label_that_names_no_class_gets_no_anchor(gpu: torch.device) -> None:
    """Nobody looks at it."""
    values = problem(12, gpu, images=2)
    right = task_aligned_match(**values).target_index
    labels = values["labels"].clone()
    labels[0], labels[1] = 4, -1
    index = task_aligned_match(**{**values, "labels": labels}).target_index
    assert not torch.isin(index, torch.tensor([0, 1], device=gpu)).any()
    assert torch.isin(right, torch.tensor([0, 1], device=gpu)).any()


def test_padding_of_doubles_is_told_in_double() -> None:
    """A label of padding may be anything, but this box is none: its sum is 1e-12."""
    target = torch.tensor([[[-1, -1, 1, 1 + 1e-12]]], dtype=torch.float64)
    labels = torch.tensor([[9]])
    scores, pred, points = torch.ones(1, 2, 3), torch.ones(1, 2, 4), torch.zeros(2, 2)
    with pytest.raises(ValueError, match="9"):
        task_aligned_match(scores, pred, points, target, None, labels)
    task_aligned_match(scores, pred, points, target.float(), None, labels)
