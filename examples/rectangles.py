# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Rectangles with an angle: images to learn from, and a picture of what was learned.

A box is (cx, cy, w, h, angle). The angle is in radians, the others in sides of the image: both axes
have one unit.
"""

from math import pi
from typing import NamedTuple

import torch
from torch import Tensor

SIDE = 48  # of an image, in pixels
MOST = 5  # rectangles in an image
COLOURS = torch.tensor([[0.9, 0.3, 0.2], [0.2, 0.8, 0.3], [0.3, 0.5, 1.0]])  # each is a class


class Targets(NamedTuple):
    """The ground truth of all images as one list: image b has rows offsets[b] to offsets[b + 1]."""

    boxes: Tensor  # (rows, 5)
    labels: Tensor  # (rows)
    offsets: Tensor  # (images + 1)

    def to(self, device: str) -> "Targets":
        return Targets(*(each.to(device) for each in self))


def draw(number: int, random: torch.Generator) -> tuple[Tensor, Targets]:
    """Images (number, 3, SIDE, SIDE) of one to MOST rectangles, on noise."""

    def uniform(low: float, high: float, *shape: int) -> Tensor:
        return low + (high - low) * torch.rand(shape, generator=random)

    slots = number, MOST
    cells = torch.rand(number, 9, generator=random).argsort(1)[:, :MOST]  # of 3 × 3, none twice
    cx, cy = ((cell + uniform(0.3, 0.7, *slots)) / 3 for cell in (cells % 3, cells // 3))
    w = uniform(0.2, 0.4, *slots)
    h = w * uniform(0.35, 0.65, *slots)
    boxes = torch.stack((cx, cy, w, h, uniform(0, pi, *slots)), -1)
    labels = torch.randint(len(COLOURS), slots, generator=random)
    counts = torch.randint(1, MOST + 1, (number,), generator=random)
    exists = torch.arange(MOST) < counts[:, None]

    images = uniform(0, 0.4, number, 1, SIDE, SIDE)
    pixels = (torch.arange(SIDE) + 0.5) / SIDE
    for k in range(MOST):
        cx, cy, w, h, angle = boxes[:, k, :, None, None].unbind(1)
        x, y = pixels - cx, pixels[:, None] - cy
        along, across = x * angle.cos() + y * angle.sin(), y * angle.cos() - x * angle.sin()
        inside = torch.minimum(w / 2 - along.abs(), h / 2 - across.abs())
        cover = (SIDE * inside + 0.5).clamp(0, 1) * exists[:, k, None, None]
        images = images.lerp(COLOURS[labels[:, k], :, None, None], cover[:, None])
    offsets = torch.cat((torch.zeros(1, dtype=torch.int64), counts.cumsum(0)))
    return images, Targets(boxes[exists], labels[exists], offsets)


def corners(boxes: Tensor) -> Tensor:
    """(n, 4, 2)."""
    w, h, angle = boxes[:, 2:, None].unbind(1)
    along = w / 2 * torch.cat((angle.cos(), angle.sin()), 1)
    across = h / 2 * torch.cat((-angle.sin(), angle.cos()), 1)
    ends = (along + across, across - along, -along - across, along - across)
    return boxes[:, None, :2] + torch.stack(ends, 1)


def save_picture(
    file: str, images: Tensor, targets: Targets, predicted: dict[str, tuple[Tensor, Tensor]]
) -> None:
    """A row for each model: its logits (images, queries, classes) and boxes (images, queries, 5).
    The ground truth is white, and what has a score above a half has its class' colour."""
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.collections import PolyCollection
    from matplotlib.figure import Figure
    from PIL import Image

    figure = Figure(figsize=(1.6 * len(images), 3.5), layout="constrained")
    panels = figure.subplots(len(predicted), len(images))
    for row, (when, (logits, boxes)) in zip(panels, predicted.items(), strict=True):
        row[0].set_ylabel(when)
        for k, panel in enumerate(row):
            shown = images[k].movedim(0, -1).numpy() / 2
            panel.imshow(shown, extent=(0, 1, 1, 0), interpolation="nearest")
            panel.set(xticks=[], yticks=[])
            own = slice(*targets.offsets[k : k + 2])
            best, label = logits[k].max(-1)
            for outlined, style, colours in (
                (targets.boxes[own], "--", "white"),
                (boxes[k][best > 0], "-", COLOURS[label[best > 0]].numpy()),
            ):
                lines = {"facecolors": "none", "edgecolors": colours, "linestyles": style}
                panel.add_collection(PolyCollection(corners(outlined).numpy(), **lines))
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    picture = Image.fromarray(np.asarray(canvas.buffer_rgba()))
    picture.convert("RGB").quantize(64).save(file)  # few colours, for a small file
