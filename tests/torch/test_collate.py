# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Batches from one tensor for each image."""

from collections.abc import Callable

import pytest
import torch
from boxloss.torch import check_indices, collate_padded, collate_ragged, giou_loss
from comparison import LOSS, roundoff
from problems import boxes
from torch import Tensor

COUNTS = (2, 0, 5, 1)


def images(device: torch.device, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    return [boxes((count,), device, dtype, seed=count) for count in COUNTS]


@pytest.mark.parametrize("dtype", [torch.float32, torch.uint8], ids=str)
def test_ragged(device: torch.device, dtype: torch.dtype) -> None:
    each = images(device, dtype)
    rows, offsets = collate_ragged(each)
    assert torch.equal(rows, torch.cat(each))
    assert offsets.tolist() == [0, 2, 2, 7, 8]
    assert offsets.dtype == torch.int64
    assert rows.device == offsets.device == each[0].device


@pytest.mark.parametrize("slots", [None, 5, 7])
def test_padded(device: torch.device, slots: int | None) -> None:
    each = images(device)
    padded, lengths = collate_padded(each, slots)
    assert padded.shape == (4, slots or 5, 4)
    assert padded.dtype == each[0].dtype
    assert lengths.tolist() == list(COUNTS)
    assert padded.device == lengths.device == each[0].device
    for image, boxes_of_image in zip(padded, each, strict=True):
        assert torch.equal(image[: len(boxes_of_image)], boxes_of_image)
        assert not image[len(boxes_of_image) :].any()


def test_all_layouts_give_one_loss(device: torch.device) -> None:
    each = images(device)
    pred = boxes((4, 5), device, seed=9)
    padded, lengths = collate_padded(each)
    rows, offsets = collate_ragged(each)
    check_indices(pred, padded, lengths=lengths)
    check_indices(pred, rows, offsets=offsets)
    loss = giou_loss(pred, padded, lengths=lengths)
    zero_padded = giou_loss(pred, padded, zero_padded=True)
    ragged = giou_loss(pred, rows, offsets=offsets)
    for other in (zero_padded, ragged):
        assert torch.allclose(loss, other, rtol=1e-6, atol=2 * LOSS * roundoff(torch.float32))


def test_images_without_boxes(device: torch.device) -> None:
    none = [boxes((0,), device)] * 2
    rows, offsets = collate_ragged(none)
    assert rows.shape == (0, 4)
    assert offsets.tolist() == [0, 0, 0]
    padded, lengths = collate_padded(none)
    assert padded.shape == (2, 0, 4)
    assert lengths.tolist() == [0, 0]


def test_gradients_flow_through(device: torch.device) -> None:
    each = [image.requires_grad_() for image in images(device)]
    for collated in (collate_ragged(each)[0], collate_padded(each)[0]):
        gradients = torch.autograd.grad(collated.sum(), each)
        assert all(bool((gradient == 1).all()) for gradient in gradients)


@pytest.mark.parametrize("collate", [collate_ragged, collate_padded])
def test_errors(device: torch.device, collate: Callable[[list[Tensor]], object]) -> None:
    good = boxes((2,), device)
    with pytest.raises(ValueError, match="boxes is empty: it must hold one tensor for each image"):
        collate([])
    with pytest.raises(ValueError, match=r"boxes\[1\] has shape \(4,\); it must be \(n, 4\)"):
        collate([good, good[0]])
    with pytest.raises(ValueError, match=r"boxes\[0\] has shape \(2, 3\); it must be \(n, 4\)"):
        collate([good[:, :3], good])
    with pytest.raises(TypeError, match=r"boxes\[1\] is torch.float64, boxes\[0\] is "):
        collate([good, good.double()])
    with pytest.raises(RuntimeError, match=r"boxes\[1\] is on meta, boxes\[0\] on "):
        collate([good, good.to("meta")])


def test_too_few_slots(device: torch.device) -> None:
    with pytest.raises(ValueError, match=r"boxes\[2\] has 5 boxes; slots is 3"):
        collate_padded(images(device), slots=3)
