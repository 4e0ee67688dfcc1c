# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""max_iou_match against the matrix of IoUs and what matchers do with it, in torch's operators.

Special boxes, dtypes and sizes are for tests/conformance; tests/peers has the matchers themselves.
"""

from itertools import pairwise

import pytest
import torch
from boxloss.torch import MaxIouMatch, max_iou_match, pairwise_iou
from devices import Implementation
from problems import boxes
from torch import Tensor

CPU = torch.device("cpu")
OFFSETS = [0, 5, 5, 9]  # an image without boxes


def iou_matrix(target: Tensor, anchors: Tensor) -> Tensor:
    """(n, A), in the order of operations of torchvision's box_iou."""
    areas = [(b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1]) for b in (target, anchors)]
    first = torch.max(target[:, None, :2], anchors[:, :2])
    last = torch.min(target[:, None, 2:], anchors[:, 2:])
    sides = (last - first).clamp(min=0)
    intersection = sides[..., 0] * sides[..., 1]
    return intersection / (areas[0][:, None] + areas[1] - intersection)


def matched(iou: Tensor, high: float, low: float, rule: str, least: float) -> Tensor:
    """Of one image, which has boxes: each anchor's box."""
    best, box = iou.max(dim=0)
    match = box.clone()
    match[best < low] = -1
    match[(best >= low) & (best < high)] = -2
    best_of_box, anchor = iou.max(dim=1)
    for i in range(len(iou)):
        equal = iou[i] == best_of_box[i]
        if rule == "none" or best_of_box[i] < least:
            continue
        if rule == "argmax":
            match[equal] = box[equal]
        elif rule == "overwrite":
            match[equal] = i
        else:
            match[anchor[i]] = i
    return match


def check(
    anchors: Tensor, target: Tensor, high: float, low: float, rule: str, least: float
) -> None:
    result = max_iou_match(
        anchors,
        target,
        torch.tensor(OFFSETS),
        high=high,
        low=low,
        low_quality=rule,
        min_pos_iou=least,
    )
    assert isinstance(result, MaxIouMatch)
    is_double = torch.float64 in (anchors.dtype, target.dtype)
    dtype = torch.float64 if is_double else torch.float32
    for b, (first, last) in enumerate(pairwise(OFFSETS)):
        own = (anchors if anchors.dim() == 2 else anchors[b]).cpu().to(dtype)
        index, best = torch.full((len(own),), -1), torch.zeros(len(own), dtype=dtype)
        if last > first:
            iou = iou_matrix(target[first:last].cpu().to(dtype), own)
            index, best = matched(iou, high, low, rule, least), iou.amax(0)
            index = torch.where(index >= 0, index + first, index)
        assert torch.equal(result.target_index[b].cpu(), index)
        assert torch.equal(result.iou[b].cpu(), best)


def grid_anchors(device: torch.device) -> Tensor:
    """Of an image's levels, three to a cell."""
    levels = []
    for stride in (8, 16, 32):
        x, y = torch.meshgrid(
            torch.arange(0, 96, stride), torch.arange(0, 96, stride), indexing="xy"
        )
        w = stride * torch.tensor([1.4, 2.0, 2.8])
        sides = torch.stack((w, w.flip(0)), 1) / 2
        centres = torch.stack((x, y), -1).view(-1, 1, 2)
        levels.append(torch.cat((centres - sides, centres + sides), -1).view(-1, 4))
    return torch.cat(levels).to(device)


def random_boxes(count: int, seed: int, device: torch.device) -> Tensor:
    random = torch.Generator().manual_seed(seed)
    corner = 96 * torch.rand(count, 2, generator=random)
    sides = 96 * torch.rand(count, 2, generator=random) ** 3 + 1
    return torch.cat((corner, corner + sides), 1).to(device)


@pytest.mark.parametrize("rule", ["none", "argmax", "overwrite", "force"])
@pytest.mark.parametrize("seed", range(5))
def test_is_the_rule(implementation: Implementation, rule: str, seed: int) -> None:
    device = implementation.device
    anchors, target = grid_anchors(device), random_boxes(9, seed, device)
    check(anchors, target, 0.7, 0.3, rule, 0.0)
    check(anchors.bfloat16(), target.to(torch.uint8), 0.5, 0.4, rule, 0.2)
    check(anchors.double(), target, 0.5, 0.5, rule, 0.0)
    # Of few coordinates: many ties, and each image has anchors of its own.
    few = random_boxes(600, seed + 1000, device).div(24).round().view(3, 200, 4)
    check(
        few, target.div(24).round() + torch.tensor([0, 0, 1, 1], device=device), 0.5, 0.3, rule, 0.3
    )


@pytest.mark.parametrize("unit", ["radians", "degrees"])
def test_is_the_rule_for_rotated_boxes(device: torch.device, unit: str) -> None:
    """By the overlaps that each box has alone, which `pairwise_iou` has within their rounding."""
    anchors = boxes((200,), device, box_format=unit, seed=1)
    target = boxes((9,), device, box_format=unit, seed=2)
    own, angle = torch.tensor([0, 1]), {"angle_unit": unit}
    offsets = torch.tensor([0, 9], device=device)
    rows = [max_iou_match(anchors, each[None], own, high=0, low=0, **angle).iou for each in target]
    matrix = torch.cat(rows)
    exact = pairwise_iou(anchors[None], target, offsets, "iou", eps=0.0, **angle)
    assert (matrix.T - exact).abs().max() <= 2 * 3e-5
    assert (matrix > 0.3).any(1).sum() > 4
    for rule in ("none", "argmax", "overwrite", "force"):
        options = {"high": 0.5, "low": 0.4, "low_quality": rule, "min_pos_iou": 0.1, **angle}
        result = max_iou_match(anchors, target, offsets, **options)
        assert torch.equal(result.iou[0], matrix.amax(0))
        wanted = matched(matrix.cpu(), 0.5, 0.4, rule, 0.1)
        assert torch.equal(result.target_index[0].cpu(), wanted)
