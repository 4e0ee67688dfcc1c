# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What a dtype costs in exactness: by keeping the boxes in it, and by computing with them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from boxloss.torch import giou_loss
from torch import Tensor

from ..common.cases import DTYPES
from ..common.losses import EPS, giou
from ..precision.losses import PairLoss
from ..precision.measure import JITTER, PICTURE, corners, evaluate, unit
from ..precision.report import SIDES

Row = dict[str, Any]  # where it was measured, and the errors
Result = tuple[Tensor, Tensor]  # losses and gradients of the pairs, in float64

PAIRS = {
    "xyxy": ("f32/f32", "bf16/f32", "f16/f32", "bf16/bf16", "f32/u8", "bf16/u8", "f16/u8"),
    "cxcywh": ("f32/f32", "bf16/f32", "f16/f32", "bf16/bf16"),
}
LARGEST_U8 = 255
LONGEST = 5 / 4  # of the side
SHARES = {"median": 0.5, "nine_tenths": 0.9}  # of all pairs, that err no more

STORAGE = "storage"
BOXLOSS = "boxloss"
USUAL = "usual code"
WRAPPING = "usual code, areas in uint8"
ROUNDING = "rounding the exact gradient"


def measure_errors(count: int, device: torch.device) -> Iterator[Row]:
    """Each of boxes in a picture of 1,024 pixels, or of 255, where uint8 ends."""
    for box_format, pairs in PAIRS.items():
        for pair in pairs:
            picture = LARGEST_U8 if pair.endswith("/u8") else PICTURE
            for side in SIDES:
                if LONGEST * side <= picture:
                    where = {"format": box_format, "dtypes": pair, "side": side, "picture": picture}
                    exact = exact_boxes(side, picture, box_format, count, device)
                    scale = side / unit(box_format)
                    for name, errors in errors_of(*exact, box_format, pair, scale).items():
                        yield {**where, "variant": name, **errors}


def exact_boxes(
    side: int, picture: int, box_format: str, count: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Predictions and true boxes in float64, as no dtype holds them. Drawn on the CPU: the same on
    every device."""
    generator = torch.Generator().manual_seed(0)
    first, sides = torch.rand(2, count, 2, generator=generator, dtype=torch.float64)
    sides = side * (3 + 2 * sides) / 4
    first = first * (picture - sides)
    truth = torch.cat([first, first + sides], dim=1)
    jitter = JITTER * side * torch.randn(truth.shape, generator=generator, dtype=truth.dtype)
    pred, target = (_from_corners(each, box_format) for each in (truth + jitter, truth))
    return pred.to(device), target.to(device)


def _from_corners(boxes: Tensor, box_format: str) -> Tensor:
    if box_format == "xyxy":
        return boxes
    first, last = boxes.chunk(2, dim=1)
    return torch.cat([(first + last) / 2, last - first], dim=1) / PICTURE


def stored(boxes: Tensor, dtype: torch.dtype) -> Tensor:
    return (boxes if dtype.is_floating_point else boxes.round()).to(dtype)


def errors_of(
    pred: Tensor, target: Tensor, box_format: str, pair: str, scale: float
) -> dict[str, dict[str, Row]]:
    """Of the storage against exact boxes, of each way to compute against the formula in float64 on
    the very boxes that are stored."""
    formula = partial(usual_loss, box_format)
    guesses, truths = (
        stored(each, DTYPES[dtype])
        for each, dtype in zip((pred, target), pair.split("/"), strict=True)
    )
    best = evaluate(formula, guesses.double(), truths.double(), scale)

    def computed(loss: PairLoss, truths: Tensor = truths) -> dict[str, Row]:
        return relative(evaluate(loss, guesses, truths, scale), best)

    found = {
        STORAGE: relative(best, evaluate(formula, pred, target, scale)),
        BOXLOSS: computed(boxloss_of(box_format)),
        ROUNDING: relative((best[0], best[1].to(guesses.dtype).double()), best),
    }
    if truths.dtype == torch.uint8:
        return found | {
            USUAL: computed(formula, truths.to(guesses.dtype)),
            WRAPPING: computed(formula),
        }
    return found | {USUAL: computed(formula)}


def usual_loss(box_format: str, pred: Tensor, target: Tensor) -> Tensor:
    """Corners, sides and areas in the dtypes that the boxes have."""
    return 1 - giou(corners(pred, box_format), corners(target, box_format))


def boxloss_of(box_format: Any) -> PairLoss:
    return partial(
        giou_loss,
        reduction="none",
        eps=EPS / unit(box_format) ** 2,
        eps_mode="clamp",
        pred_format=box_format,
        target_format=box_format,
    )


def relative(result: Result, expected: Result) -> dict[str, Row]:
    (losses, gradients), (exact_losses, exact_gradients) = result, expected
    return {
        "loss": _shares((losses - exact_losses).abs(), exact_losses.abs()),
        "gradient": _shares((gradients - exact_gradients).norm(dim=1), exact_gradients.norm(dim=1)),
    }


def _shares(differences: Tensor, sizes: Tensor) -> Row:
    """None where it is not finite. Equal is without error, zeros too."""
    errors = torch.where(differences == 0, 0.0, differences / sizes)
    errors = errors.nan_to_num(nan=torch.inf, posinf=torch.inf)
    shares = torch.tensor(list(SHARES.values()), dtype=errors.dtype, device=errors.device)
    found = torch.quantile(errors, shares, interpolation="higher").tolist()
    return {
        name: error if math.isfinite(error) else None
        for name, error in zip(SHARES, found, strict=True)
    }
