# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Mask2Former as transformers has it, and EoMT, whose criterion is a copy: masks at points.

A seed gives the same points.
"""

from typing import Any

import torch
from torch import Tensor

from ..mask_layers import family
from ..masks import MaskTargets, Points, cost_at_points, losses_at_points, match, pairs_of


def at_points(
    criterion: Any, masks: Tensor, logits: Tensor, truth: MaskTargets, number: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    matcher, count, device = criterion.matcher, criterion.num_points, masks.device
    points = Points(
        count,
        int(count * criterion.oversample_ratio),
        int(criterion.importance_sample_ratio * count),
    )
    with torch.no_grad():
        # One call for all images would draw others on a GPU.
        drawn = [torch.rand(1, matcher.num_points, 2, device=device) for _ in masks]
        weights = matcher.cost_mask, matcher.cost_dice
        cost = cost_at_points(masks, truth, torch.cat(drawn), *weights)
    mask_of_query = match(cost, logits, truth, matcher.cost_class)
    of_losses = points.draw(pairs_of(truth, masks.shape[1]), device)
    losses = losses_at_points(masks, truth, mask_of_query, number, points.uncertain, of_losses)
    return *losses, mask_of_query


FAMILY = family(at_points)
