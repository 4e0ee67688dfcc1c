# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""A training step as DETR has it: all decoder layers in one call, beside torch layer by layer."""

from typing import Any

import pytest
import torch
from boxloss.torch import box_losses, collate_matches
from comparison import UNIT_ROUNDOFF
from problems import boxes
from torch import Tensor
from torch.nn.functional import l1_loss

LAYERS, IMAGES, QUERIES = 6, 4, 20
COUNTS = (3, 0, 7, 1)
DOUBLE = torch.float64
Matches = list[list[tuple[Tensor, Tensor]]]


def matches() -> Matches:
    """[layer][image]: every true box and a query of its own, another one in each layer."""
    random = torch.Generator().manual_seed(0)
    return [
        [
            (
                torch.randperm(QUERIES, generator=random)[:count].sort().values,
                torch.randperm(count, generator=random),
            )
            for count in COUNTS
        ]
        for _ in range(LAYERS)
    ]


def outputs(device: torch.device, dtype: torch.dtype) -> tuple[Tensor, list[Tensor]]:
    """A decoder's boxes and the images' true ones, relative to the image."""
    pred = boxes((LAYERS, IMAGES, QUERIES), device, dtype, "cxcywh", seed=1) / 64
    true = [boxes((n,), device, dtype, "cxcywh", seed=2 + n) / 64 for n in COUNTS]
    return pred.detach().requires_grad_(), true


def corners(boxes: Tensor) -> Tensor:
    centre, size = boxes[:, :2], boxes[:, 2:]
    return torch.cat((centre - 0.5 * size, centre + 0.5 * size), -1)


def generalized_iou(a: Tensor, b: Tensor) -> Tensor:
    """Of all pairs, as the published code has it."""

    def area(boxes: Tensor) -> Tensor:
        return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])

    first = torch.max(a[:, None, :2], b[:, :2])
    last = torch.min(a[:, None, 2:], b[:, 2:])
    inter = (last - first).clamp(min=0).prod(-1)
    union = area(a)[:, None] + area(b) - inter
    outer = torch.max(a[:, None, 2:], b[:, 2:]) - torch.min(a[:, None, :2], b[:, :2])
    enclosing = outer.clamp(min=0).prod(-1)
    return inter / union - (enclosing - union) / enclosing


def as_published(pred: Tensor, true: list[Tensor], found: Matches, number: float) -> list[Tensor]:
    """loss_bbox and loss_giou of each layer, (layers) both."""
    l1s, gious = [], []
    for layer, of_layer in zip(pred, found, strict=True):
        batch = torch.cat([torch.full_like(src, i) for i, (src, _) in enumerate(of_layer)])
        src = torch.cat([src for src, _ in of_layer])
        matched = layer[batch.to(pred.device), src.to(pred.device)]
        wanted = torch.cat(
            [boxes[tgt.to(pred.device)] for boxes, (_, tgt) in zip(true, of_layer, strict=True)]
        )
        l1s.append(l1_loss(matched, wanted, reduction="none").sum() / number)
        giou = torch.diag(generalized_iou(corners(matched), corners(wanted)))
        gious.append((1 - giou).sum() / number)
    return [torch.stack(l1s), torch.stack(gious)]


def in_one_call(
    pred: Tensor, true: list[Tensor], found: Matches, **options: Any
) -> tuple[Tensor, Tensor, Tensor]:
    pred_index, target_index = collate_matches(found, COUNTS, QUERIES, device=pred.device)
    formats = {"pred_format": "cxcywh", "target_format": "cxcywh"}
    loss, l1, iou = box_losses(
        pred,
        torch.cat(true),
        pred_index=pred_index,
        target_index=target_index,
        eps=0.0,
        **formats,  # type: ignore[arg-type]
        **options,
    )
    return l1, loss, iou


@pytest.mark.parametrize(
    ("number", "options"), [(1.0, {"reduction": "sum"}), (11.0, {"normalizer": [11.0] * LAYERS})]
)
def test_a_step(device: torch.device, number: float, options: dict[str, Any]) -> None:
    found = matches()
    if "normalizer" in options:
        options = {"normalizer": torch.tensor(options["normalizer"], device=device)}
    pred, true = outputs(device, DOUBLE)
    factors = torch.linspace(0.5, 2, LAYERS, dtype=DOUBLE, device=device)

    l1, loss, iou = in_one_call(pred, true, found, **options)
    total = (factors * (5 * l1 + 2 * loss)).sum()
    (gradient,) = torch.autograd.grad(total, pred)
    wanted = as_published(pred, true, found, number)
    total = (factors * (5 * wanted[0] + 2 * wanted[1])).sum()
    (wanted_gradient,) = torch.autograd.grad(total, pred)

    # Some 200 roundings of sums below 44, and of derivatives below 4 / side = 64, times 10.
    u = UNIT_ROUNDOFF[DOUBLE]
    assert l1.shape == loss.shape == (LAYERS,)
    assert (l1 - wanted[0]).abs().max() <= 200 * 44 * u
    assert (loss - wanted[1]).abs().max() <= 200 * 44 * u
    assert (gradient - wanted_gradient).abs().max() <= 200 * 640 * u
    matched = gradient.reshape(-1, 4).any(-1).sum()
    assert matched == LAYERS * sum(len(src) for src, _ in found[0])
    # What a query's quality is learned from.
    assert iou.shape == (LAYERS, sum(len(src) for src, _ in found[0]))
    assert not iou.requires_grad


def test_padding_changes_nothing(device: torch.device) -> None:
    """For graphs, whose shapes stay: as many pairs in each step."""
    pred, true = outputs(device, torch.float32)
    found = matches()
    results = []
    for pairs in (None, 40):
        pred_index, target_index = collate_matches(
            found, COUNTS, QUERIES, device=device, pairs=pairs
        )
        index = {"pred_index": pred_index, "target_index": target_index}
        result = box_losses(pred, torch.cat(true), **index)
        (gradient,) = torch.autograd.grad((result.loss + result.l1).sum(), pred)
        results.append((result.loss.detach(), result.l1.detach(), gradient))
        assert result.iou.shape == (LAYERS, pairs or 11)
        assert not result.iou[:, 11:].any()
    for one, other in zip(*results, strict=True):
        assert torch.allclose(one, other, rtol=1e-4, atol=0)


def test_a_batch_without_true_boxes(device: torch.device) -> None:
    pred = boxes((LAYERS, IMAGES, QUERIES), device, seed=1).requires_grad_()
    none = torch.empty(0, dtype=torch.int64)
    found = [[(none, none)] * IMAGES] * LAYERS
    pred_index, target_index = collate_matches(found, [0] * IMAGES, QUERIES, device=device)
    index = {"pred_index": pred_index, "target_index": target_index}
    result = box_losses(pred, pred.new_zeros(0, 4), **index)
    assert result.loss.tolist() == result.l1.tolist() == [0] * LAYERS
    (gradient,) = torch.autograd.grad((result.loss + result.l1).sum(), pred)
    assert not gradient.any()
