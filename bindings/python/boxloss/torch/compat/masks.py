# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Ground truth, pairs and losses of criteria of masks: all images at once, and layers of one size.

Nothing here waits for the device. Points are drawn from torch's generator in the originals' order,
so that a seed gives the same ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from ..collate import on_host
from ..hungarian_match import hungarian_match
from .mask_lists import check_one_size, check_shapes, check_values, masks_of, spread
from .mask_logits import Logits, Sampling, at, logits_at, logits_of, wide
from .targets import FixedTargets

SAMPLING = Sampling()
ALPHA = 0.25  # of the originals' focal loss; gamma is 2


class MaskTargets(NamedTuple):
    """The ground truth of all images: T masks.

    Attributes:
        pixels: (T, 1, height, width), at least float32; a smaller image's masks lie in the corner.
        sizes: (T, 2): the width and height of each mask's own image. scale: in parts of pixels'.
        labels: (T). offsets: (images + 1): image b has masks offsets[b] to offsets[b + 1].
        image, place: (T): whose each mask is, and which of its.
        slots: (images, most): the mask in each place, 0 where there is none.
        counts: how many masks each image has; empty where only the device knows it.
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

    @property
    def total(self) -> Tensor:
        """The number of masks."""
        return self.offsets[-1] if self.counts else self.offsets[-1] - self.offsets[0]


def collate_masks(masks: Sequence[Tensor], labels: Sequence[Tensor], name: str) -> MaskTargets:
    """Of each image (n, height, width) and (n).

    Raises:
        ValueError: a bad shape; not as many images, or as many masks as labels.
    """
    check_shapes(masks, labels, name)
    device, counts = labels[0].device, [*map(len, labels)]
    height, width = (max(each.shape[axis] for each in masks) for axis in (1, 2))
    sides = [each.shape[axis] for each in masks for axis in (2, 1)]
    numbers = on_host([*accumulate(counts, initial=0), *sides], device)
    offsets, of_images = numbers.to(device, non_blocking=True).split([len(counts) + 1, len(sides)])
    if any(each.shape[1:] != (height, width) for each in masks):
        masks = [
            functional.pad(each, (0, width - each.shape[2], 0, height - each.shape[1]))
            for each in masks
        ]
    pixels, sizes = torch.cat([*masks]), of_images.view(-1, 2)
    return _placed(pixels, torch.cat([*labels]), offsets, max(counts), sizes, counts)


def masks_in_rows(masks: Tensor, rows: FixedTargets, name: str) -> MaskTargets:
    """Of (T, height, width); those of padding are some image's, but in no pair.

    Raises:
        ValueError: not as many masks as rows.
    """
    given = tuple(masks.shape) if isinstance(masks, Tensor) else type(masks).__name__
    _, labels, offsets = rows
    if len(given) != 3 or given[0] != len(labels):
        raise ValueError(
            f"{name} is {given}; beside FixedTargets it must be ({len(labels)}, height, width)"
        )
    sizes = [torch.full_like(offsets[1:], given[axis]) for axis in (2, 1)]
    return _placed(masks, labels, offsets, rows.most, torch.stack(sizes, 1), [])


def _placed(
    pixels: Tensor, labels: Tensor, offsets: Tensor, most: int, sizes: Tensor, counts: list[int]
) -> MaskTargets:
    """Of (T, height, width), and each image's sizes."""
    height, width = pixels.shape[1:]
    row, slot = (torch.arange(n, device=offsets.device) for n in (len(pixels), most))
    image = (torch.searchsorted(offsets, row, right=True) - 1).clamp(0, len(sizes) - 1)
    place = (row - offsets[image]).clamp(0, most - 1)
    slots = offsets[:-1, None] + slot
    slots = slots.where(slots < offsets[1:, None], 0)
    own = sizes[image]
    # By numbers: a tensor of them would be waited for on a GPU.
    scale = torch.stack((own[:, 0] / width, own[:, 1] / height), 1)
    masks = wide(pixels[:, None])
    return MaskTargets(masks, own, scale, labels, offsets, image, place, slots, counts)


def truth_of(
    masks: Any, labels: Sequence[Tensor] | FixedTargets, classes: int, name: str = "mask_labels"
) -> tuple[MaskTargets, Tensor | None]:
    """The ground truth, looked for faults. Where a device does that, 1, or NaN for a fault, too.

    Args:
        masks: of each image (n, height, width); or of FixedTargets (T, height, width).
    """
    if isinstance(labels, FixedTargets):
        truth = masks_in_rows(masks, labels, name)
    else:
        truth = collate_masks(masks, labels, name)
    spreads = spread(truth.pixels[:, 0])
    checked, factor = check_values(spreads, truth.labels, truth.offsets, classes, name)
    return truth._replace(labels=checked), factor


