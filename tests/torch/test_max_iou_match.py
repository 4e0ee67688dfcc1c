# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""max_iou_match by hand, with all of its options.

tests/conformance has the rule in words of its own for every implementation, tests/core rotated
boxes' IoU by another algorithm, tests/peers the matchers themselves.
"""

import math
from typing import Any

import pytest
import torch
from boxloss.torch import MaxIouMatch, max_iou_match
from devices import Implementation

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


# Of an anchor of 10 x 10 the upper part of that height, whose IoU is a tenth of it.
def upper(height: float) -> list[float]:
    return [0, 0, 10, height]


Boxes = list[list[float]]
ANCHOR, FAR, POINT, NAN_BOX = upper(10), [50, 50, 60, 60], [5, 5, 5, 5], [0, 0, math.nan, 10]
# The first overlaps the anchor more; the anchor is the best of both.
OF_TWO = [ANCHOR, FAR], [upper(4), upper(2)]
FIRST_OF_EQUAL = [upper(8), upper(9), [0, 0, 9, 10], upper(7)]
EQUAL_ANCHORS = [FAR, ANCHOR, ANCHOR], [upper(2)]
MEETS_NONE = [ANCHOR, FAR], [upper(9), [90, 90, 99, 99]]
# Anchors and boxes of one image, `min_pos_iou`, and the rows by `low_quality`.
EXAMPLES: list[tuple[Boxes, Boxes, float, dict[Any, list[int]]]] = [
    # A box, from `high` on; to be ignored, from `low` on; none.
    *(([ANCHOR], [upper(height)], 0, {"none": [0]}) for height in (10, 7)),
    *(([ANCHOR], [upper(height)], 0, {"none": [-2]}) for height in (6.9, 3)),
    *(([ANCHOR], [box], 0, {"none": [-1]}) for box in (upper(2.9), upper(0), FAR)),
    ([ANCHOR], FIRST_OF_EQUAL, 0, {"none": [1]}),
    (*OF_TWO, 0, {"none": [-2, -1], "argmax": [0, -1], "overwrite": [1, -1], "force": [1, -1]}),
    # The second box's best is less, then the first's, too.
    (*OF_TWO, 0.3, {"argmax": [0, -1], "overwrite": [0, -1], "force": [0, -1]}),
    (*OF_TWO, 0.5, {"argmax": [-2, -1], "overwrite": [-2, -1], "force": [-2, -1]}),
    # All of equally good anchors are the best, or the first is.
    (*EQUAL_ANCHORS, 0, {"argmax": [-1, 0, 0], "overwrite": [-1, 0, 0], "force": [-1, 0, -1]}),
    # Every anchor is the best of a box that meets none.
    (*MEETS_NONE, 0, {"none": [0, -1], "argmax": [0, 0], "overwrite": [1, 1], "force": [1, -1]}),
    (*MEETS_NONE, 1e-9, {"argmax": [0, -1], "overwrite": [0, -1], "force": [0, -1]}),
    # NaN is the best of all, but a box whose best IoU is NaN has no part.
    (
        [ANCHOR, FAR],
        [ANCHOR, NAN_BOX, NAN_BOX],
        0,
        {"none": [1, 1], "argmax": [1, 1], "force": [0, 1]},
    ),
    ([NAN_BOX, ANCHOR], [upper(2), FAR], 0, {"none": [0, -1], "argmax": [0, -1]}),
    # An empty box and an empty anchor have NaN, 0 / 0, wherever they are.
    ([ANCHOR, [500, 5, 500, 5]], [ANCHOR, POINT], 0, {"none": [0, 1]}),
    ([ANCHOR], [POINT], 0, {"none": [-1]}),
]


def matched(
    implementation: Implementation, own: Boxes, target: Boxes, offsets: list[int], **options: Any
) -> MaxIouMatch:
    device = implementation.device
    lists = (torch.tensor(each, device=device, dtype=torch.float32) for each in (own, target))
    return max_iou_match(*lists, torch.tensor(offsets), high=0.7, low=0.3, **options)


@pytest.mark.parametrize(("own", "target", "least", "wanted"), EXAMPLES)
def test_examples(
    implementation: Implementation,
    own: Boxes,
    target: Boxes,
    least: float,
    wanted: dict[Any, list[int]],
) -> None:
    for rule, rows in wanted.items():
        options = {"low_quality": rule, "min_pos_iou": least}
        found = matched(implementation, own, target, [0, len(target)], **options)
        assert found.target_index.tolist() == [rows]
        iou = found.iou[0, 0].item()
        assert target is not FIRST_OF_EQUAL or iou == torch.tensor(0.9).item()
        assert own[0] is not NAN_BOX or math.isnan(iou)


@pytest.mark.parametrize("rule", ["none", "argmax"])
def test_images_have_boxes_of_their_own_or_none(implementation: Implementation, rule: str) -> None:
    boxes_of_all = [FAR, upper(8), FAR, ANCHOR]
    found = matched(
        implementation, [ANCHOR, FAR], boxes_of_all, [1, 2, 2, 3], low_quality=rule
    ).target_index
    assert found.tolist() == [[1, -1], [-1, -1], [-1, 2]]


@pytest.mark.parametrize(("unit", "eighth"), [("radians", math.pi / 4), ("degrees", -45.0)])
def test_ious_of_rotated_boxes_by_hand(
    implementation: Implementation, unit: Any, eighth: float
) -> None:
    """Angles turn clockwise in radians. Of a square and itself turned by an eighth, the octagon has
    the area 8 (sqrt(2) - 1). Of the strip across the square's corner at (6, 6), which an angle of
    the other sign would hardly meet, it has 1.75."""
    square = (5, 5, 2, 2, 0)
    wanted = {
        square: 1,
        (5, 5, 2, 2, eighth): math.sqrt(0.5),
        (6, 5, 2, 2, 0): 1 / 3,
        (5, 5, 4, 1, 2 * eighth): 1 / 3,
        (8, 8, 2, 2, eighth): 0,
        (5, 5, 2, 0, 0): 0,
        (6, 6, 4, 1, eighth): 1.75 / 6.25,
        (5, 5, math.nan, 2, 0): math.nan,
    }
    device = implementation.device
    lists = (torch.tensor(each, device=device).double() for each in ([*wanted], [square]))
    found = max_iou_match(*lists, torch.tensor([0, 1]), high=0.5, low=0.5, angle_unit=unit)
    right = pytest.approx([*wanted.values()], abs=1e-15, nan_ok=True)
    assert found.iou[0].tolist() == right
