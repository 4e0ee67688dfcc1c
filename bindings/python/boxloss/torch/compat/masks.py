# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Ground truth, pairs and losses of criteria of masks: all images of a layer at once.

Nothing here waits for the device. Points are drawn from torch's generator in the originals' order,
so that a seed gives the same ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from ..collate import on_host
from ..hungarian_match import hungarian_match
from .faults import Rows, check

ALPHA = 0.25  # of the originals' focal loss; gamma is 2


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


def collate_masks(masks: Sequence[Tensor], labels: Sequence[Tensor], name: str) -> MaskTargets:
    """Of each image (n, height, width) and (n).

    Args:
        name: what masks are called there.

    Raises:
        ValueError: a bad shape; not as many images, or as many masks as labels.
    """
    if len(masks) != len(labels):
        raise ValueError(f"{name} has {len(masks)} images, class_labels has {len(labels)}")
    for b, (each, own) in enumerate(zip(masks, labels, strict=True)):
        if each.dim() != 3 or own.shape != each.shape[:1]:
            raise ValueError(
                f"{name}[{b}] has shape {tuple(each.shape)}, class_labels[{b}] "
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
    masks: Sequence[Tensor], labels: Sequence[Tensor], classes: int, name: str = "mask_labels"
) -> tuple[MaskTargets, Tensor | None]:
    """The ground truth, looked for faults. Where a device does that, 1, or NaN for a fault, too."""
    truth = collate_masks(masks, labels, name)
    peaks = [  # finite if the mask is
        torch.linalg.vector_norm(each, torch.inf, (1, 2)).float()
        if each.is_floating_point()
        else torch.zeros(len(each), device=each.device)
        for each in masks
    ]
    stand_ins = functional.pad(torch.cat(peaks)[:, None], (3, 0))
    rows = Rows(stand_ins, truth.labels, truth.offsets, "class_labels", classes, True, None, name)
    checked, factor = check(rows)
    return truth._replace(labels=checked), factor


def truth_of_labels(
    labels: Sequence[Mapping[str, Tensor]], classes: int
) -> tuple[MaskTargets, Tensor | None]:
    """Of each image's dictionary, which has boxes, too."""
    masks = [each["masks"] for each in labels]
    return truth_of(masks, [each["class_labels"].flatten() for each in labels], classes, "masks")


