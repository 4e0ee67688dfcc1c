# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The article's network, to the letter; `face_detector` has one that can be trained."""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor, nn

from ..face_detector.data import PICTURE


class ItsNetwork(nn.Module):
    """Blocks of convolution, max-pool and ReLU, then two linear layers: `slots` boxes, xyxy pixels,
    whose corners are in no order."""

    def __init__(self, channels: tuple[int, ...], hidden: int, slots: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for before, after in pairwise(channels):
            layers += [nn.Conv2d(before, after, 3, padding="same"), nn.MaxPool2d(2), nn.ReLU()]
        side = PICTURE // 2 ** (len(channels) - 1)
        layers += [nn.Flatten(), nn.Linear(channels[-1] * side * side, hidden), nn.ReLU()]
        layers += [nn.Linear(hidden, 4 * slots), nn.Unflatten(1, (slots, 4))]
        self.layers = nn.Sequential(*layers)

    def forward(self, pictures: Tensor) -> Tensor:
        boxes: Tensor = self.layers(pictures[:, None].float())
        return boxes
