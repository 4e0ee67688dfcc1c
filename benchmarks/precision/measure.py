# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Pairs of boxes with predictions in half precision, and how far a loss is from exact on them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .losses import PairLoss

PICTURE = 1024  # pixels
JITTER = 0.1  # of the side
HALF = (torch.float16, torch.bfloat16)  # what autocast knows


@dataclass(frozen=True)
class Pairs:
    pred: Tensor  # (n, 4), float16 or bfloat16
    target: Tensor  # (n, 4), float32
    scale: float  # of losses, as a GradScaler's: gradients are about 1, which half dtypes hold best


@dataclass(frozen=True)
class Errors:
    """Relative; NaN or infinite where a result is."""

    gradient: float
    median: float  # the gradient of the median pair
    worst: float  # the gradient of the worst pair
    loss: float
    mean_loss: float
    exact_mean_loss: float


def make_pairs(
    side: int, box_format: str, dtype: torch.dtype, count: int, device: torch.device
) -> Pairs:
    """Drawn on the CPU: the same on every device."""
    generator = torch.Generator().manual_seed(0)
    found: list[tuple[Tensor, Tensor]] = []
    while sum(len(pred) for pred, _ in found) < count:
        truth = _true_boxes(side, count, generator)
        jitter = JITTER * side * torch.randn(truth.shape, generator=generator, dtype=truth.dtype)
        pred = _from_corners(truth + jitter, box_format).to(dtype)
        rounded = corners(pred.double(), box_format)
        # Drawn again: boxes that rounding nearly closes, and common edges, where losses have kinks.
        usable = _sides(rounded) >= _sides(truth) / 2
        usable = usable.all(dim=1) & (rounded != truth).all(dim=1)
        found.append((pred[usable], _from_corners(truth, box_format).float()[usable]))
    pred, target = (torch.cat(each)[:count].to(device) for each in zip(*found, strict=True))
    return Pairs(pred, target, side / unit(box_format))


def _true_boxes(side: int, count: int, generator: torch.Generator) -> Tensor:
    """Sides are 3/4 to 5/4 of `side`. Corners are odd eighths of a pixel: float32 holds them
    exactly in both formats, and few edges of half predictions are equal to them."""
    first, sides = torch.rand(2, count, 2, generator=generator, dtype=torch.float64)
    sides = (side * (3 + 2 * sides)).round() / 4
    first = (4 * first * (PICTURE - sides)).floor() / 4 + 1 / 8
    return torch.cat([first, first + sides], dim=1)


def unit(box_format: str) -> int:
    """Pixels in the format's unit."""
    return PICTURE if box_format == "cxcywh" else 1


def _from_corners(boxes: Tensor, box_format: str) -> Tensor:
    if box_format == "xyxy":
        return boxes
    centres = (boxes[:, :2] + boxes[:, 2:]) / 2
    return torch.cat([centres, _sides(boxes)], dim=1) / PICTURE


def corners(boxes: Tensor, box_format: str) -> Tensor:
    """In pixels."""
    if box_format == "xyxy":
        return boxes
    centres, sides = (boxes * PICTURE).chunk(2, dim=1)
    return torch.cat([centres - sides / 2, centres + sides / 2], dim=1)


def _sides(boxes: Tensor) -> Tensor:
    return boxes[:, 2:] - boxes[:, :2]


def measure(loss: PairLoss, pairs: Pairs) -> Errors:
    return _errors(evaluate(loss, pairs.pred, pairs.target, pairs.scale), exact(loss, pairs))


def measure_rounding(loss: PairLoss, pairs: Pairs) -> Errors:
    """Of the exact gradient, rounded to the prediction's dtype."""
    losses, gradient = exact(loss, pairs)
    return _errors((losses, gradient.to(pairs.pred.dtype).double()), (losses, gradient))


def exact(loss: PairLoss, pairs: Pairs) -> tuple[Tensor, Tensor]:
    return evaluate(loss, pairs.pred.double(), pairs.target.double(), pairs.scale)


def evaluate(loss: PairLoss, pred: Tensor, target: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """The losses, and the gradient by pred of their sum times `scale`; in float64."""
    leaf = pred.detach().requires_grad_()
    with torch.autocast(pred.device.type, pred.dtype, enabled=pred.dtype in HALF):
        losses = loss(leaf, target)
    (gradient,) = torch.autograd.grad(losses, leaf, torch.full_like(losses, scale))
    return losses.detach().double(), gradient.double()


def _errors(result: tuple[Tensor, Tensor], expected: tuple[Tensor, Tensor]) -> Errors:
    (losses, gradient), (exact_losses, exact_gradient) = result, expected
    difference = gradient - exact_gradient
    each = difference.norm(dim=1) / exact_gradient.norm(dim=1)
    values = (
        difference.norm() / exact_gradient.norm(),
        each.median(),
        each.amax(),
        (losses - exact_losses).norm() / exact_losses.norm(),
        losses.mean(),
        exact_losses.mean(),
    )
    return Errors(*torch.stack(values).tolist())
