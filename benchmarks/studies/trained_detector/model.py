# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""A detector small enough to be trained in seconds on a large GPU, in minutes on two CPU cores."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..face_detector.data import PICTURE

CELL = 16  # pixels
CELLS = PICTURE // CELL  # in a row; 256 in all, the article's slots

# Before training: a face in one cell of a hundred, with sides of a fifth of the picture.
PRIOR_OBJECTNESS = -4.6
PRIOR_SIDE = -1.3


@dataclass(frozen=True)
class Scale:
    """How much of everything."""

    pooling: int  # the picture is shrunk this many times before the first layer
    channels: tuple[int, ...]  # each halves the sides, down to the cells
    blocks: int  # residual ones, among the cells
    learning_rate: float
    batch: int
    evaluations: int
    steps_between: int
    train_pictures: int
    test_pictures: int

    @property
    def steps(self) -> int:
        return self.evaluations * self.steps_between


SCALES = {
    "gpu": Scale(
        pooling=1,
        channels=(32, 64, 128, 256),
        blocks=3,
        learning_rate=2e-3,
        batch=64,
        evaluations=40,
        steps_between=60,
        train_pictures=16_384,
        test_pictures=1024,
    ),
    "cpu": Scale(
        pooling=2,
        channels=(12, 24, 48),
        blocks=3,
        learning_rate=3e-3,
        batch=32,
        evaluations=8,
        steps_between=75,
        train_pictures=4096,
        test_pictures=256,
    ),
    "quick": Scale(
        pooling=4,
        channels=(8, 16),
        blocks=1,
        learning_rate=5e-3,
        batch=8,
        evaluations=2,
        steps_between=3,
        train_pictures=16,
        test_pictures=16,
    ),
}


class CellDetector(nn.Module):
    """For each cell of 16 x 16 pixels the logit of a face whose centre lies in it, and its box."""

    def __init__(self, scale: Scale) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.AvgPool2d(scale.pooling)] if scale.pooling > 1 else []
        for before, after in itertools.pairwise((1, *scale.channels)):
            layers += [*_convolution(before, after, stride=2), nn.ReLU()]
        width = scale.channels[-1]
        self.features = nn.Sequential(*layers, *(_Residual(width) for _ in range(scale.blocks)))
        self.head = nn.Conv2d(width, 5, 1)
        prior = torch.tensor([PRIOR_OBJECTNESS, 0, 0, PRIOR_SIDE, PRIOR_SIDE])
        self.head.bias = nn.Parameter(prior)
        rows, columns = torch.meshgrid(torch.arange(CELLS), torch.arange(CELLS), indexing="ij")
        corners = torch.stack([columns, rows], dim=-1).view(-1, 2) * CELL
        self.register_buffer("corners", corners.float())

    def forward(self, pictures: Tensor) -> tuple[Tensor, Tensor]:
        """Of (B, 256, 256) gray values logits (B, 256) and boxes (B, 256, 4), xyxy pixels."""
        found = self.head(self.features((pictures[:, None] - 128) / 64))
        # A pixel of 250 has no fraction in bfloat16: from here on in float32.
        found = found.float().flatten(2).transpose(1, 2)
        logits, offsets, sides = found.split([1, 2, 2], dim=-1)
        # A centre can lie anywhere in its cell, and half a cell beyond; corners are in order.
        centres = self.corners + CELL * (2 * offsets.sigmoid() - 0.5)
        halves = PICTURE / 2 * sides.sigmoid()
        return logits.squeeze(-1), torch.cat([centres - halves, centres + halves], dim=-1)


def _convolution(before: int, after: int, stride: int = 1) -> list[nn.Module]:
    return [nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after)]


class _Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.change = nn.Sequential(
            *_convolution(width, width), nn.ReLU(), *_convolution(width, width)
        )

    def forward(self, features: Tensor) -> Tensor:
        return torch.relu(features + self.change(features))
