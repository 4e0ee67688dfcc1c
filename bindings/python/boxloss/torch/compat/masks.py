# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Costs and losses of masks at points, as PointRend and Mask2Former have them.

All images of a layer at once; nothing waits for the device. Points are drawn from torch's generator
in the originals' order, so that a seed gives the same ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from ..class_loss import class_loss
from ..collate import on_host
from ..hungarian_match import hungarian_match
from .faults import Rows, check


class MaskTargets(NamedTuple):
    """The ground truth of all images: T masks.

    Attributes:
        pixels: (T, 1, height, width), at least float32; a smaller image's masks lie in the corner.
        scale: (T, 2): of width and height, what a mask's own image has; None if all have all.
        labels: (T). offsets: (images + 1): image b has masks offsets[b] to offsets[b + 1].
        image, place: (T): whose each mask is, and which of its.
        slots: (images, most): the mask in each place, 0 where there is none.
        counts: how many masks each image has.
    """

    pixels: Tensor
    scale: Tensor | None
    labels: Tensor
    offsets: Tensor
    image: Tensor
    place: Tensor
    slots: Tensor
    counts: list[int]


def collate_masks(masks: Sequence[Tensor], labels: Sequence[Tensor]) -> MaskTargets:
    """Of each image (n, height, width) and (n).

    Raises:
        ValueError: a bad shape; not as many images, or as many masks as labels.
    """
    if len(masks) != len(labels):
        raise ValueError(f"mask_labels has {len(masks)} images, class_labels has {len(labels)}")
    for b, (each, own) in enumerate(zip(masks, labels, strict=True)):
        if each.dim() != 3 or own.shape != each.shape[:1]:
            raise ValueError(
                f"mask_labels[{b}] has shape {tuple(each.shape)}, class_labels[{b}] "
                f"{tuple(own.shape)}; they must be (n, height, width) and (n)"
            )
    device = labels[0].device
    counts = [len(each) for each in labels]
    offsets = [*accumulate(counts, initial=0)]
    image = [b for b, n in enumerate(counts) for _ in range(n)]
    place = [i for n in counts for i in range(n)]
    slots = [
        offsets[b] + i if i < n else 0 for b, n in enumerate(counts) for i in range(max(counts))
    ]
    height, width = (max(each.shape[axis] for each in masks) for axis in (1, 2))
    sides = [side for b in image for side in (masks[b].shape[2], masks[b].shape[1])]
    parts = [offsets, image, place, slots, sides]
    numbers = on_host([number for part in parts for number in part], device)
    numbers = numbers.to(device, non_blocking=True)
    of_offsets, of_image, of_place, of_slots, of_sides = numbers.split([*map(len, parts)])
    scale = None
    if any(each.shape[1:] != (height, width) for each in masks):
        masks = [
            functional.pad(each, (0, width - each.shape[2], 0, height - each.shape[1]))
            for each in masks
        ]
        scale = torch.stack((of_sides[::2] / width, of_sides[1::2] / height), 1)
    pixels = torch.cat([*masks])[:, None]
    return MaskTargets(
        pixels.to(torch.promote_types(pixels.dtype, torch.float32)),
        scale,
        torch.cat([*labels]),
        of_offsets,
        of_image,
        of_place,
        of_slots.view(len(counts), -1),
        counts,
    )


def truth_of(
    masks: Sequence[Tensor], labels: Sequence[Tensor], classes: int
) -> tuple[MaskTargets, Tensor | None]:
    """The ground truth, looked for faults. Where a device does that, 1, or NaN for a fault, too."""
    truth = collate_masks(masks, labels)
    peaks = [  # finite if the mask is
        torch.linalg.vector_norm(each, torch.inf, (1, 2)).float()
        if each.is_floating_point()
        else torch.zeros(len(each), device=each.device)
        for each in masks
    ]
    stand_ins = functional.pad(torch.cat(peaks)[:, None], (3, 0))
    rows = Rows(
        stand_ins, truth.labels, truth.offsets, "class_labels", classes, True, None, "mask_labels"
    )
    checked, factor = check(rows)
    return truth._replace(labels=checked), factor


class Points(NamedTuple):
    """At how many points a cost and a loss are computed. A loss takes the `uncertain` ones of the
    `candidates`, whose logits are nearest to 0, and others up to `number`."""

    number: int
    candidates: int
    uncertain: int


def losses_of_layer(
    masks: Tensor,
    logits: Tensor,
    truth: MaskTargets,
    number: Tensor,
    weights: Sequence[float],
    points_of_cost: int,
    points: Points,
    no_object_weight: float,
) -> dict[str, Tensor]:
    """By transformers' names. See `match_masks` and `mask_losses`."""
    query_of_mask, mask_of_query = match_masks(masks, logits, truth, points_of_cost, weights)
    entropy, dice = mask_losses(masks, truth, query_of_mask, number, points)
    of_classes = class_loss(
        logits[None],
        mask_of_query[None],
        truth.labels,
        mode="softmax",
        no_object_weight=no_object_weight,
    )
    return {"loss_mask": entropy, "loss_dice": dice, "loss_cross_entropy": of_classes[0]}


