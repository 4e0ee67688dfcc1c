# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""MaskFormer as transformers has it: masks at all pixels, by the focal loss and dice.

Its matcher compares at the predictions' size, its losses at the ground truth's.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ..mask_layers import family
from ..mask_logits import wide
from ..masks import ALPHA, MaskTargets, dice_cost, in_places, losses_at_pixels, match, sizes


def at_pixels(
    criterion: Any, masks: Sequence[Tensor], logits: Tensor, truth: MaskTargets, number: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Layer by layer: each fills the memory."""
    matcher = criterion.matcher
    cost = torch.stack([cost_at_pixels(matcher, each, truth) for each in masks])
    mask_of_query = match(cost, logits, truth, matcher.cost_class)
    pairs = zip(masks, mask_of_query, strict=True)
    losses = [losses_at_pixels(each, truth, own, number) for each, own in pairs]
    focal, dice = map(torch.stack, zip(*losses, strict=True))
    return focal, dice, mask_of_query


@torch.no_grad()
def cost_at_pixels(matcher: Any, masks: Tensor, truth: MaskTargets) -> Tensor:
    """(images, queries, most)."""
    x = wide(masks).flatten(2)
    t = in_places(nearest(truth, *masks.shape[2:]).to(x.dtype), truth)
    p = x.sigmoid()
    own = ALPHA * (1 - p).square() * functional.softplus(-x)
    other = (1 - ALPHA) * p.square() * functional.softplus(x)
    focal = ((own - other) @ t.mT + other.sum(-1, keepdim=True)) / x.shape[2]
    return matcher.cost_mask * focal + matcher.cost_dice * dice_cost(sizes(p, t), p @ t.mT)


def nearest(truth: MaskTargets, height: int, width: int) -> Tensor:
    """(T, height * width): each mask in this size, by its own image's, as torch's "nearest"."""

    def places(sides: Tensor, count: int) -> Tensor:
        scale = (sides / count).float()[:, None]
        floor = (torch.arange(count, device=sides.device) * scale).floor().long()
        return floor.minimum(sides[:, None] - 1)

    columns, rows = places(truth.sizes[:, 0], width), places(truth.sizes[:, 1], height)
    mask = torch.arange(len(rows), device=rows.device)[:, None, None]
    return truth.pixels[mask, 0, rows[:, :, None], columns[:, None]].flatten(1)


FAMILY = family(at_pixels)
