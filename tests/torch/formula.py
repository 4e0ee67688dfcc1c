# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Pairings, weights and reductions in plain PyTorch, in double: what boxloss is compared with.

Which pairs count is found one by one in Python. The losses of these are cpu/reference's, of corners
or rotated boxes. Everything is on the CPU; gradients are autograd's.
"""

from typing import Any

import boxloss.torch
import torch
from boxloss._options import LOSS_PARAMETERS, ROTATED_LOSS_PARAMETERS
from boxloss.torch import BoxLosses, rotated_box_loss
from devices import by_reference
from torch import Tensor


def of_pairs(pred: Tensor, target: Tensor, loss: str, **options: Any) -> BoxLosses:
    with by_reference():
        return boxloss.torch.box_losses(pred, target, loss, reduction="none", **options)


def box_losses(
    pred: Tensor,
    target: Tensor,
    loss: str = "giou",
    *,
    weight: Tensor | None = None,
    normalizer: Tensor | None = None,
    pred_format: str = "xyxy",
    target_format: str = "xyxy",
    reduction: str = "mean",
    eps: float = 1e-7,
    eps_mode: str = "add",
    compute: torch.dtype = torch.float64,
    angle_unit: str | None = None,
    **pairing: Any,
) -> dict[str, Tensor]:
    """Arguments as boxloss', in double; `compute` is the dtype that corners and eps round to."""
    names = (LOSS_PARAMETERS if angle_unit is None else ROTATED_LOSS_PARAMETERS).get(loss, ())
    numbers = {name: pairing.pop(name) for name in names if name in pairing}
    pairs = torch.tensor(counted_pairs(pred, target, **pairing), dtype=torch.int64)
    slots, rows, places = pairs.reshape(-1, 3).unbind(-1)
    p, t = (each.reshape(-1, each.shape[-1]) for each in (pred, target))
    p, t = p[slots], t[rows]
    shape = shape_of_losses(pred, target, **pairing)
    by_set = any(pairing.get(name) is not None for name in ("pred_index", "target_index"))

    def at_places(values: Tensor) -> Tensor:
        return torch.zeros(shape.numel()).double().index_put((places,), values).reshape(shape)

    def total(values: Tensor) -> Tensor:
        return values.sum(-1) if by_set else values.sum()

    def reduced(values: Tensor) -> Tensor:
        values = at_places(values if weight is None else values * weight.reshape(-1)[places])
        if reduction == "none":
            return values
        if reduction == "sum":
            return total(values)
        counts = total(at_places(torch.ones(len(places)).double()))
        divisor = counts if normalizer is None else normalizer
        return total(values) / torch.where(counts > 0, divisor, 1)

    if angle_unit is not None:
        options = {"angle_unit": angle_unit, "eps": eps, "eps_mode": eps_mode, **numbers}
        with by_reference():
            return {"loss": reduced(rotated_box_loss(p, t, loss, reduction="none", **options))}

    exact = (corners(p, pred_format, compute), corners(t, target_format, compute))
    eps = float(torch.tensor(eps, dtype=compute))
    found = of_pairs(*exact, loss, eps=eps, eps_mode=eps_mode, **numbers)
    return {
        "loss": reduced(found.loss),
        "l1": reduced(torch.abs(p - t).sum(-1)),
        "iou": at_places(found.iou),
    }


def shape_of_losses(
    pred: Tensor,
    target: Tensor,
    *,
    offsets: Tensor | None = None,
    pred_index: Tensor | None = None,
    target_index: Tensor | None = None,
    **_: Any,
) -> torch.Size:
    """Without a reduction."""
    for index in (pred_index, target_index):
        if index is not None:
            return index.shape
    return (pred if offsets is None else target).shape[:-1]


def counted_pairs(
    pred: Tensor,
    target: Tensor,
    lengths: Tensor | None = None,
    mask: Tensor | None = None,
    offsets: Tensor | None = None,
    zero_padded: bool = False,
    pred_index: Tensor | None = None,
    target_index: Tensor | None = None,
) -> list[tuple[int, int, int]]:
    """The pairs that count: where each lies in pred, in target and in the unreduced loss."""
    if pred_index is not None or target_index is not None:
        lists = []
        for boxes, index in ((pred, pred_index), (target, target_index)):
            rows = range(boxes.shape[:-1].numel())
            lists.append((rows, rows if index is None else index.flatten().tolist()))
        (slots, by_slot), (rows, by_row) = lists
        each = enumerate(zip(by_slot, by_row, strict=True))
        return [(slot, row, k) for k, (slot, row) in each if slot in slots and row in rows]
    if offsets is not None:
        images, slots = pred.shape[:2]
        rows = len(target)
        bounds = [min(max(offset, 0), rows) for offset in offsets.tolist()]
        return [
            (image * slots + j, bounds[image] + j, bounds[image] + j)
            for image in range(images)
            for j in range(min(bounds[image + 1] - bounds[image], slots))
        ]
    counts = torch.ones(pred.shape[:-1], dtype=torch.bool)
    if zero_padded:
        counts = (target != 0).any(-1)
    if mask is not None:
        counts = mask
    if lengths is not None:
        counts = torch.arange(pred.shape[1]) < lengths[:, None]
    return [(slot, slot, slot) for slot in counts.flatten().nonzero().flatten().tolist()]


def corners(boxes: Tensor, box_format: str, compute: torch.dtype) -> Tensor:
    """Corners with the values that `compute` gives and the derivative of exact arithmetic."""
    exact = _to_corners(boxes, box_format)
    rounded = _to_corners(boxes.detach().to(compute), box_format).double()
    return exact + (rounded - exact).detach()


def _to_corners(boxes: Tensor, box_format: str) -> Tensor:
    a, b, w, h = boxes.unbind(-1)
    if box_format == "xyxy":
        return boxes
    if box_format == "xywh":
        return torch.stack((a, b, a + w, b + h), -1)
    return torch.stack((a - 0.5 * w, b - 0.5 * h, a + 0.5 * w, b + 0.5 * h), -1)
