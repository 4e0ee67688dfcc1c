# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The boxes that losses are timed on: the seed experiment's padded batch, and dense pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from boxloss.torch import collate_padded, collate_ragged, giou_loss
from torch import Tensor

from ..runner.run import BOTH, FORWARD

DTYPES = {
    "f64": torch.float64,
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "u8": torch.uint8,
}
SEED_PAIRS = ("f32/f32", "bf16/u8")
SEED_SHAPE = (1024, 256)
DENSE_PAIRS = ("f32/f32", "bf16/f32", "f16/f32", "bf16/bf16", "bf16/u8", "f32/u8", "f64/f64")

# Corners of ground-truth boxes are integers below 256, which every dtype above holds exactly.
LARGEST_CORNER = 200
SHORTEST_SIDE, LONGEST_SIDE = 4, 55
JITTER = 8


@dataclass(frozen=True)
class Case:
    """Predictions, and their ground-truth boxes laid out in one or more ways."""

    kind: str  # "dense", "seed" or another
    pair: str  # dtypes, "pred/target"
    pred: Tensor  # (images, slots, 4) or (boxes, 4); a leaf that requires its gradient
    layouts: dict[str, tuple[Tensor, ...]]  # layout: what a loss takes after pred
    counted: Tensor  # (images, slots) or (boxes): the pairs that count
    boxes: int  # their number
    forward_bytes: int  # the least that a forward must read, knowing nothing but pred and target

    @property
    def name(self) -> str:
        if self.pred.dim() == 2:
            return f"{self.kind}, {self.boxes:,} boxes, {self.pair}"
        images, slots, _ = self.pred.shape
        return f"{self.kind}, {images} x {slots:,} slots, {self.boxes:,} boxes, {self.pair}"

    @property
    def moved(self) -> dict[str, int]:
        """The least bytes of each pass: backward reads all again, and writes the gradient."""
        return {FORWARD: self.forward_bytes, BOTH: 2 * self.forward_bytes + self.pred.nbytes}

    def on(self, loss: Callable[..., Tensor], layout: str) -> Callable[[], Tensor]:
        """The loss of these boxes, laid out so."""
        return partial(loss, self.pred, *self.layouts[layout])


def boxloss_giou(layout: str, **options: Any) -> Callable[..., Tensor]:
    """boxloss' loss of predictions and what this layout holds."""
    loss = partial(giou_loss, **options)
    if layout == "dense":
        return loss
    if layout == "padded":
        return partial(loss, zero_padded=True)
    return lambda pred, target, given: loss(pred, target, **{layout: given})


def seed_case(pair: str, device: torch.device, shape: tuple[int, int] = SEED_SHAPE) -> Case:
    """Pictures with few boxes in many slots: floor(|N(0, 3)|) of them, but never all slots. Drawn
    on the CPU."""
    images, slots = shape
    generator = torch.Generator().manual_seed(0)
    lengths = torch.randn(images, generator=generator).mul(3).abs().long().clamp(max=slots - 1)
    pred_dtype, target_dtype = dtypes_of(pair)
    truths = true_boxes(int(lengths.sum()), generator)
    boxes = [each.to(target_dtype) for each in truths.split(lengths.tolist())]
    target, _ = collate_padded(boxes, slots)
    flat, offsets = collate_ragged(boxes)
    counted = torch.arange(slots) < lengths[:, None]
    # What leaks out of an unused slot is found out by the agreement check.
    pred = torch.full((len(lengths), slots, 4), torch.nan)
    pred[counted] = near(truths, generator)

    target, lengths, flat, offsets, counted = (
        each.to(device) for each in (target, lengths, flat, offsets, counted)
    )
    leaf = pred.to(device, pred_dtype).requires_grad_()
    return Case(
        "seed",
        pair,
        leaf,
        {
            "padded": (target,),
            "lengths": (target, lengths),
            "offsets": (flat, offsets),
            "mask": (target, counted),
        },
        counted,
        len(truths),
        target.nbytes + len(truths) * 4 * leaf.element_size(),
    )


def dense_case(pair: str, boxes: int, device: torch.device, kind: str = "dense") -> Case:
    generator = torch.Generator(device).manual_seed(0)
    pred_dtype, target_dtype = dtypes_of(pair)
    truths = true_boxes(boxes, generator)
    pred = near(truths, generator).to(pred_dtype).requires_grad_()
    target = truths.to(target_dtype)
    return Case(
        kind,
        pair,
        pred,
        {"dense": (target,)},
        torch.ones(boxes, dtype=torch.bool, device=device),
        boxes,
        pred.nbytes + target.nbytes,
    )


def dtypes_of(pair: str) -> tuple[torch.dtype, torch.dtype]:
    pred, target = pair.split("/")
    return DTYPES[pred], DTYPES[target]


def true_boxes(boxes: int, generator: torch.Generator) -> Tensor:
    def integers(low: int, high: int) -> Tensor:
        return torch.randint(
            low, high + 1, (boxes, 2), generator=generator, device=generator.device
        ).float()

    corner = integers(0, LARGEST_CORNER)
    return torch.cat([corner, corner + integers(SHORTEST_SIDE, LONGEST_SIDE)], dim=1)


def near(truths: Tensor, generator: torch.Generator) -> Tensor:
    """A jittered, well-ordered copy."""
    jitter = torch.randn(truths.shape, generator=generator, device=truths.device) * JITTER
    one, other = (truths + jitter).chunk(2, dim=1)
    return torch.cat([torch.minimum(one, other), torch.maximum(one, other)], dim=1)
