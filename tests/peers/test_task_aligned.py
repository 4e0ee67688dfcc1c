# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""task_aligned_match beside Ultralytics' TaskAlignedAssigner."""

from typing import NamedTuple

import pytest
import torch
from boxloss.torch import TaskAlignedMatch, task_aligned_match
from surroundings import DEVICES
from torch import Tensor

from benchmarks.common.losses import isolate_ultralytics

isolate_ultralytics()
from ultralytics.utils.tal import TaskAlignedAssigner

IMAGES, SIZE, CLASSES, STRIDES = 4, 256, 6, (8, 16, 32)
# Theirs and ours round differently, and theirs adds eps to heights: 6 eps / side of an overlap, as
# test_yolo.py derives, with sides of 4 or more. CIoU has some 64 roundings of 2^-24 on either side.
OVERLAP_BOUND = 2 * 64 * 2**-24 + 6 * 1e-7 / 4
METRIC_BOUND = 16 * 2**-24  # relative, of the powers

Named = dict[str, Tensor]


def problem(seed: int, boxes: int, dtype: torch.dtype, device: str) -> Named:
    """What v8DetectionLoss hands to its assigner, of a network that has learned something."""
    random = torch.Generator().manual_seed(seed)

    def rand(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=random)

    cells = [(torch.arange(SIZE // stride) + 0.5) * stride for stride in STRIDES]
    points = torch.cat([torch.cartesian_prod(each, each).flip(-1) for each in cells])
    centre, sides = SIZE * rand(IMAGES, boxes, 2), 4 + SIZE / 2 * rand(IMAGES, boxes, 2) ** 2
    target = torch.cat((centre - sides / 2, centre + sides / 2), -1)
    counts = torch.randint(boxes + 1, (IMAGES,), generator=random)
    counts[0], counts[1] = boxes, 0
    has_box = torch.arange(boxes) < counts[:, None]
    target *= has_box[..., None]
    near = torch.randint(boxes, (IMAGES, len(points)), generator=random)
    own = target.gather(1, near[..., None].expand(-1, -1, 4))
    sides = (own[..., 2:] - own[..., :2]).clamp(min=4).repeat(1, 1, 2)
    pred = own + 0.4 * sides * (rand(*sides.shape) - 0.5)
    values = {
        "scores": rand(IMAGES, len(points), CLASSES).to(dtype),
        "pred": pred,
        "points": points,
        "target": target,
        "labels": torch.randint(CLASSES, (IMAGES, boxes), generator=random),
    }
    return {name: each.to(device) for name, each in values.items()}


class Theirs(NamedTuple):
    score: Tensor
    box: Tensor
    metric: Tensor  # (images, boxes, anchors), as the next two
    overlap: Tensor
    chosen: Tensor


def theirs(values: Named, topk: int, topk2: int | None, alpha: float) -> Theirs:
    assigner = TaskAlignedAssigner(topk, CLASSES, alpha, 6.0, list(STRIDES), topk2=topk2)
    mask = values["target"].sum(2, keepdim=True).gt(0)
    labels = values["labels"][..., None]
    arguments = (values["scores"], values["pred"])
    _, _, scores, fg_mask, index = assigner(
        *arguments, values["points"], labels, values["target"], mask
    )
    chosen, metric, overlap = assigner.get_pos_mask(
        *arguments, labels, values["target"], values["points"], mask
    )
    score = scores.amax(-1).float() * fg_mask
    return Theirs(score, index, metric.float(), overlap.float(), chosen.bool())


def open_boxes(metric: Tensor, overlap: Tensor, count: int, unit: float) -> Tensor:
    """(images, boxes): whose choice of the highest metrics rounding may change."""
    values, order = metric.topk(count + 1, -1)
    relative = 6 * OVERLAP_BOUND / overlap.clamp(min=1e-3) + METRIC_BOUND + unit
    errors = values * relative.gather(-1, order)
    close = values[..., -2] - values[..., -1] <= errors[..., -2] + errors[..., -1]
    return close & (values[..., -1] > 0)


def may_be_others(found: Theirs, topk: int, topk2: int | None, unit: float) -> Tensor:
    """(images, anchors): which may go to another box, for one of three reasons."""
    boxes = open_boxes(found.metric, found.overlap, topk, unit)
    if topk2 is not None:  # of what a box has in the end: any two that are close
        values = found.metric.sort(-1, descending=True).values[..., : 4 * topk]
        relative = 12 * OVERLAP_BOUND / 0.1 + METRIC_BOUND + unit
        close = values[..., :-1] - values[..., 1:] <= relative * values[..., :-1]
        boxes = boxes | (close & (values[..., 1:] > 0)).any(-1)
    # Two metrics of a box are as good as equal,
    metrics = ((found.metric > 0) & boxes[..., None]).any(1)
    # or two overlaps at the anchor,
    two = found.overlap.topk(2, 1).values
    overlaps = (two[:, 0] > 0) & (two[:, 0] - two[:, 1] <= 2 * OVERLAP_BOUND)
    # or a box "chose" it at a metric of 0, since it had no better.
    zeros = (found.chosen & (found.metric == 0)).any(1)
    return metrics | overlaps | zeros


SETTINGS = [
    (topk, topk2, alpha, dtype)
    for topk, topk2 in ((10, None), (13, None), (1, None), (7, 1), (10, 1))
    for alpha, dtype in ((0.5, torch.float32), (1.0, torch.float32), (0.5, torch.float16))
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("boxes", [3, 20, 60])
@pytest.mark.parametrize(("topk", "topk2", "alpha", "dtype"), SETTINGS)
def test_is_theirs(
    topk: int,
    topk2: int | None,
    alpha: float,
    dtype: torch.dtype,
    boxes: int,
    device: str,
) -> None:
    positive = different = 0
    unit = torch.finfo(dtype).eps if dtype != torch.float32 else 0.0
    for seed in range(5):
        values = problem(seed, boxes, dtype, device)
        found = theirs(values, topk, topk2, alpha)
        ours: TaskAlignedMatch = task_aligned_match(
            **values, offsets=None, topk=topk, topk2=topk2, alpha=alpha, min_side=float(STRIDES[1])
        )
        counts = found.score > 0
        rows = found.box + torch.arange(IMAGES, device=device)[:, None] * boxes
        other = counts & (ours.target_index != rows)
        is_open = may_be_others(found, topk, topk2, unit)
        assert (~other | is_open).all()
        different += int(other.sum())
        positive += int(counts.sum())
        # The scores of boxes that have what they have there.
        both = torch.cat((rows[other], ours.target_index[other]))
        missing = (ours.target_index >= 0) & ~counts & (ours.score > 1e-6)
        both = torch.cat((both, ours.target_index[missing]))
        whole = counts & ~other & ~torch.isin(rows, both)
        relative = 13 * OVERLAP_BOUND / ours.overlap.clamp(min=1e-3) + 2 * unit + 1e-6
        error = (ours.score - found.score).abs()
        assert (error <= relative * found.score + 1e-9)[whole].all()
        assert whole.sum() >= 0.95 * counts.sum()
        assert not (missing & ~is_open).any()
    assert different <= 0.003 * positive
