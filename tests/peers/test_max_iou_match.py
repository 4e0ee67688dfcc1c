# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""max_iou_match beside torchvision's and mmdetection's matchers, bit by bit."""

from collections.abc import Iterator
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from boxloss.torch import max_iou_match
from mmdet_files import mmdet_assigner
from surroundings import DEVICES
from torch import Tensor
from torchvision.models.detection._utils import Matcher, SSDMatcher
from torchvision.ops import box_iou

HEIGHT, WIDTH = 200, 328
OFFSETS = [0, 12, 12, 13, 60]  # torchvision's models call no matcher for an image without boxes
SEEDS = range(4)
MMDET = mmdet_assigner()


def true_boxes(seed: int) -> Tensor:
    """One far outside of the image meets no anchor."""
    random = torch.Generator().manual_seed(seed)
    sides = 4 + 180 * torch.rand(OFFSETS[-1], 2, generator=random) ** 3
    corner = torch.rand(OFFSETS[-1], 2, generator=random) * torch.tensor([WIDTH, HEIGHT])
    corner[40] += 10_000
    if seed % 2 == 0:  # ties
        corner, sides = corner.round(), sides.round()
    return torch.cat((corner, corner + sides), 1)


def anchors() -> Tensor:
    """Three shapes of each size at each place of two grids."""
    levels = []
    for stride, sizes in ((8, (32, 64)), (16, (128, 256))):
        x, y = (torch.arange(stride / 2, length, stride) for length in (WIDTH, HEIGHT))
        centres = torch.cartesian_prod(y, x).flip(1)
        sides = [(size * ratio, size / ratio) for size in sizes for ratio in (0.7, 1.0, 1.4)]
        halves = torch.tensor(sides) / 2
        levels.append(torch.cat((centres[:, None] - halves, centres[:, None] + halves), 2))
    return torch.cat([each.flatten(0, 1) for each in levels])


def assert_same(device: str, seed: int, match: Any, **options: Any) -> None:
    """match: the boxes of an image and the anchors, to each anchor's box, -1 or -2, and its IoU."""
    own, target = anchors().to(device), true_boxes(seed).to(device)
    found = max_iou_match(own, target, torch.tensor(OFFSETS), **options)
    assert (found.target_index >= 0).any()
    for b, (first, last) in enumerate(pairwise(OFFSETS)):
        index, iou = found.target_index[b], found.iou[b]
        if first == last:
            assert (index == -1).all()
            continue
        wanted, best = match(target[first:last], own)
        assert torch.equal(torch.where(index < 0, index, index - first), wanted)
        assert torch.equal(iou, best)


MATCHERS = {
    "RPN": (Matcher(0.7, 0.3, allow_low_quality_matches=True), 0.7, 0.3, "argmax"),
    "RetinaNet": (Matcher(0.5, 0.4, allow_low_quality_matches=True), 0.5, 0.4, "argmax"),
    "SSD": (SSDMatcher(0.5), 0.5, 0.5, "force"),
    "RoI heads": (Matcher(0.5, 0.5, allow_low_quality_matches=False), 0.5, 0.5, "none"),
}


@pytest.fixture
def in_order() -> Iterator[None]:
    """SSDMatcher gives an anchor to each box whose best it is in one assignment. A GPU keeps any of
    several, unless it is to be deterministic: then the last, as a CPU does."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.usefixtures("in_order")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", MATCHERS)
@pytest.mark.parametrize("seed", SEEDS)
def test_torchvision(device: str, name: str, seed: int) -> None:
    matcher, high, low, low_quality = MATCHERS[name]

    def match(target: Tensor, anchors: Tensor) -> tuple[Tensor, Tensor]:
        iou = box_iou(target, anchors)
        return matcher(iou), iou.max(dim=0).values

    assert_same(device, seed, match, high=high, low=low, low_quality=low_quality)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("least", [0.0, 0.3])
@pytest.mark.parametrize("low_quality", ["none", "overwrite", "force"])
@pytest.mark.parametrize("seed", SEEDS)
def test_mmdetection(device: str, low_quality: str, least: float, seed: int) -> None:
    assigner = MMDET.MaxIoUAssigner(
        pos_iou_thr=0.7,
        neg_iou_thr=0.3,
        min_pos_iou=least,
        match_low_quality=low_quality != "none",
        gt_max_assign_all=low_quality == "overwrite",
    )

    def match(target: Tensor, anchors: Tensor) -> tuple[Tensor, Tensor]:
        labels = torch.zeros(len(target), dtype=torch.int64, device=target.device)
        boxes = SimpleNamespace(bboxes=target, labels=labels)
        result = assigner.assign(SimpleNamespace(priors=anchors), boxes)
        # A box is counted from 1, 0 is none, -1 to be ignored.
        index = torch.where(result.gt_inds < 0, -2, result.gt_inds - 1)
        return index, result.max_overlaps

    options = {"low_quality": low_quality, "min_pos_iou": least}
    assert_same(device, seed, match, high=0.7, low=0.3, **options)
