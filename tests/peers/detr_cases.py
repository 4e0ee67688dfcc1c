# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What DETR's criteria are given.

Boxes lie on a grid on which all corners are exact in float32, and a predicted corner never meets a
true one: where min and max tie, and where boxes only touch, a slope is a matter of taste.
"""

import torch
from torch import Tensor

LAYERS, QUERIES, CLASSES = 3, 20, 7
# Images without boxes among others, all of them, more boxes than queries.
COUNTS = ((3, 0, 5), (0, 0), (25, 4), (1,))

Targets = list[dict[str, Tensor]]


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def boxes(shape: tuple[int, ...], random: torch.Generator, shift: float = 0.0) -> Tensor:
    """cxcywh in double: corners are multiples of 2^-10, plus shift; sides from 1/16 to 1/2."""
    centres = torch.randint(205, 820, (*shape, 2), generator=random) / 1024 + shift
    sides = torch.randint(32, 257, (*shape, 2), generator=random) / 512
    return torch.cat((centres, sides), -1).double()


def logits(shape: tuple[int, ...], random: torch.Generator) -> Tensor:
    drawn = 2 * torch.randn(*shape, generator=random, dtype=torch.float64)
    return drawn.clamp(-6, 6).float().double()


def true_boxes(counts: tuple[int, ...], random: torch.Generator) -> Targets:
    return [
        {
            "boxes": boxes((count,), random, shift=2.0**-11),
            "class_labels": torch.randint(CLASSES, (count,), generator=random),
        }
        for count in counts
    ]
