# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Pairs of rotated boxes."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

Pairs = tuple[Tensor, Tensor]  # predictions and targets, (count, 5): cx, cy, w, h, radians


class Numbers:
    """Random ones, so many at a time, in float64 and on the CPU: the same for every device."""

    def __init__(self, count: int, seed: int = 0) -> None:
        self.count = count
        self.generator = torch.Generator().manual_seed(seed)

    def between(self, low: float, high: float) -> Tensor:
        drawn = torch.rand(self.count, generator=self.generator, dtype=torch.float64)
        return low + (high - low) * drawn

    def about(self, size: float) -> Tensor:
        return self.between(-size, size)


def boxes(*numbers: Tensor) -> Tensor:
    """Of float32's numbers: all else begins with what is left after this rounding."""
    return torch.stack(numbers, -1).float().double()


def pixel(n: Numbers) -> Tensor:
    centre = n.between(0, 100), n.between(0, 100)
    return boxes(*centre, n.between(5, 80), n.between(5, 80), n.about(math.pi))


def jittered(n: Numbers, by: float = 0.1) -> Pairs:
    """By shares of each side, along it, and as many radians: what a detector learns."""
    box = pixel(n)
    cx, cy, w, h, angle = box.unbind(-1)
    along, across, cos, sin = w * n.about(by), h * n.about(by), angle.cos(), angle.sin()
    centre = cx + along * cos - across * sin, cy + along * sin + across * cos
    turned = angle + n.about(by)
    return box, boxes(*centre, w * (1 + n.about(by)), h * (1 + n.about(by)), turned)


def contained(n: Numbers) -> Pairs:
    box = pixel(n)
    side = box[:, 2:4].amin(-1)
    centre = box[:, 0] + side * n.about(0.1), box[:, 1] + side * n.about(0.1)
    sides = side * n.between(0.1, 0.5), side * n.between(0.1, 0.5)
    return boxes(*centre, *sides, n.about(math.pi)), box


FAMILIES: dict[str, Callable[[Numbers], Pairs]] = {
    "random": lambda n: (pixel(n), pixel(n)),
    "jitter": jittered,
    "contained": contained,
}


def draw(family: str, count: int, device: torch.device) -> Pairs:
    pred, target = FAMILIES[family](Numbers(count))
    return pred.float().to(device), target.float().to(device)
