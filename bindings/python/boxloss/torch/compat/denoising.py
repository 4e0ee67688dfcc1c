# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Denoising queries of transformers' models."""

import inspect
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from .family import Swapped
from .faults import GroundTruth
from .made_up import COUNTS, MadeUp
from .proof import undisturbed
from .replace import qualified_name
from .targets import FixedTargets

NAME = "get_contrastive_denoising_training_group"
ORIGINAL = "_boxloss_original"  # an attribute of what stands in its place
LIMIT = "_boxloss_denoising_boxes"  # an attribute of a model's embedding of denoising queries


def denoising_pairs(noise: dict[str, Any], truth: GroundTruth, layers: int) -> Tensor:
    """For get_cdn_matched_indices: (layers, images, queries), rows of the ground truth, or -1.

    Each group of denoising queries has all boxes again, as get_contrastive_denoising_training_group
    lays them out: as many for each image, the boxes, then the same as negative ones.
    """
    queries, _ = noise["dn_num_split"]
    groups = noise["dn_num_group"]
    if truth.counts:
        given = [len(each) for each in noise["dn_positive_idx"]]
        if given != [count * groups for count in truth.counts]:
            raise ValueError(
                f"dn_positive_idx has {given} queries with a box, in {groups} groups; labels have "
                f"{truth.counts} boxes"
            )
    most = queries // (2 * groups)  # of FixedTargets there may be more, which have no query
    first, end = truth.offsets[:-1, None], truth.offsets[1:, None]
    row = torch.arange(queries, device=first.device) % (2 * most) + first
    target = row.masked_fill_(row >= torch.minimum(end, first + most), -1)
    return target.expand(layers, -1, -1).contiguous()


def fix_denoising(model: Any, limit: int) -> Iterator[Swapped]:
    """A model that calls NAME takes FixedTargets from then on, with queries for `limit` boxes of
    each image."""
    core = getattr(model.model, "_orig_mod", model.model)  # compiled
    forwards = [vars(kind)["forward"] for kind in type(core).__mro__ if "forward" in vars(kind)]
    all_names = [inspect.unwrap(each).__globals__ for each in forwards]
    names = next((each for each in all_names if NAME in each), None)
    if names is None:
        raise ValueError(f"{qualified_name(type(core))}.forward does not call {NAME}")
    called = names[NAME]
    theirs = getattr(called, ORIGINAL, called)
    if model.config.num_denoising <= 0:
        return
    embedding = core.denoising_class_embed
    _compare(theirs, model, embedding)
    if called is theirs:
        names[NAME] = either(theirs)
    setattr(embedding, LIMIT, limit)
    ours = f"{qualified_name(_queries)}, for {limit} boxes of an image"
    yield (qualified_name(theirs), ours), lambda: delattr(embedding, LIMIT)


def either(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """Of lists the original, for all models of its module; of FixedTargets ours."""

    @wraps(theirs)
    def called(targets: Any, *given: Any, **named: Any) -> Any:
        if isinstance(targets, FixedTargets):
            return _queries(targets, *given, **named)
        return theirs(targets, *given, **named)

    setattr(called, ORIGINAL, theirs)
    return called


def _queries(
    targets: FixedTargets,
    num_classes: int,
    num_queries: int,
    class_embed: Callable[[Tensor], Tensor],
    num_denoising_queries: int = 100,
    label_noise_ratio: float = 0.5,
    box_noise_scale: float = 1.0,
    limit: int | None = None,
) -> tuple[Any, ...]:
    """The original's, with the same random numbers, where `limit` is the largest image's; it is the
    embedding's own if it is not given.

    Groups of 2 * limit queries: boxes with little noise, which are to be found again, then the same
    boxes with more.
    """
    if num_denoising_queries <= 0:
        return None, None, None, None
    limit = getattr(class_embed, LIMIT, None) if limit is None else limit
    if limit is None:
        raise ValueError(
            "labels is FixedTargets; this model takes them by use_boxloss(model, max_boxes=…)"
        )
    labels, offsets = targets.class_labels, targets.offsets
    boxes = targets.boxes.to(torch.get_default_dtype())  # as the original's
    groups = max(num_denoising_queries // limit, 1)
    row = offsets[:-1, None] + torch.arange(limit, device=boxes.device)
    is_box = row < offsets[1:, None]
    row = row.where(is_box, len(boxes))  # behind the last: no box
    copies = 2 * groups
    boxes = functional.pad(boxes, (0, 0, 0, 1))[row].tile(1, copies, 1)
    labels = functional.pad(labels, (0, 1), value=num_classes)[row].tile(1, copies).int()

    if label_noise_ratio > 0:
        is_other = torch.rand_like(labels, dtype=torch.float) < label_noise_ratio * 0.5
        others = torch.randint_like(labels, num_classes)
        labels = others.where(is_other & is_box.tile(1, copies), labels)
    if box_noise_scale > 0:
        centres, sides = boxes.split(2, -1)
        corners = torch.cat((centres - 0.5 * sides, centres + 0.5 * sides), -1)
        sign = 2.0 * torch.randint_like(boxes, 2) - 1
        is_negative = (torch.arange(copies * limit, device=boxes.device) // limit % 2)[:, None]
        noise = (torch.rand_like(boxes) + is_negative) * sign
        corners = (corners + noise * (sides * 0.5).tile(2) * box_noise_scale).clamp(0, 1)
        low, high = corners.split(2, -1)
        boxes = torch.cat(((low + high) / 2, high - low), -1).clamp(0, 1)
        boxes = (boxes.clamp(min=1e-5) / (1 - boxes).clamp(min=1e-5)).log()

    # Denoising queries see those of their group, and the others; these see no denoising query.
    group = torch.arange(copies * limit, device=boxes.device) // (2 * limit)
    group = functional.pad(group, (0, num_queries), value=-1)
    is_hidden = (group >= 0) & (group[:, None] != group)
    mask = torch.zeros(is_hidden.shape, device=boxes.device).masked_fill(is_hidden, -torch.inf)
    about = {"dn_num_group": groups, "dn_num_split": [copies * limit, num_queries]}
    return class_embed(labels), boxes, mask, about


def _compare(theirs: Callable[..., Any], model: Any, embedding: Callable[..., Tensor]) -> None:
    """Raises unless both give the same bits for a made-up batch."""
    counts, config, random = COUNTS[0], model.config, MadeUp.of(model)
    labels = random.labels(random.boxes(len(counts), max(counts)), counts, config.num_labels)
    options = config.num_labels, config.num_queries, embedding
    more = config.num_denoising, config.label_noise_ratio, config.box_noise_scale
    with undisturbed(random.device):
        torch.manual_seed(0)
        *wanted, about = theirs(labels, *options, *more)
        torch.manual_seed(0)
        targets = FixedTargets.of(labels, max_boxes=max(counts))
        *ours, same = _queries(targets, *options, *more, limit=max(counts))
    alike = all(torch.equal(one, other) for one, other in zip(ours, wanted, strict=True))
    if not alike or any(about[name] != value for name, value in same.items()):
        raise ValueError(f"boxloss makes other denoising queries than {qualified_name(theirs)}")
