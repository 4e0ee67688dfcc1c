# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""max_iou_match against the matrix of IoUs and what matchers do with it, in torch's operators."""

import math
from itertools import pairwise
from typing import Any

import pytest
import torch
from boxloss.torch import MaxIouMatch, box_loss, max_iou_match
from devices import Implementation
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor

CPU = torch.device("cpu")
RULES = ["none", "argmax", "overwrite", "force"]
OFFSETS = [0, 5, 5, 9]  # an image without boxes


@pytest.fixture
def implementation(implementation: Implementation) -> Implementation:
    """Each that serves it; the others say that they do not."""
    name = implementation.name
    if name.endswith("/kokkos"):
        anchors = grid_anchors(implementation.device)
        with pytest.raises(TypeError, match=f"^max_iou_match: {name} does not serve max_iou_match"):
            max_iou_match(anchors, anchors, torch.tensor([0, 1]), high=0.7, low=0.3)
        pytest.skip("it does not serve max_iou_match")
    return implementation


def iou_matrix(target: Tensor, anchors: Tensor) -> Tensor:
    """(n, A), in the order of operations of torchvision's box_iou."""
    areas = [(b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1]) for b in (target, anchors)]
    first = torch.max(target[:, None, :2], anchors[:, :2])
    last = torch.min(target[:, None, 2:], anchors[:, 2:])
    sides = (last - first).clamp(min=0)
    intersection = sides[..., 0] * sides[..., 1]
    return intersection / (areas[0][:, None] + areas[1] - intersection)


def matched(iou: Tensor, high: float, low: float, rule: str, least: float) -> tuple[Tensor, Tensor]:
    """Of one image, which has boxes: each anchor's box, and its best IoU."""
    best, box = iou.max(dim=0)
    match = box.clone()
    match[best < low] = -1
    match[(best >= low) & (best < high)] = -2
    if rule == "none":
        return match, best
    best_of_box, anchor = iou.max(dim=1)
    for i in range(len(iou)):
        if not best_of_box[i] >= least:
            continue
        equal = iou[i] == best_of_box[i]
        if rule == "argmax":
            match[equal] = box[equal]
        elif rule == "overwrite":
            match[equal] = i
        else:
            match[anchor[i]] = i
    return match, best


def expected(
    anchors: Tensor, target: Tensor, offsets: list[int], *options: Any
) -> tuple[Tensor, Tensor]:
    is_double = torch.float64 in (anchors.dtype, target.dtype)
    dtype = torch.float64 if is_double else torch.float32
    anchors, target = anchors.detach().cpu().to(dtype), target.detach().cpu().to(dtype)
    indices, ious = [], []
    for b, (first, last) in enumerate(pairwise(offsets)):
        own = anchors if anchors.dim() == 2 else anchors[b]
        index, iou = torch.full((len(own),), -1), torch.zeros(len(own), dtype=dtype)
        if last > first and len(own) > 0:
            index, iou = matched(iou_matrix(target[first:last], own), *options)
            index = torch.where(index >= 0, index + first, index)
        indices.append(index)
        ious.append(iou)
    shape = (len(offsets) - 1, anchors.shape[-2])
    return torch.cat([*indices, torch.empty(0, dtype=torch.int64)]).view(shape), torch.cat(
        [*ious, torch.empty(0, dtype=dtype)]
    ).view(shape)


def check(
    anchors: Tensor,
    target: Tensor,
    offsets: list[int],
    high: float = 0.7,
    low: float = 0.3,
    rule: str = "argmax",
    least: float = 0.0,
    given: Tensor | None = None,
) -> MaxIouMatch:
    given = torch.tensor(offsets) if given is None else given
    result = max_iou_match(
        anchors, target, given, high=high, low=low, low_quality=rule, min_pos_iou=least
    )
    assert isinstance(result, MaxIouMatch)
    index, iou = expected(anchors, target, offsets, high, low, rule, least)
    assert result.target_index.dtype == torch.int64
    assert {each.device for each in result} == {anchors.device}
    assert not any(each.requires_grad for each in result)
    assert torch.equal(result.target_index.cpu(), index)
    assert result.iou.dtype == iou.dtype
    assert torch.equal(result.iou.cpu().nan_to_num(nan=-5), iou.nan_to_num(nan=-5))
    return result


def grid_anchors(device: torch.device = CPU, size: int = 96, scale: float = 1.0) -> Tensor:
    """Of an image's levels, three to a cell."""
    levels = []
    for stride in (8, 16, 32):
        x, y = torch.meshgrid(
            torch.arange(0, size, stride), torch.arange(0, size, stride), indexing="xy"
        )
        w = stride * torch.tensor([1.4, 2.0, 2.8])
        sides = torch.stack((w, w.flip(0)), 1) / 2
        centres = torch.stack((x, y), -1).view(-1, 1, 2)
        levels.append(torch.cat((centres - sides, centres + sides), -1).view(-1, 4))
    return (scale * torch.cat(levels)).to(device)


def random_boxes(count: int, seed: int, device: torch.device = CPU, size: float = 96) -> Tensor:
    random = torch.Generator().manual_seed(seed)
    corner = size * torch.rand(count, 2, generator=random)
    sides = size * torch.rand(count, 2, generator=random) ** 3 + 1
    return torch.cat((corner, corner + sides), 1).to(device)