def truth_of_labels(
    labels: Sequence[Mapping[str, Tensor]] | FixedTargets, classes: int, has_one_size: bool = False
) -> tuple[MaskTargets, Tensor | None]:
    """Of each image's dictionary, which has boxes, too; or of FixedTargets."""
    if isinstance(labels, FixedTargets):
        return truth_of(labels.masks, labels, classes, "masks")
    masks = masks_of(labels)
    found = truth_of(masks, [each["class_labels"].flatten() for each in labels], classes, "masks")
    if has_one_size:
        check_one_size(masks, "masks")
    return found


def draw(
    order: Sequence[int], sizes: Sequence[tuple[int, int]], device: torch.device
) -> list[Tensor]:
    """Points in [-1, 1], as 2 * torch.rand - 1 in this order of layers: for each size (layers, own,
    points, 2).

    Args:
        sizes: (own, points): of costs of each image, or 1, at first; of losses of each pair.
    """
    drawn = [torch.empty(len(order), *size, 2, device=device) for size in sizes]
    for layer in order:
        cost, *of_losses = (each[layer] for each in drawn)
        # One call for all images would draw others on a GPU.
        for each in (*cost, *of_losses):
            each.uniform_(-1, 1)
    return drawn


def in_parts(layers: int, candidates: int, theirs: int) -> list[slice]:
    """As many layers at once as hold no more than `theirs`, numbers that an original holds at some
    time. In losses a candidate is 5: its place, its logit, and what those that count are."""
    count = max(theirs // max(5 * candidates, 1), 1)
    return [slice(first, first + count) for first in range(0, layers, count)]


@torch.no_grad()
def match(cost: Tensor, logits: Tensor, truth: MaskTargets, class_weight: float) -> Tensor:
    """Each query's mask of all images', (layers, images, queries), by the least cost; -1: none.

    Args:
        cost: (layers, images, queries, most), of each mask in its place, without that of its class.
        logits: (layers, images, queries, classes).
    """
    of_classes = wide(logits).softmax(-1)[:, truth.image, :, truth.labels]
    own = cost[:, truth.image, :, truth.place] - class_weight * of_classes
    largest = torch.finfo(own.dtype).max
    own = own.nan_to_num(largest, largest, largest).permute(1, 2, 0).contiguous()
    return hungarian_match(own, truth.offsets).target_of_query


def in_places(of_masks: Tensor, truth: MaskTargets) -> Tensor:
    """Of (T, n): (images, most, n)."""
    if len(of_masks) == 0:
        return of_masks.new_zeros(*truth.slots.shape, of_masks.shape[1])
    return of_masks[truth.slots]


class Pairs(NamedTuple):
    """As the originals have them: image after image, query after query; n in each layer.

    Attributes:
        mask: (layers, n), of all images'. query: (layers, n), of its image.
        logits: (layers * n, 1, height, width), which the query predicts.
        exists: (layers * n), where only the device knows how many do: the others have mask -1.
    """

    mask: Tensor
    query: Tensor
    logits: Tensor
    exists: Tensor | None

    @staticmethod
    def of(
        logits: Sequence[Logits], truth: MaskTargets, mask_of_query: Tensor, groups: int = 1
    ) -> Pairs:
        queries = mask_of_query.shape[2]
        mask = mask_of_query.flatten(1)
        query = (mask < 0).byte().argsort(stable=True)[:, : pairs_of(truth, queries, groups)]
        counts = counts_of(truth, queries, groups)
        own = [logits_of(each, its, counts) for each, its in zip(logits, query, strict=True)]
        mask = mask.gather(1, query)
        exists = None if truth.counts else mask.flatten() >= 0
        return Pairs(mask, query % queries, wide(torch.cat(own)[:, None]), exists)

    def only(self, values: Tensor) -> Tensor:
        """Of (layers * n) or (layers * n, points): where there is no pair 0, and no gradient."""
        if self.exists is None:
            return values
        return values.where(self.exists if values.dim() == 1 else self.exists[:, None], 0)


def pairs_of(truth: MaskTargets, queries: int, groups: int = 1) -> int:
    """How many there are, or can be, where each group of queries has all masks."""
    if truth.counts:
        return sum(counts_of(truth, queries, groups))
    most = min(queries // groups, truth.slots.shape[1])
    return groups * min(len(truth.pixels), len(truth.slots) * most)


def counts_of(truth: MaskTargets, queries: int, groups: int) -> list[int]:
    """How many pairs each image has; empty where only the device knows it."""
    return [groups * min(count, queries // groups) for count in truth.counts]


def dice_cost(size: Tensor, shared: Tensor) -> Tensor:
    """By the sizes of both, and of what they share."""
    return 1 - (2 * shared + 1) / (size + 1)


def sizes(p: Tensor, t: Tensor) -> Tensor:
    """Of (images, queries, n) and (images, most, n), added: (images, queries, most)."""
    return p.sum(-1, keepdim=True) + t.sum(-1)[:, None]


def dice_loss(p: Tensor, t: Tensor) -> Tensor:
    """Of (n, points), (n)."""
    return 1 - (2 * (p * t).sum(1) + 1) / (p.sum(1) + t.sum(1) + 1)


@torch.no_grad()
def cost_at_points(
    logits: Sequence[Logits],
    truth: MaskTargets,
    points: Tensor,
    entropy_weight: float,
    dice_weight: float,
    sampling: Sampling = SAMPLING,
) -> Tensor:
    """(layers, images, queries, most).

    Args:
        points: as from `draw`.
    """
    scale = truth.scale[:, None].to(points.dtype)
    shift = scale - 1

    def sums(layer: Logits, own: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Of one layer, whose samples are many."""
        both = logits_at(layer, own, sampling.padding).repeat(1, 2, 1)
        x, p = both.chunk(2, 1)
        p.sigmoid_()
        moved = torch.addcmul(shift, own[truth.image], scale)
        t = in_places(at(truth.pixels, moved, *sampling)[:, 0].to(x.dtype), truth)
        # One product is faster than two.
        return functional.softplus(x).sum(-1, keepdim=True), both @ t.mT, sizes(p, t)

    of_layers = map(sums, logits, points.expand(-1, len(truth.slots), -1, -1))
    others, products, size = map(torch.stack, zip(*of_layers, strict=True))
    hits, shared = products.chunk(2, 2)
    entropy = (others - hits) / points.shape[2]
    return entropy_weight * entropy + dice_weight * dice_cost(size, shared)


def losses_at_points(
    logits: Sequence[Logits],
    truth: MaskTargets,
    mask_of_query: Tensor,
    number: Tensor,
    drawn: Sequence[Tensor],
    uncertain: int,
    groups: int = 1,
    sampling: Sampling = SAMPLING,
) -> tuple[Tensor, Tensor]:
    """Cross entropy and dice of all pairs, (layers) each, divided by `number`.

    Args:
        drawn: candidates, of which so many `uncertain` ones count, and others, as from `draw`.
    """
    pairs = Pairs.of(logits, truth, mask_of_query, groups)
    layers, masks, padding = len(logits), len(truth.pixels), sampling.padding
    if pairs.mask.numel() == 0:
        nothing = pairs.logits.sum().expand(layers)
        return nothing, nothing
    with torch.no_grad():
        candidates, others = (each.flatten(0, 1) for each in drawn)
        points = torch.cat((nearest_to_0(pairs.logits, candidates, uncertain, padding), others), 1)
        # Points are moved, not pixels, of which there are more: to their mask, group after group.
        layer = torch.arange(layers, device=points.device)[:, None]
        group = pairs.query // (mask_of_query.shape[2] // groups)
        place = ((pairs.mask * layers + layer) * groups + group).flatten()
        # Those of mask -1 go behind the last mask's, and have any value.
        moved = points.new_zeros((masks + 1) * layers * groups, *points.shape[1:])
        moved[place] = points
        moved = moved.view(masks + 1, -1, 2)[:masks]
        t = at(truth.pixels, moved, *sampling).view(-1, points.shape[1])[place]
    x = pairs.only(at(pairs.logits, points, padding=padding)[:, 0])
    t = t.to(x.dtype)
    entropy = functional.binary_cross_entropy_with_logits(x, t, reduction="none").mean(1)
    of_pairs = torch.stack([pairs.only(each) for each in (entropy, dice_loss(x.sigmoid(), t))])
    entropy, dice = of_pairs.view(2, layers, -1).sum(2) / number
    return entropy, dice


def nearest_to_0(logits: Tensor, points: Tensor, count: int, padding: str) -> Tensor:
    """Of (pairs, points, 2)."""
    certainty = at(logits, points, padding=padding)[:, 0].abs_()
    index = certainty.neg_().topk(count, sorted=False).indices
    return points.gather(1, index[..., None].expand(-1, -1, 2))


def losses_at_pixels(
    logits: Tensor, truth: MaskTargets, mask_of_query: Tensor, number: Tensor
) -> tuple[Tensor, Tensor]:
    """The focal loss and dice of all pairs of a layer, () each, at the ground truth's size."""
    pairs = Pairs.of([logits], truth, mask_of_query[None])
    mask, own = pairs.mask[0], pairs.logits
    if len(mask) == 0:
        return own.sum(), own.sum()
    size = truth.pixels.shape[2:]
    x = functional.interpolate(own, size=size, mode="bilinear", align_corners=False).flatten(1)
    x, t = pairs.only(x), truth.pixels[mask].flatten(1).to(x.dtype)
    p = x.sigmoid()
    entropy = functional.binary_cross_entropy_with_logits(x, t, reduction="none")
    missed = p + t - 2 * p * t  # 1 - p of what it is
    weight = 1 - ALPHA + (2 * ALPHA - 1) * t
    focal = (weight * missed.square() * entropy).mean(1)
    return pairs.only(focal).sum() / number, pairs.only(dice_loss(p, t)).sum() / number
