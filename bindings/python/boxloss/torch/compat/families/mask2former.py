# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Mask2Former as transformers has it, and EoMT, whose criterion is a copy: masks at points.

A seed gives the same points.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..mask_layers import family
from ..masks import MaskTargets, cost_at_points, draw, in_parts, losses_at_points, match, pairs_of


def at_points(
    criterion: Any, masks: Sequence[Tensor], logits: Tensor, truth: MaskTargets, number: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    matcher, count = criterion.matcher, criterion.num_points
    candidates = int(count * criterion.oversample_ratio)
    uncertain = int(criterion.importance_sample_ratio * count)
    images, queries = logits.shape[1:3]
    pairs = pairs_of(truth, queries)
    sizes = (images, matcher.num_points), (pairs, candidates), (pairs, max(count - uncertain, 0))
    weights = matcher.cost_mask, matcher.cost_dice
    padded = truth.slots.numel() * truth.pixels.shape[2:].numel()
    found = []
    for layers in in_parts(len(masks), pairs * candidates, padded):
        some = masks[layers]
        points, *of_losses = draw(range(len(some)), sizes, logits.device)
        cost = cost_at_points(some, truth, points, *weights)
        mask_of_query = match(cost, logits[layers], truth, matcher.cost_class)
        losses = losses_at_points(some, truth, mask_of_query, number, of_losses, uncertain)
        found.append((*losses, mask_of_query))
    entropy, dice, mask_of_query = map(torch.cat, zip(*found, strict=True))
    return entropy, dice, mask_of_query


FAMILY = family(at_points)
