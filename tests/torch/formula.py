# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The losses in plain PyTorch, written out in double: what boxloss is compared with.

For the formula of one pair see formulas.py. Which pairs count is found slot by slot in Python, and
pairs that do not count never enter the formula. Everything is on the CPU; gradients are autograd's.
"""

import torch
from formulas import FORMULAS, Pair
from torch import Tensor


def box_loss(
    pred: Tensor,
    target: Tensor,
    loss: str = "giou",
    *,
    weight: Tensor | None = None,
    normalizer: Tensor | None = None,
    lengths: Tensor | None = None,
    mask: Tensor | None = None,
    offsets: Tensor | None = None,
    zero_padded: bool = False,
    pred_format: str = "xyxy",
    target_format: str = "xyxy",
    reduction: str = "mean",
    eps: float = 1e-7,
    eps_mode: str = "add",
    compute: torch.dtype = torch.float64,
) -> Tensor:
    """Arguments as boxloss', in double; `compute` is the dtype that corners and eps round to."""
    pairs = counted_pairs(pred, target, lengths, mask, offsets, zero_padded)
    slots = torch.tensor([slot for slot, _ in pairs], dtype=torch.int64)
    rows = torch.tensor([row for _, row in pairs], dtype=torch.int64)
    p = corners(pred.reshape(-1, 4)[slots], pred_format, compute)
    t = corners(target.reshape(-1, 4)[rows], target_format, compute)
    losses = pair_losses(loss, p, t, torch.tensor(eps, dtype=compute).double(), eps_mode)
    if weight is not None:
        losses = losses * weight.reshape(-1)[rows]
    if reduction == "none":
        shape = target.shape[:-1]
        return torch.zeros(shape.numel()).double().index_put((rows,), losses).reshape(shape)
    if reduction == "sum":
        return losses.sum()
    return losses.sum() / (max(len(pairs), 1) if normalizer is None else normalizer)


def counted_pairs(
    pred: Tensor,
    target: Tensor,
    lengths: Tensor | None = None,
    mask: Tensor | None = None,
    offsets: Tensor | None = None,
    zero_padded: bool = False,
) -> list[tuple[int, int]]:
    """The pairs that count: the number of the slot in pred, and of the box in target."""
    if offsets is not None:
        images, slots = pred.shape[:2]
        rows = len(target)
        bounds = [min(max(offset, 0), rows) for offset in offsets.tolist()]
        return [
            (image * slots + j, bounds[image] + j)
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
    return [(slot, slot) for slot in counts.flatten().nonzero().flatten().tolist()]


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


def pair_losses(loss: str, p: Tensor, t: Tensor, eps: Tensor, eps_mode: str) -> Tensor:
    """Of corner boxes."""
    return FORMULAS[loss](Pair(p.unbind(-1), t.unbind(-1), eps, eps_mode))
