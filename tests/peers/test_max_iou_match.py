# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""max_iou_match beside torchvision's matcher, bit by bit; SSD's is for test_torchvision.py, and
mmdetection's has a file of its own."""

from itertools import pairwise

import pytest
import torch
from boxloss.torch import max_iou_match
from surroundings import DEVICES
from torch import Tensor
from torchvision.models.detection._utils import Matcher
from torchvision.ops import box_iou

HEIGHT, WIDTH = 200, 328
OFFSETS = [0, 12, 12, 13, 60]  # torchvision's models call no matcher for an image without boxes


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


MATCHERS = {
    "RPN": (Matcher(0.7, 0.3, allow_low_quality_matches=True), 0.7, 0.3, "argmax"),
    "RetinaNet": (Matcher(0.5, 0.4, allow_low_quality_matches=True), 0.5, 0.4, "argmax"),
    "RoI heads": (Matcher(0.5, 0.5, allow_low_quality_matches=False), 0.5, 0.5, "none"),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", MATCHERS)
@pytest.mark.parametrize("seed", range(4))
def test_torchvision(device: str, name: str, seed: int) -> None:
    matcher, high, low, low_quality = MATCHERS[name]
    own, target = anchors().to(device), true_boxes(seed).to(device)
    options = {"high": high, "low": low, "low_quality": low_quality}
    found = max_iou_match(own, target, torch.tensor(OFFSETS), **options)
    assert (found.target_index >= 0).any()
    for b, (first, last) in enumerate(pairwise(OFFSETS)):
        index, iou = found.target_index[b], found.iou[b]
        if first == last:
            assert (index == -1).all()
            continue
        overlaps = box_iou(target[first:last], own)
        assert torch.equal(torch.where(index < 0, index, index - first), matcher(overlaps))
        assert torch.equal(iou, overlaps.max(dim=0).values)
