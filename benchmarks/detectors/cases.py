# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What a detector hands to its criterion in one training step.

Corners are exact in float32, also those that a head decodes, and a predicted corner never meets a
true one, as in the other benchmarks. All is drawn on the host: the same numbers on every device.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from ..common.cases import near, true_boxes
from ..matcher.cases import SHORTEST_PREDICTION, STEP

Self = TypeVar("Self", bound="Case")

MATCHER_AND_BOXES, CRITERION, BOX_LOSS = "matcher and boxes", "criterion", "box loss"


@dataclass(frozen=True)
class Case:
    kind: str
    shape: str  # for people
    counts: tuple[int, ...]  # true boxes of each image
    pairs: int
    inputs: dict[str, Any]  # of the criterion, by its own names
    leaves: dict[str, Tensor]  # its predictions, likewise; all require their gradients
    measured: dict[str, tuple[str, ...]]  # and the leaves whose gradients are wanted

    @property
    def name(self) -> str:
        return f"{self.kind}, {self.shape}, {sum(self.counts):,} boxes, {self.pairs:,} pairs"

    @property
    def device(self) -> torch.device:
        return next(iter(self.leaves.values())).device

    def mapped(self: Self, change: Callable[[Tensor], Tensor]) -> Self:
        def changed(value: Any) -> Any:
            return change(value) if isinstance(value, Tensor) else value

        inputs = tree_map(changed, self.inputs)
        leaves = {n: change(each.detach()).requires_grad_() for n, each in self.leaves.items()}
        return replace(self, inputs=inputs, leaves=leaves)

    def in_double(self: Self) -> Self:
        return self.mapped(lambda each: each.double() if each.is_floating_point() else each)


def drawn_boxes(count: int, generator: torch.Generator) -> Tensor:
    return true_boxes(count, generator) + STEP / 2


def predictions(truths: Tensor, generator: torch.Generator) -> Tensor:
    """One near each."""
    boxes = (near(truths, generator) / STEP).round() * STEP
    boxes[:, 2:] = torch.maximum(boxes[:, 2:], boxes[:, :2] + SHORTEST_PREDICTION)
    return boxes