def match_masks(
    masks: Tensor, logits: Tensor, truth: MaskTargets, points: int, weights: Sequence[float]
) -> tuple[Tensor, Tensor]:
    """Each mask's query, of all images', and each query's mask, by the least cost; -1 for none.

    Args:
        masks: (images, queries, height, width): logits. logits: (images, queries, classes).
        points: how many of an image its queries and masks are compared at.
        weights: of the cost of a class, of cross entropy, of dice.

    Returns:
        (T) and (images, queries).
    """
    with torch.no_grad():
        cost = _cost(masks, logits.float(), truth, points, weights)
    pairs = hungarian_match(cost[None], truth.offsets)
    return pairs.pred_index[0], pairs.target_of_query[0]


def _cost(
    masks: Tensor, logits: Tensor, truth: MaskTargets, number: int, weights: Sequence[float]
) -> Tensor:
    """(queries, T)."""
    by_class, by_entropy, by_dice = weights
    # One call for all images would draw others on a GPU.
    points = torch.cat([torch.rand(1, number, 2, device=masks.device) for _ in masks])
    x = _at(masks, points)
    of_masks = points[truth.image]
    if truth.scale is not None:
        of_masks = of_masks * truth.scale[:, None].to(points.dtype)
    t = _at(truth.pixels, of_masks)[:, 0].to(x.dtype)
    t = t[truth.slots] if len(t) else t.new_zeros(*truth.slots.shape, number)
    both = t.mT
    entropy = (functional.softplus(x).sum(-1, keepdim=True) - x @ both) / number
    p = x.sigmoid_()
    dice = 1 - (2 * (p @ both) + 1) / (p.sum(-1, keepdim=True) + t.sum(-1)[:, None] + 1)
    cost = (by_entropy * entropy + by_dice * dice)[truth.image, :, truth.place]
    cost = cost - by_class * logits.softmax(-1)[truth.image, :, truth.labels]
    largest = torch.finfo(cost.dtype).max
    return cost.nan_to_num(largest, largest, largest).mT.contiguous()


def mask_losses(
    masks: Tensor, truth: MaskTargets, query_of_mask: Tensor, number: Tensor, points: Points
) -> tuple[Tensor, Tensor]:
    """Cross entropy and dice of all pairs, () each, divided by `number`."""
    pairs = sum(min(count, masks.shape[1]) for count in truth.counts)
    # As the originals have them: image after image, query after query; masks without one are first.
    order = query_of_mask.argsort()[len(query_of_mask) - pairs :]
    own = masks.flatten(0, 1).index_select(0, query_of_mask[order])[:, None]
    if pairs == 0:
        return own.sum(), own.sum()
    with torch.no_grad():
        chosen = _uncertain_points(own, points)
        # Points are moved, not pixels, of which there are more.
        moved = chosen.new_zeros(len(truth.pixels), *chosen.shape[1:]).index_copy(0, order, chosen)
        t = _at(truth.pixels, moved)[:, 0][order]
    x = _at(own, chosen)[:, 0]
    t = t.to(x.dtype)
    entropy = functional.binary_cross_entropy_with_logits(x, t, reduction="none").mean(1)
    p = x.sigmoid()
    dice = 1 - (2 * (p * t).sum(1) + 1) / (p.sum(1) + t.sum(1) + 1)
    return entropy.sum() / number, dice.sum() / number


def _uncertain_points(masks: Tensor, points: Points) -> Tensor:
    """(n, points.number, 2) of (n, 1, height, width)."""
    drawn = torch.rand(len(masks), points.candidates, 2, device=masks.device)
    certainty = _at(masks, drawn)[:, 0].abs_()
    index = certainty.neg_().topk(points.uncertain, sorted=False).indices
    chosen = drawn.gather(1, index[..., None].expand(-1, -1, 2))
    others = points.number - points.uncertain
    if others <= 0:
        return chosen
    return torch.cat((chosen, torch.rand(len(masks), others, 2, device=masks.device)), 1)


def _at(masks: Tensor, points: Tensor) -> Tensor:
    """Of (n, masks, height, width) at (n, points, 2), in [0, 1], as theirs: (n, masks, points), at
    least in float32."""
    wide = masks.to(torch.promote_types(masks.dtype, torch.float32))
    grid = (2 * points[:, :, None] - 1).to(wide.dtype)
    return functional.grid_sample(wide, grid, align_corners=False)[..., 0]
