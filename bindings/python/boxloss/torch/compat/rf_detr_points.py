# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Masks of RF-DETR at points, as transformers and rfdetr have them: in the matcher, and the losses
of all layers."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ..matching_cost import matching_cost
from .criterion import Layers, Learned, cost_of
from .faults import GroundTruth
from .mask_logits import Logits, Sampling
from .masks import MaskTargets, cost_at_points, in_parts, losses_at_points, pairs_of

LOSSES = "loss_mask_ce", "loss_mask_dice"


class LayersOfMasks(NamedTuple):
    """Of as many queries, in groups.

    Attributes:
        matched_points, learned_points: at how many the matcher and the losses look.
        factor: 1, or NaN for a fault; None where there was none.
    """

    logits: Sequence[Logits]
    truth: MaskTargets
    factor: Tensor | None
    groups: int
    matched_points: int
    learned_points: int
    sampling: Sampling

    def sizes(self, queries: int) -> tuple[tuple[int, int], ...]:
        """Of what `draw` draws for the losses."""
        pairs = pairs_of(self.truth, queries, self.groups)
        return (pairs, 3 * self.learned_points), (pairs, self.learned_points - self._uncertain)

    @property
    def _uncertain(self) -> int:
        return int(0.75 * self.learned_points)

    @torch.no_grad()
    def cost(
        self,
        layers: Layers,
        boxes: GroundTruth,
        points: Tensor,
        weights: tuple[float, float, float],
        alpha: float = 0.25,
    ) -> Tensor:
        """(layers, queries of groups, T), at points of `draw`. `weights` are those of classes, by
        the focal term, and of masks' cross entropy and dice."""
        of_class, entropy, dice = weights
        queries = layers.boxes.shape[2] // self.groups * self.groups
        of_classes = matching_cost(
            layers.boxes[:, :, :queries],
            boxes.boxes,
            boxes.offsets,
            logits=layers.scores[:, :, :queries],
            labels=boxes.labels,
            **cost_of(0.0, 0.0, of_class, "focal", alpha),
        )
        with torch.autocast(points.device.type, enabled=False):
            own = cost_at_points(self.logits, self.truth, points, entropy, dice, self.sampling)
        own = own[:, self.truth.image, :queries, self.truth.place]
        return of_classes + own.permute(1, 2, 0)

    def losses(self, learned: Learned, drawn: Sequence[Tensor]) -> dict[str, Tensor]:
        """By name, (layers)."""
        number = learned.pairs.number
        number = number if self.factor is None else number * self.factor
        rows = learned.pairs.target_of_query
        theirs = rows[0].numel() * self.matched_points
        values = []
        for own in in_parts(len(self.logits), drawn[0][0, :, :, 0].numel(), theirs):
            given = self.logits[own], self.truth, rows[own], number, [each[own] for each in drawn]
            values.append(losses_at_points(*given, self._uncertain, self.groups, self.sampling))
        return dict(zip(LOSSES, map(torch.cat, zip(*values, strict=True)), strict=True))