class Points(NamedTuple):
    """At how many points losses are: the `uncertain` ones of the `candidates`, whose logits are
    nearest to 0, and others up to `number`."""

    number: int
    candidates: int
    uncertain: int

    def draw(self, pairs: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """Of each pair, in [0, 1]: candidates, and others."""
        counts = self.candidates, max(self.number - self.uncertain, 0)
        first, second = (torch.rand(pairs, count, 2, device=device) for count in counts)
        return first, second


def match(cost: Tensor, logits: Tensor, truth: MaskTargets, class_weight: float) -> Tensor:
    """Each query's mask of all images', (images, queries), by the least cost; -1: none.

    Args:
        cost: (images, queries, most), of each mask in its place, without that of its class.
        logits: (images, queries, classes).
    """
    own = cost[truth.image, :, truth.place]
    own = own - class_weight * wide(logits).softmax(-1)[truth.image, :, truth.labels]
    largest = torch.finfo(own.dtype).max
    own = own.nan_to_num(largest, largest, largest)
    return hungarian_match(own.mT.contiguous()[None], truth.offsets).target_of_query[0]


def in_places(of_masks: Tensor, truth: MaskTargets) -> Tensor:
    """Of (T, n): (images, most, n)."""
    if len(of_masks) == 0:
        return of_masks.new_zeros(*truth.slots.shape, of_masks.shape[1])
    return of_masks[truth.slots]


class Pairs(NamedTuple):
    """As the originals have them: image after image, query after query.

    Attributes:
        mask: (n), of all images'. query: (n), of its image.
        logits: (n, 1, height, width), which the query predicts.
    """

    mask: Tensor
    query: Tensor
    logits: Tensor

    @staticmethod
    def of(logits: Tensor, truth: MaskTargets, mask_of_query: Tensor, groups: int = 1) -> Pairs:
        number = pairs_of(truth, logits.shape[1], groups)
        mask = mask_of_query.flatten()
        query = (mask < 0).byte().argsort(stable=True)[:number]
        own = logits.flatten(0, 1).index_select(0, query)[:, None]
        return Pairs(mask[query], query % logits.shape[1], wide(own))


def pairs_of(truth: MaskTargets, queries: int, groups: int = 1) -> int:
    """How many there are where each group of queries has all masks."""
    return groups * sum(min(count, queries // groups) for count in truth.counts)


def dice_cost(p: Tensor, t: Tensor, shared: Tensor) -> Tensor:
    """Of (images, queries, n) with (images, most, n), whose product is `shared`."""
    size = p.sum(-1, keepdim=True) + t.sum(-1)[:, None]
    return 1 - (2 * shared + 1) / (size + 1)


def dice_loss(p: Tensor, t: Tensor) -> Tensor:
    """The sum over (n, points)."""
    return (1 - (2 * (p * t).sum(1) + 1) / (p.sum(1) + t.sum(1) + 1)).sum()


def cost_at_points(
    logits: Tensor,
    truth: MaskTargets,
    points: Tensor,
    entropy_weight: float,
    dice_weight: float,
    mode: str = "bilinear",
) -> Tensor:
    """(images, queries, most), at an image's points, (images, points, 2).

    Args:
        mode: how the ground truth is sampled.
    """
    x = _at(logits, points)
    moved = points[truth.image] * truth.scale[:, None].to(points.dtype)
    t = in_places(_at(truth.pixels, moved, mode)[:, 0].to(x.dtype), truth)
    p = x.sigmoid()
    hits, shared = (torch.cat((x, p), 1) @ t.mT).chunk(2, 1)  # one product is faster than two
    entropy = (functional.softplus(x).sum(-1, keepdim=True) - hits) / x.shape[2]
    return entropy_weight * entropy + dice_weight * dice_cost(p, t, shared)


def losses_at_points(
    logits: Tensor,
    truth: MaskTargets,
    mask_of_query: Tensor,
    number: Tensor,
    uncertain: int,
    drawn: tuple[Tensor, Tensor],
    groups: int = 1,
    mode: str = "bilinear",
) -> tuple[Tensor, Tensor]:
    """Cross entropy and dice of all pairs, () each, divided by `number`.

    Args:
        drawn: candidates, of which so many `uncertain` ones count, and other points.
    """
    pairs = Pairs.of(logits, truth, mask_of_query, groups)
    if len(pairs.mask) == 0:
        return pairs.logits.sum(), pairs.logits.sum()
    candidates, others = drawn
    with torch.no_grad():
        certainty = _at(pairs.logits, candidates)[:, 0].abs_()
        index = certainty.neg_().topk(uncertain, sorted=False).indices
        chosen = candidates.gather(1, index[..., None].expand(-1, -1, 2))
        points = torch.cat((chosen, others), 1)
        # Points are moved, not pixels, of which there are more: to their mask, group after group.
        place = pairs.mask * groups + pairs.query // (logits.shape[1] // groups)
        moved = points.new_zeros(len(truth.pixels) * groups, *points.shape[1:])
        moved = moved.index_copy(0, place, points).view(len(truth.pixels), -1, 2)
        t = _at(truth.pixels, moved, mode).view(-1, points.shape[1])[place]
    x = _at(pairs.logits, points)[:, 0]
    t = t.to(x.dtype)
    entropy = functional.binary_cross_entropy_with_logits(x, t, reduction="none").mean(1)
    return entropy.sum() / number, dice_loss(x.sigmoid(), t) / number


def losses_at_pixels(
    logits: Tensor, truth: MaskTargets, mask_of_query: Tensor, number: Tensor
) -> tuple[Tensor, Tensor]:
    """The focal loss and dice of all pairs, () each, at the ground truth's size."""
    mask, _, own = Pairs.of(logits, truth, mask_of_query)
    if len(mask) == 0:
        return own.sum(), own.sum()
    size = truth.pixels.shape[2:]
    x = functional.interpolate(own, size=size, mode="bilinear", align_corners=False).flatten(1)
    t = truth.pixels[mask].flatten(1).to(x.dtype)
    p = x.sigmoid()
    entropy = functional.binary_cross_entropy_with_logits(x, t, reduction="none")
    missed = p + t - 2 * p * t  # 1 - p of what it is
    weight = 1 - ALPHA + (2 * ALPHA - 1) * t
    focal = (weight * missed.square() * entropy).mean(1).sum()
    return focal / number, dice_loss(p, t) / number


def _at(masks: Tensor, points: Tensor, mode: str = "bilinear") -> Tensor:
    """Of (n, masks, height, width) at (n, points, 2), in [0, 1], as theirs: (n, masks, points), at
    least in float32."""
    masks = wide(masks)
    grid = torch.rsub(points[:, :, None], -1, alpha=-2).to(masks.dtype)  # 2 * points - 1, at once
    return functional.grid_sample(masks, grid, mode=mode, align_corners=False)[..., 0]
