# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Families of pairs of rotated boxes on which one or another algorithm is wrong."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

Pairs = tuple[Tensor, Tensor]  # predictions and targets, (count, 5): cx, cy, w, h, radians
JITTER = "pixel, jitter 0.1"  # as boxes are that a detector learns


class Numbers:
    """Random ones, so many at a time, in float64 and on the CPU: the same for every device."""

    def __init__(self, count: int, seed: int = 0) -> None:
        self.count = count
        self.generator = torch.Generator().manual_seed(seed)

    def between(self, low: float, high: float) -> Tensor:
        drawn = torch.rand(self.count, generator=self.generator, dtype=torch.float64)
        return low + (high - low) * drawn

    def below(self, count: int) -> Tensor:
        return torch.randint(count, (self.count,), generator=self.generator).double()

    def about(self, size: float) -> Tensor:
        return self.between(-size, size)

    def turn(self) -> Tensor:
        return self.about(math.pi)


def boxes(*numbers: Tensor) -> Tensor:
    """Of float32's numbers: all else begins with what is left after this rounding."""
    return torch.stack(numbers, -1).float().double()


def pixel(n: Numbers) -> Tensor:
    centre = n.between(0, 100), n.between(0, 100)
    return boxes(*centre, n.between(5, 80), n.between(5, 80), n.turn())


def in_strides(n: Numbers) -> Tensor:
    """In the unit that Ultralytics computes its loss in."""
    centre = n.between(0, 80), n.between(0, 80)
    return boxes(*centre, n.between(1, 40), n.between(1, 40), n.turn())


def thin(n: Numbers, ratio: float) -> Tensor:
    length = n.between(50, 500)
    return boxes(n.between(0, 500), n.between(0, 500), length, length / ratio, n.turn())


def on_grid(n: Numbers) -> Tensor:
    """By quarter turns: many edges are shared."""
    centre = n.below(12) / 2, n.below(12) / 2
    return boxes(*centre, 1 + n.below(6), 1 + n.below(6), n.below(2) * math.pi / 2)


def normalised(n: Numbers, side: float) -> Tensor:
    sides = side * n.between(0.1, 1), side * n.between(0.1, 1)
    return boxes(n.between(0.1, 0.9), n.between(0.1, 0.9), *sides, n.turn())


def far(n: Numbers) -> Tensor:
    sides = n.between(0.5, 2), n.between(0.5, 2)
    return boxes(n.between(1e4, 1e4 + 10), n.between(1e4, 1e4 + 10), *sides, n.turn())


def beside(box: Tensor, along: Tensor, across: Tensor) -> tuple[Tensor, Tensor]:
    """A point by its offset from the box' centre, along its width and its height."""
    cx, cy, _, _, angle = box.unbind(-1)
    cos, sin = angle.cos(), angle.sin()
    return cx + along * cos - across * sin, cy + along * sin + across * cos


def jittered(n: Numbers, box: Tensor, by: float, by_angle: float | None = None) -> Pairs:
    """By shares of each side, and as many radians."""
    _, _, w, h, angle = box.unbind(-1)
    centre = beside(box, w * n.about(by), h * n.about(by))
    turned = angle + n.about(by if by_angle is None else by_angle)
    return box, boxes(*centre, w * (1 + n.about(by)), h * (1 + n.about(by)), turned)


def slid(n: Numbers) -> Pairs:
    """As far as one lies along the other, at almost the same angle."""
    box = thin(n, 1000)
    _, _, w, h, angle = box.unbind(-1)
    return box, boxes(*beside(box, w * n.about(1), 0 * h), w, h, angle + n.about(1e-4))


def crosses(n: Numbers) -> Pairs:
    one, other = thin(n, 1000), thin(n, 1000)
    w = one[:, 2]
    centre = one[:, 0] + 0.3 * w * n.about(1), one[:, 1] + 0.3 * w * n.about(1)
    return one, boxes(*centre, *other.unbind(-1)[2:])


def turned(n: Numbers, by: float) -> Pairs:
    """The same boxes; by a quarter their sides are exchanged."""
    cx, cy, w, h, angle = (box := pixel(n)).unbind(-1)
    sides = (h, w) if by == math.pi / 2 else (w, h)
    return box, boxes(cx, cy, *sides, angle + by)


def scaled(n: Numbers, by: float) -> Pairs:
    cx, cy, w, h, angle = pixel(n).unbind(-1)
    return jittered(n, boxes(by * cx, by * cy, by * w, by * h, angle), 0.1)


def contained(n: Numbers) -> Pairs:
    box = pixel(n)
    side = box[:, 2:4].amin(-1)
    centre = box[:, 0] + side * n.about(0.1), box[:, 1] + side * n.about(0.1)
    return boxes(*centre, side * n.between(0.1, 0.5), side * n.between(0.1, 0.5), n.turn()), box


def on_edge(n: Numbers) -> Pairs:
    """A thousandth of the size."""
    box = pixel(n)
    _, _, w, h, _ = box.unbind(-1)
    centre = beside(box, w * n.about(0.5), h / 2)
    sides = 1e-3 * w * n.between(0.5, 1), 1e-3 * h * n.between(0.5, 1)
    return boxes(*centre, *sides, n.turn()), box


FAMILIES: dict[str, Callable[[Numbers], Pairs]] = {
    "pixel, random": lambda n: (pixel(n), pixel(n)),
    JITTER: lambda n: jittered(n, pixel(n), 0.1),
    "strides, jitter 0.1": lambda n: jittered(n, in_strides(n), 0.1),
    "pixel, jitter 1e-3": lambda n: jittered(n, pixel(n), 1e-3),
    "pixel, jitter 1e-6": lambda n: jittered(n, pixel(n), 1e-6),
    "identical": lambda n: turned(n, 0),
    "turned by a quarter": lambda n: turned(n, math.pi / 2),
    "turned by half a turn": lambda n: turned(n, math.pi),
    "edges shared": lambda n: (on_grid(n), on_grid(n)),
    "contained": contained,
    "1:1000 on an edge": on_edge,
    "thin 1:100, jitter 1e-3": lambda n: jittered(n, thin(n, 100), 1e-3, 1e-5),
    "thin 1:1000, jitter 1e-3": lambda n: jittered(n, thin(n, 1000), 1e-3, 1e-6),
    "thin 1:1000, slid": slid,
    "thin 1:1000, crosses": crosses,
    "normalised, jitter 0.1": lambda n: jittered(n, normalised(n, 1), 0.1),
    "sides of 1e-3, jitter 0.1": lambda n: jittered(n, normalised(n, 2e-3), 0.1),
    "centres at 1e4, jitter 0.1": lambda n: jittered(n, far(n), 0.1),
    "times 1e8, jitter 0.1": lambda n: scaled(n, 1e8),
    "times 1e-8, jitter 0.1": lambda n: scaled(n, 1e-8),
}


def draw(family: str, count: int, device: torch.device) -> Pairs:
    pred, target = FAMILIES[family](Numbers(count))
    return pred.float().to(device), target.float().to(device)


def in_degrees(box: Tensor) -> Tensor:
    """Of an angle that turns counterclockwise on the screen."""
    return torch.cat([box[..., :4], -torch.rad2deg(box[..., 4:])], -1)


def in_radians(box: Tensor) -> Tensor:
    return torch.cat([box[..., :4], -torch.deg2rad(box[..., 4:])], -1)