def test_by_hand(implementation: Implementation) -> None:
    anchors = torch.tensor([[0, 0, 2, 2], [0, 0, 2, 1], [1, 0, 3, 2], [9, 9, 10, 10.0]])
    target = torch.tensor([[0, 0, 2, 2], [1, 0, 3, 1], [4, 4, 5, 5.0]])
    device = implementation.device
    given = (anchors.to(device), target.to(device), torch.tensor([0, 2, 3], device=device))
    # IoUs with the first: 1, 1/2, 1/3, 0; with the second: 1/5, 1/3, 1/2, 0; the third meets none.
    wanted = {
        "none": [[0, -2, -2, -1], [-1, -1, -1, -1]],
        "argmax": [[0, -2, 1, -1], [2, 2, 2, 2]],
        "overwrite": [[0, -2, 1, -1], [2, 2, 2, 2]],
        "force": [[0, -2, 1, -1], [2, -1, -1, -1]],
    }
    for rule, index in wanted.items():
        result = max_iou_match(*given, high=0.6, low=0.2, low_quality=rule)
        assert result.target_index.tolist() == index
        assert torch.equal(result.iou.cpu(), torch.tensor([[1, 1 / 2, 1 / 2, 0], [0, 0, 0, 0.0]]))
        result = max_iou_match(*given, high=0.6, low=0.2, low_quality=rule, min_pos_iou=0.1)
        assert result.target_index[1].tolist() == [-1] * 4


@pytest.mark.parametrize("rule", RULES)
def test_inverted_boxes_overlap_nothing(implementation: Implementation, rule: str) -> None:
    device = implementation.device
    target, anchors = random_boxes(20, 1, device), random_boxes(300, 2, device)
    inverted = [2, 1, 0, 3]
    for pair in ((anchors, target[:, inverted]), (anchors[:, inverted], target)):
        result = check(*pair, OFFSETS, rule=rule)
        assert not result.iou.signbit().any()  # though 0 / -3 is -0


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(5))
def test_on_a_grid(implementation: Implementation, rule: str, seed: int) -> None:
    device = implementation.device
    anchors, target = grid_anchors(device), random_boxes(9, seed, device)
    check(anchors, target, OFFSETS, rule=rule)
    check(anchors, target, OFFSETS, 0.5, 0.4, rule, 0.2)
    check(anchors.double(), target, OFFSETS, 0.5, 0.5, rule)


@st.composite
def settings(draw: st.DrawFn) -> dict[str, Any]:
    low, high = sorted(draw(st.lists(st.sampled_from([-1, 0, 0.3, 0.4, 0.5, 0.7, 2]), min_size=2)))[
        :2
    ]
    return {
        "offsets": sorted(draw(st.lists(st.integers(0, 20), min_size=1, max_size=5))),
        "high": high,
        "low": low,
        "rule": draw(st.sampled_from(RULES)),
        "least": draw(st.sampled_from([0.0, 0.3, 0.5, -1.0])),
    }


@given(
    settings=settings(),
    anchors=st.integers(0, 300),
    seed=st.integers(0, 999),
    steps=st.sampled_from([4, 12, None]),
)
@example({"offsets": [0, 0], "high": 0, "low": 0, "rule": "argmax", "least": 0}, 20, 0, None)
@example({"offsets": [0], "high": 0.7, "low": 0.3, "rule": "argmax", "least": 0}, 20, 0, None)
@example({"offsets": [3, 20], "high": 0.7, "low": 0.3, "rule": "force", "least": 0}, 0, 0, None)
def test_any_boxes(settings: dict[str, Any], anchors: int, seed: int, steps: int | None) -> None:
    """Also with few coordinates: equal, touching and empty boxes."""
    images = len(settings["offsets"]) - 1
    target = random_boxes(20, seed)
    boxes = random_boxes(images * anchors, seed + 1000).view(images, anchors, 4)
    if steps is not None:
        target, boxes = ((each / 192 * steps).round() for each in (target, boxes))
    check(boxes, target, **settings)
    check(boxes.double(), target, **settings)
    if images > 0:
        check(boxes[0], target, **settings)


@given(
    seed=st.integers(0, 999),
    rule=st.sampled_from(RULES),
    number=st.sampled_from([math.nan, math.inf, -math.inf]),
    where=st.sampled_from(["anchors", "target", "both"]),
)
def test_what_is_not_finite(seed: int, rule: str, number: float, where: str) -> None:
    anchors, target = random_boxes(200, seed), random_boxes(9, seed + 1)
    random = torch.Generator().manual_seed(seed)
    for boxes in (anchors,) * (where != "target") + (target,) * (where != "anchors"):
        boxes.view(-1)[torch.randint(boxes.numel(), (3,), generator=random)] = number
    check(anchors, target, OFFSETS, rule=rule)


DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("target_dtype", [*DTYPES, torch.uint8, torch.int64], ids=str)
def test_dtypes(device: torch.device, dtype: torch.dtype, target_dtype: torch.dtype) -> None:
    anchors, target = grid_anchors(device).to(dtype), random_boxes(9, 3, device).to(target_dtype)
    check(anchors, target, OFFSETS)


def test_the_losses_take_them(device: torch.device) -> None:
    anchors, target = grid_anchors(device), random_boxes(9, 3, device)
    index = max_iou_match(
        anchors, target, torch.tensor(OFFSETS), high=0.5, low=0.4, low_quality="argmax"
    ).target_index
    pred = anchors + torch.rand_like(anchors)
    pred = pred.expand(3, -1, -1).reshape(-1, 4)
    loss = box_loss(pred, target, target_index=index.view(-1))
    own = index.view(-1) >= 0
    torch.testing.assert_close(loss, box_loss(pred[own], target[index.view(-1)[own]]))
