# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""task_aligned_match by hand, with all of its options.

tests/conformance has the rule in words of its own for every implementation, tests/peers
Ultralytics' assigners, that of rotated boxes, too.
"""

from typing import Any

import pytest
import torch
from boxloss.torch import box_loss, task_aligned_match
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


def test_small_boxes_are_enlarged(device: torch.device) -> None:
    """Of the box' sides, 8 and 4, the shorter ones, about the centre at (6, 4)."""
    points = torch.tensor([[6.0, 4], [6, 7], [6, 9], [11, 4], [13, 4]])
    for options, inside in (
        ({}, [0]),
        ({"min_side": 8.0}, [0, 1]),
        ({"min_side": 12.0}, [0, 1, 2, 3]),
        ({"min_side": 12.0, "small_side": 5.0}, [0, 1, 2]),
    ):
        index = task_aligned_match(**by_hand(device, points=points.to(device), **options))[0]
        assert (index[0] >= 0).nonzero().flatten().tolist() == inside


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
