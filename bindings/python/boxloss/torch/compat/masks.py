# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Ground truth, pairs and losses of criteria of masks: all images of a layer at once.

Nothing here waits for the device. Points are drawn from torch's generator in the originals' order,
so that a seed gives the same ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from ..collate import on_host
from ..hungarian_match import hungarian_match
from .faults import Rows, check


class MaskTargets(NamedTuple):
    """The ground truth of all images: T masks.

    Attributes:
        pixels: (T, 1, height, width), at least float32; a smaller image's masks lie in the corner.
        sizes: (T, 2): the width and height of each mask's own image. scale: in parts of pixels'.
        labels: (T). offsets: (images + 1): image b has masks offsets[b] to offsets[b + 1].
        image, place: (T): whose each mask is, and which of its.
        slots: (images, most): the mask in each place, 0 where there is none.
        counts: how many masks each image has.
    """

    pixels: Tensor
    sizes: Tensor
    scale: Tensor
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
    if any(each.shape[1:] != (height, width) for each in masks):
        masks = [
            functional.pad(each, (0, width - each.shape[2], 0, height - each.shape[1]))
            for each in masks
        ]
    return MaskTargets(
        wide(torch.cat([*masks])[:, None]),
        of_sides.view(-1, 2),
        # By numbers: a tensor of them would be waited for on a GPU.
        torch.stack((of_sides[::2] / width, of_sides[1::2] / height), 1),
        torch.cat([*labels]),
        of_offsets,
        of_image,
        of_place,
        of_slots.view(len(counts), -1),
        counts,
    )


def wide(values: Tensor) -> Tensor:
    """At least in float32."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


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


def match(
    cost: Tensor, logits: Tensor, truth: MaskTargets, class_weight: float
) -> tuple[Tensor, Tensor]:
    """Each mask's query, (T), of all images', and each query's mask, by the least cost; -1: none.

    Args:
        cost: (images, queries, most), of each mask in its place, without that of its class.
        logits: (images, queries, classes).
    """
    own = cost[truth.image, :, truth.place]
    own = own - class_weight * wide(logits).softmax(-1)[truth.image, :, truth.labels]
    largest = torch.finfo(own.dtype).max
    own = own.nan_to_num(largest, largest, largest)
    pairs = hungarian_match(own.mT.contiguous()[None], truth.offsets)
    return pairs.pred_index[0], pairs.target_of_query[0]


def in_places(of_masks: Tensor, truth: MaskTargets) -> Tensor:
    """Of (T, n): (images, most, n)."""
    if len(of_masks) == 0:
        return of_masks.new_zeros(*truth.slots.shape, of_masks.shape[1])
    return of_masks[truth.slots]


def matched(masks: Tensor, truth: MaskTargets, query_of_mask: Tensor) -> tuple[Tensor, Tensor]:
    """The rows of masks that have a query, and what it predicts, (n, 1, height, width).

    As the originals have them: image after image, query after query.
    """
    pairs = sum(min(count, masks.shape[1]) for count in truth.counts)
    order = query_of_mask.argsort()[len(query_of_mask) - pairs :]  # those without one are first
    return order, masks.flatten(0, 1).index_select(0, query_of_mask[order])[:, None]


def dice_cost(p: Tensor, t: Tensor, shared: Tensor) -> Tensor:
    """Of (images, queries, n) with (images, most, n), whose product is `shared`."""
    size = p.sum(-1, keepdim=True) + t.sum(-1)[:, None]
    return 1 - (2 * shared + 1) / (size + 1)


def dice_loss(p: Tensor, t: Tensor) -> Tensor:
    """The sum over (n, points)."""
    return (1 - (2 * (p * t).sum(1) + 1) / (p.sum(1) + t.sum(1) + 1)).sum()


def cost_at_points(
    masks: Tensor, truth: MaskTargets, number: int, entropy_weight: float, dice_weight: float
) -> Tensor:
    """(images, queries, most), at so many points of an image; masks are logits."""
    # One call for all images would draw others on a GPU.
    points = torch.cat([torch.rand(1, number, 2, device=masks.device) for _ in masks])
    x = _at(masks, points)
    t = _at(truth.pixels, points[truth.image] * truth.scale[:, None].to(points.dtype))[:, 0]
    t = in_places(t.to(x.dtype), truth)
    p = x.sigmoid()
    hits, shared = (torch.cat((x, p), 1) @ t.mT).chunk(2, 1)  # one product is faster than two
    entropy = (functional.softplus(x).sum(-1, keepdim=True) - hits) / number
    return entropy_weight * entropy + dice_weight * dice_cost(p, t, shared)


def losses_at_points(
    masks: Tensor, truth: MaskTargets, query_of_mask: Tensor, number: Tensor, points: Points
) -> tuple[Tensor, Tensor]:
    """Cross entropy and dice of all pairs, () each, divided by `number`."""
    order, own = matched(masks, truth, query_of_mask)
    if len(order) == 0:
        return own.sum(), own.sum()
    with torch.no_grad():
        chosen = _uncertain_points(own, points)
        # Points are moved, not pixels, of which there are more.
        moved = chosen.new_zeros(len(truth.pixels), *chosen.shape[1:]).index_copy(0, order, chosen)
        t = _at(truth.pixels, moved)[:, 0][order]
    x = _at(own, chosen)[:, 0]
    t = t.to(x.dtype)
    entropy = functional.binary_cross_entropy_with_logits(x, t, reduction="none").mean(1)
    return entropy.sum() / number, dice_loss(x.sigmoid(), t) / number


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
    masks = wide(masks)
    grid = torch.rsub(points[:, :, None], -1, alpha=-2).to(masks.dtype)  # 2 * points - 1, at once
    return functional.grid_sample(masks, grid, align_corners=False)[..., 0]
