# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Padded batches in which a share of the slots is valid, at the front or scattered."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..common.cases import SHORTEST_SIDE, near, true_boxes

SLOTS = 256
SHARES = (0.0, 0.01, 0.03, 0.125, 0.25, 0.5, 0.75, 1.0)
LAYOUTS = ("front", "scattered")
WARP = 32  # threads that take their branches together, on every GPU that CUDA knows


@dataclass(frozen=True)
class Batch:
    """Predictions, and a true box for every slot, of which a case takes some."""

    images: int
    pred: Tensor  # (slots of all images, 4)
    truths: Tensor

    @property
    def name(self) -> str:
        return batch_name(self.images)


@dataclass(frozen=True)
class Case:
    layout: str
    share: float
    valid: Tensor  # (slots of all images)
    target: Tensor  # zeros where not valid

    @property
    def active_warps(self) -> float:
        """The share of the warps that have a valid slot."""
        return self.valid.view(-1, WARP).any(dim=1).double().mean().item()


def batch_name(images: int) -> str:
    return f"{images:,} × {SLOTS} slots"


def make_batch(images: int, device: torch.device, seed: int = 0) -> Batch:
    generator = torch.Generator(device).manual_seed(seed)
    truths = true_boxes(images * SLOTS, generator)
    pred = near(truths, generator)
    # Their sides shrink by up to 2 pixels, and shall not turn over.
    pred[:, 2:] = torch.maximum(pred[:, 2:], pred[:, :2] + SHORTEST_SIDE)
    return Batch(images, pred, truths)


def make_case(batch: Batch, layout: str, share: float, seed: int = 0) -> Case:
    """Both layouts of a share have as many valid slots in each image."""
    generator = torch.Generator(batch.pred.device).manual_seed(seed)
    slots = len(batch.pred)
    chosen = torch.randperm(slots, generator=generator, device=generator.device)
    valid = torch.zeros(slots, dtype=torch.bool, device=generator.device)
    valid[chosen[: round(share * slots)]] = True
    if layout == "front":
        lengths = valid.view(-1, SLOTS).sum(dim=1, keepdim=True)
        valid = (torch.arange(SLOTS, device=valid.device) < lengths).flatten()
    return Case(layout, share, valid, batch.truths * valid[:, None])
