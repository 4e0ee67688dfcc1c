# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The toy detector, at the article's size and at a size for two CPU cores."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from .data import PICTURE


@dataclass(frozen=True)
class Scale:
    """How much of everything: here for two CPU cores."""

    batch: int = 64
    slots: int = 32  # predicted boxes for each picture
    pooling: int = 4  # the picture is shrunk this many times before the first block
    channels: tuple[int, ...] = (1, 8, 16, 32)
    hidden: int = 256
    predictions: torch.dtype = torch.float32  # bfloat16: under autocast
    compiled: bool = False
    workers: int = 0
    steps: int = 60
    learning_rate: float = 1e-3


OF_ARTICLE = Scale(
    1024, 256, 1, (1, 4, 16, 64, 256), 16_384, torch.bfloat16, True, 16, 20, learning_rate=1e-4
)
SCALES = {"small": Scale(), "seed": OF_ARTICLE}


class FaceDetector(nn.Module):
    """Blocks of convolution, max-pool and ReLU, then two linear layers: `slots` boxes, xyxy pixels.

    The article measures forward only. To be trained, this one also centres its input, works in
    fractions of the picture, starts every box as the picture's middle, and puts the corners in
    order, because the loss has no lower limit for a box whose corners are swapped.
    """

    def __init__(self, scale: Scale) -> None:
        super().__init__()
        blocks: list[nn.Module] = [nn.AvgPool2d(scale.pooling)] if scale.pooling > 1 else []
        for before, after in zip(scale.channels, scale.channels[1:], strict=False):
            blocks += [nn.Conv2d(before, after, 3, padding="same"), nn.MaxPool2d(2), nn.ReLU()]
        side = PICTURE // scale.pooling // 2 ** (len(scale.channels) - 1)
        self.features = nn.Sequential(*blocks, nn.Flatten())
        self.hidden = nn.Linear(scale.channels[-1] * side * side, scale.hidden)
        self.boxes = nn.Linear(scale.hidden, scale.slots * 4)

    def forward(self, pictures: Tensor) -> Tensor:
        features = self.features((pictures[:, None].float() - 128) / 64)
        corners = self.boxes(torch.relu(self.hidden(features))) * PICTURE
        one, other = corners.view(len(pictures), -1, 2, 2).unbind(dim=2)
        return torch.cat([torch.minimum(one, other), torch.maximum(one, other)], dim=-1)

    def initialise(self, seed: int) -> None:
        """Starts over, in place, with the seed's weights."""
        torch.manual_seed(seed)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                layer.reset_parameters()
        middle = torch.tensor([0.25, 0.25, 0.75, 0.75])
        with torch.no_grad():
            self.boxes.bias.copy_(middle.repeat(self.boxes.out_features // 4))
