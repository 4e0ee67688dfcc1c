# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Numbers for batches that `proof` needs: what a model could give its criterion.

A family's batches have images without boxes among others, all of them, and where queries are
matched more boxes than queries. Boxes lie near predictions, so that rounding decides no match. What
the pages list as a difference between boxloss and an original is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from .proof import Case

COUNTS = ((2, 0, 5), (0, 0))  # boxes of each image
SIDE = 2.0**-3  # the shortest
MOST = 100  # queries of transformers' models: originals compare all pairs with each other


class MadeUp:
    """Random numbers of its own, on a model's device."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.generator = torch.Generator().manual_seed(0)

    @staticmethod
    def of(model: Any) -> MadeUp:
        device = next(model.parameters()).device
        return MadeUp(torch.device("cpu") if device.type == "meta" else device)

    def normal(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self.generator, dtype=torch.float32)

    def uniform(self, low: float, high: float, *shape: int) -> Tensor:
        drawn = torch.rand(shape, generator=self.generator, dtype=torch.float32)
        return low + (high - low) * drawn

    def integers(self, below: int, *shape: int) -> Tensor:
        return torch.randint(below, shape, generator=self.generator)

    def angles(self, *shape: int) -> Tensor:
        """As Ultralytics' labels have them."""
        return self.uniform(-math.pi / 4, 3 * math.pi / 4, *shape)

    def boxes(self, *shape: int) -> Tensor:
        """cxcywh, in an image whose sides are 1."""
        return torch.cat(
            (self.uniform(0.3, 0.7, *shape, 2), self.uniform(SIDE, 0.5, *shape, 2)), -1
        )

    def near(self, boxes: Tensor, count: int) -> Tensor:
        """`count` boxes near different ones of a list, and others when there are no more."""
        order = torch.randperm(len(boxes), generator=self.generator)[:count]
        chosen = torch.cat((boxes[order], self.boxes(count - len(order))))
        return (chosen + 0.02 * self.normal(count, 4)).clamp(min=SIDE / 2)

    def output(self, values: Tensor) -> Tensor:
        """As a network's output."""
        return values.to(self.device).requires_grad_()

    def labels(
        self, boxes: Tensor, counts: tuple[int, ...], classes: int, name: str = "class_labels"
    ) -> list[dict[str, Tensor]]:
        """Of each image, near its boxes."""
        return [
            {
                name: self.integers(classes, count).to(self.device),
                "boxes": self.near(each, count).to(self.device),
            }
            for each, count in zip(boxes, counts, strict=True)
        ]

    def layers(self, boxes: Tensor, layers: int, classes: int) -> tuple[Tensor, Tensor]:
        """Scores and boxes of all layers, which are near each other."""
        shape = layers, *boxes.shape[:2]
        moved = boxes + 0.02 * self.normal(*shape, 4)
        return 2 * self.normal(*shape, classes), moved.clamp(min=SIDE / 2)


def cases_of(
    make: Callable[[tuple[int, ...]], dict[str, Any]], most: tuple[int, ...], when: str = ""
) -> Iterator[Case]:
    """By the boxes of each image, of which `most` has more than a criterion can match."""
    for counts in (*COUNTS, most):
        yield Case(f"{when}images with {counts} boxes", make(counts), any(counts))
