# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""max_iou_match by hand, with all of its options, and its IoUs.

tests/conformance has the rule in words of its own for every implementation, tests/peers the
matchers themselves.
"""

import pytest
import torch
from boxloss.torch import MaxIouMatch, max_iou_match, pairwise_iou
from problems import boxes

# The anchors' IoUs with the first box are 1, 0.5, 0.3, 0.1, with the second 0.4, 0.4, 0.2. The
# third is twice the first anchor, which is its best.
TARGET = torch.tensor([[0, 0, 10, 10], [20, 0, 30, 10], [0, 0, 10, 20]])
ANCHORS = [[0, 0, 10, height] for height in (10, 5, 3, 1)]
ANCHORS += [[20, 0, 30, height] for height in (4, 4, 2)]
IOUS = [1, 0.5, 0.3, 0.1, 0.4, 0.4, 0.2]
RULES = [
    ("none", 0.0, [0, 0, -2, -1, -2, -2, -1]),
    ("argmax", 0.0, [0, 0, -2, -1, 1, 1, -1]),
    ("argmax", 0.45, [0, 0, -2, -1, -2, -2, -1]),
    ("overwrite", 0.0, [2, 0, -2, -1, 1, 1, -1]),
    ("force", 0.0, [2, 0, -2, -1, 1, -2, -1]),
]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize(("rule", "least", "wanted"), RULES)
def test_by_hand(
    device: torch.device, rule: str, least: float, wanted: list[int], dtype: torch.dtype
) -> None:
    """Of anchors for all images, and of each image's own; the second image has no boxes."""
    anchors = torch.tensor(ANCHORS, device=device, dtype=dtype)
    target = TARGET.to(device)
    options = {"high": 0.45, "low": 0.25, "low_quality": rule, "min_pos_iou": least}
    ious = torch.tensor([IOUS, IOUS[::-1], [0.0] * 7], device=anchors.device, dtype=torch.float64)
    own = torch.stack((anchors, anchors.flip(0), anchors))
    if rule != "force":  # which anchor of equal ones has it is a matter of order
        result = max_iou_match(
            own, torch.cat((target, target)), torch.tensor([0, 3, 6, 6]), **options
        )
        second = [row + 3 if row >= 0 else row for row in wanted[::-1]]
        assert result.target_index.tolist() == [wanted, second, [-1] * 7]
        torch.testing.assert_close(result.iou, ious.to(dtype), rtol=torch.finfo(dtype).eps, atol=0)
    result = max_iou_match(anchors, target, torch.tensor([0, 3, 3]), **options)
    assert isinstance(result, MaxIouMatch)
    assert result.target_index.tolist() == [wanted, [-1] * 7]
    torch.testing.assert_close(result.iou, ious[::2].to(dtype), rtol=torch.finfo(dtype).eps, atol=0)


@pytest.mark.parametrize("unit", ["radians", "degrees"])
def test_ious_of_rotated_boxes(device: torch.device, unit: str) -> None:
    """Are `pairwise_iou`'s, within their rounding, and each anchor has its largest."""
    anchors = boxes((200,), device, box_format=unit, seed=1)
    target = boxes((9,), device, box_format=unit, seed=2)
    options = {"high": 0.3, "low": 0.3, "angle_unit": unit}
    own, offsets = torch.tensor([0, 1]), torch.tensor([0, 9], device=device)
    rows = [max_iou_match(anchors, each[None], own, **options).iou for each in target]
    matrix = torch.cat(rows)
    exact = pairwise_iou(anchors[None], target, offsets, "iou", eps=0.0, angle_unit=unit)
    assert (matrix.T - exact).abs().max() <= 2 * 3e-5
    assert (matrix > 0.3).any(1).sum() > 4
    result = max_iou_match(anchors, target, offsets, **options)
    best, box = matrix.max(0)
    assert torch.equal(result.iou[0], best)
    assert torch.equal(result.target_index[0], box.where(best >= 0.3, -1))
