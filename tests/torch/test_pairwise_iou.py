# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""pairwise_iou is 1 - box_loss of each pair of an image."""

import math
from itertools import pairwise
from typing import Any

import pytest
import torch
from boxloss.torch import box_loss, pairwise_iou
from comparison import assert_within
from devices import Implementation
from formulas import LOSSES
from matching import loss_less_one
from problems import FORMATS, boxes
from running import UNIT
from torch import Tensor

OFFSETS = [1, 4, 4, 9]
CPU = torch.device("cpu")


def anchors_and_boxes(
    device: torch.device,
    dtypes: tuple[torch.dtype, torch.dtype] = (torch.float32, torch.float32),
    layers: tuple[int, ...] = (),
    formats: tuple[str, str] = ("xyxy", "xyxy"),
) -> tuple[Tensor, Tensor, Tensor]:
    """Three images of seven anchors, and ten boxes: the first and the last are nobody's."""
    pred = boxes((*layers, 3, 7), device, dtypes[0], formats[0], seed=1)
    target = boxes((10,), device, dtypes[1], formats[1], seed=2)
    return pred, target, torch.tensor(OFFSETS, device=device)


def check(pred: Tensor, target: Tensor, offsets: Tensor, loss: str, **options: Any) -> None:
    result = pairwise_iou(pred, target, offsets, loss, **options)
    assert result.dtype == torch.float32
    assert result.device == pred.device
    assert result.shape == (*pred.shape[:-3], pred.shape[-2], len(target))
    is_double = torch.float64 in (pred.dtype, target.dtype)
    compute = torch.float64 if is_double else torch.float32
    formats = {f"{name}_format": "xyxy" for name in ("pred", "target")}
    every = {"loss": loss, "eps": 1e-7, **formats, **options}
    owned = offsets.tolist()
    for b, (first, last) in enumerate(pairwise(owned)):
        p, t = torch.broadcast_tensors(pred[..., b, :, None, :], target[first:last])
        values = 1 - box_loss(p.contiguous(), t.contiguous(), reduction="none", **every).double()
        # Both are within the bound of the formula.
        raw = [each.cpu().reshape(-1, 4).to(compute).double() for each in (p, t)]
        bound = loss_less_one(every, *raw, compute).error.reshape(values.shape)
        bound = bound + UNIT[compute] * (1 + values.cpu().abs())
        assert_within(result[..., first:last], values.cpu(), 2 * bound, loss)
    assert not result[..., : owned[0]].any()
    assert not result[..., owned[-1] :].any()


@pytest.mark.parametrize("eps", [(1e-7, "add"), (0.25, "clamp")])
@pytest.mark.parametrize("loss", LOSSES)
def test_is_one_less_the_loss(
    implementation: Implementation, loss: str, eps: tuple[float, str]
) -> None:
    values = anchors_and_boxes(implementation.device)
    check(*values, loss, eps=eps[0], eps_mode=eps[1])


@pytest.mark.parametrize("target", [torch.float64, torch.bfloat16, torch.uint8], ids=str)
@pytest.mark.parametrize("pred", [torch.float32, torch.float64, torch.float16], ids=str)
def test_dtypes(implementation: Implementation, pred: torch.dtype, target: torch.dtype) -> None:
    check(*anchors_and_boxes(implementation.device, (pred, target)), "ciou")


@pytest.mark.parametrize("target_format", FORMATS)
@pytest.mark.parametrize("pred_format", FORMATS)
def test_formats(implementation: Implementation, pred_format: str, target_format: str) -> None:
    values = anchors_and_boxes(implementation.device, formats=(pred_format, target_format))
    check(*values, "giou", pred_format=pred_format, target_format=target_format)


@pytest.mark.parametrize("layers", [(1,), (2, 3)])
def test_layers(implementation: Implementation, layers: tuple[int, ...]) -> None:
    check(*anchors_and_boxes(implementation.device, layers=layers), "iou")


def test_anchors_that_all_images_share(implementation: Implementation) -> None:
    pred, *others = anchors_and_boxes(implementation.device)
    check(pred[:1].expand(3, -1, -1), *others, "ciou")


def test_defaults(device: torch.device) -> None:
    values = anchors_and_boxes(device)
    named = pairwise_iou(
        *values, "ciou", pred_format="xyxy", target_format="xyxy", eps=1e-7, eps_mode="add"
    )
    assert torch.equal(pairwise_iou(*values), named)


def test_equal_and_disjoint_boxes(device: torch.device) -> None:
    pred = torch.tensor([[[0.0, 0.0, 4.0, 2.0], [8.0, 0.0, 12.0, 2.0]]], device=device)
    result = pairwise_iou(pred, pred[0], torch.tensor([0, 2], device=device), "iou", eps=0.0)
    assert result.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_nan_stays_visible(device: torch.device) -> None:
    pred, target, offsets = anchors_and_boxes(device)
    target[5, 0] = math.nan
    assert pairwise_iou(pred, target, offsets).isnan().nonzero()[:, 1].unique().tolist() == [5]


def test_has_no_gradient(device: torch.device) -> None:
    pred, target, offsets = anchors_and_boxes(device)
    assert not pairwise_iou(pred.requires_grad_(), target, offsets).requires_grad


@pytest.mark.parametrize("images", [0, 3])
def test_without_boxes(device: torch.device, images: int) -> None:
    pred, target, offsets = anchors_and_boxes(device)
    result = pairwise_iou(pred[:images], target[:0], 0 * offsets[: images + 1])
    assert result.shape == (7, 0)


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize("dynamic", [False, True])
def test_compiles_whole(device: torch.device, dynamic: bool) -> None:
    def step(raw: Tensor, target: Tensor, offsets: Tensor) -> Tensor:
        return 2 * pairwise_iou(2 * raw, target, offsets)

    pred, *others = anchors_and_boxes(device)
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    assert torch.equal(compiled(pred / 2, *others), step(pred / 2, *others))


def test_opcheck(device: torch.device) -> None:
    torch.library.opcheck(
        torch.ops.boxloss.pairwise_iou.default, (*anchors_and_boxes(device), "giou")
    )


@pytest.mark.parametrize(
    ("place", "change", "error", "text"),
    [
        (0, lambda pred: pred.int(), TypeError, "pred is "),
        (0, lambda pred: pred[0], ValueError, "pred has shape "),
        (1, lambda target: target[:, :2], ValueError, "target has shape "),
        (1, lambda target: target.bool(), TypeError, "target is "),
        (2, lambda offsets: offsets[1:], ValueError, "offsets has shape "),
        (2, lambda offsets: offsets.float(), TypeError, "offsets is "),
    ],
)
def test_errors(place: int, change: Any, error: type[Exception], text: str) -> None:
    values = list(anchors_and_boxes(CPU))
    values[place] = change(values[place])
    with pytest.raises(error, match=f"^pairwise_iou: .*{text}"):
        pairwise_iou(*values)


@pytest.mark.parametrize(
    "options",
    [
        {"loss": "l2"},
        {"eps": -1.0},
        {"eps_mode": "max"},
        {"pred_format": "a"},
        {"target_format": "b"},
    ],
)
def test_bad_options(options: dict[str, Any]) -> None:
    (name, value) = next(iter(options.items()))
    with pytest.raises(ValueError, match=f"^pairwise_iou: .*({name}|{value})"):
        pairwise_iou(*anchors_and_boxes(CPU), **options)
