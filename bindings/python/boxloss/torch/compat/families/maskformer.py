# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""MaskFormer as transformers has it: masks at all pixels, by the focal loss and dice.

Its matcher compares at the predictions' size, its losses at the ground truth's.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ..masks import MaskTargets, dice_cost, dice_loss, in_places, match, matched, wide
from .mask2former import family

ALPHA = 0.25  # the original's; gamma is 2


def at_pixels(
    criterion: Any, masks: Tensor, logits: Tensor, truth: MaskTargets, number: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    matcher = criterion.matcher
    masks = wide(masks)
    with torch.no_grad():
        x = masks.flatten(2)
        t = in_places(nearest(truth, *masks.shape[2:]).to(x.dtype), truth)
        p = x.sigmoid()
        own = ALPHA * (1 - p).square() * functional.softplus(-x)
        other = (1 - ALPHA) * p.square() * functional.softplus(x)
        focal = ((own - other) @ t.mT + other.sum(-1, keepdim=True)) / x.shape[2]
        cost = matcher.cost_mask * focal + matcher.cost_dice * dice_cost(p, t, p @ t.mT)
    query_of_mask, mask_of_query = match(cost, logits, truth, matcher.cost_class)
    order, pred = matched(masks, truth, query_of_mask)
    if len(order) == 0:
        return pred.sum(), pred.sum(), mask_of_query
    size = truth.pixels.shape[2:]
    x = functional.interpolate(pred, size=size, mode="bilinear", align_corners=False).flatten(1)
    t = truth.pixels[order].flatten(1).to(x.dtype)
    p = x.sigmoid()
    entropy = functional.binary_cross_entropy_with_logits(x, t, reduction="none")
    missed = p + t - 2 * p * t  # 1 - p of what it is
    weight = 1 - ALPHA + (2 * ALPHA - 1) * t
    focal_loss = (weight * missed.square() * entropy).mean(1).sum()
    return focal_loss / number, dice_loss(p, t) / number, mask_of_query


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
