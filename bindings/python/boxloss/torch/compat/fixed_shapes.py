# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Batches whose ground truth has as many rows in each step, so that a graph can repeat the step."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils._pytree import tree_leaves
from torch.utils.data import default_collate

from ..arguments import whole
from . import faults
from .mask_lists import check_shapes
from .targets import FixedTargets, Kept, areas_of, fixed_targets, offsets_of, rows_of_batch


def collate_fixed(
    samples: Sequence[Mapping[str, Any]],
    *,
    max_boxes: int,
    num_labels: int = 0,
    drop_smallest: bool = False,
) -> dict[str, Any]:
    """A batch of transformers' samples whose "labels" are FixedTargets, with their masks if they
    have some; all else is stacked.

    Of samples with "mask_labels", all of one size, these are then (max_boxes * images, height,
    width), and "class_labels" FixedTargets of these rows. max_boxes counts masks.

    By functools.partial it is the collate_fn of a DataLoader, or the data_collator of a Trainer,
    which can compute metrics from lists alone. A last batch of fewer images has other shapes: drop
    it. Options and errors are those of `FixedTargets.of`.
    """
    options: Any = {"max_boxes": max_boxes, "num_labels": num_labels}
    options["drop_smallest"] = drop_smallest
    if "mask_labels" in samples[0]:
        masks, classes = (
            [each[name] for each in samples] for name in ("mask_labels", "class_labels")
        )
        fixed = _fixed_masks(masks, classes, **options)
    else:
        labels = [each["labels"] for each in samples]
        fixed = {"labels": FixedTargets.of(labels, **options)}
    others = [{name: each[name] for name in each if name not in fixed} for each in samples]
    return {**default_collate(others), **fixed}


def _fixed_masks(
    masks: Sequence[Tensor], labels: Sequence[Tensor], **options: Any
) -> dict[str, Any]:
    """Options are those of `fixed_targets`."""
    check_shapes(masks, labels, "mask_labels")
    images = [
        {"boxes": torch.zeros(len(own), 4, device=own.device), "class_labels": own, "masks": each}
        for each, own in zip(masks, labels, strict=True)
    ]
    fixed = fixed_targets(
        images,
        told="mask_labels[{}] has {} masks",
        masks="mask_labels",
        areas=lambda image: image["masks"].sum((1, 2), dtype=torch.float32),
        **options,
    )
    pixels, fixed.masks = fixed.masks, None
    return {"mask_labels": pixels, "class_labels": fixed}


def pad_batch(
    batch: Mapping[str, Any], *, max_boxes: int, num_classes: int = 0, drop_smallest: bool = False
) -> dict[str, Any]:
    """Ultralytics' batch with as many rows of ground truth in each step.

    For a trainer's preprocess_batch, before anything is moved to the device, of YOLOs with an angle
    or without. Rows behind the last image's are zeros, of the last image, and "offsets" (images +
    1) says where each image's begin. Options and errors are those of `FixedTargets.of`.
    """
    if "offsets" in batch:
        raise ValueError('batch has "offsets": it has fixed shapes already')
    index, labels, boxes = rows_of_batch(batch)
    index, classes, images = index.flatten(), labels.flatten().long(), len(batch["img"])
    offsets = offsets_of(index, images)
    faults.check(faults.Rows(boxes, classes, offsets, "cls", num_classes, True, index))
    most = whole(max_boxes, "max_boxes", least=1)
    told, counts, rows = "image {} has {} boxes", offsets.diff().tolist(), most * images

    def areas(b: int) -> Tensor:
        return areas_of(boxes[offsets[b] : offsets[b + 1]])

    kept = Kept.of(counts, offsets, most, told, areas, drop_smallest)
    return {
        **batch,
        "batch_idx": kept.rows(index, rows, images - 1),
        "cls": kept.rows(labels, rows),
        "bboxes": kept.rows(boxes, rows),
        "offsets": kept.offsets,
    }


def in_fixed_shapes(arguments: Mapping[str, Any]) -> dict[str, Any] | None:
    """Of a criterion, which has them as lists: the same in fixed shapes, if there are any.

    Masks without padding, so that their points are the same.
    """
    if "mask_labels" in arguments:
        masks, labels = arguments["mask_labels"], arguments["class_labels"]
        if len({each.shape[1:] for each in masks}) > 1:
            return None
        return {**arguments, **_fixed_masks(masks, labels, rows=sum(map(len, masks)))}
    if "batch" not in arguments:
        name = "labels" if "labels" in arguments else "targets"
        lists = arguments[name]
        counts = [len(each["boxes"]) for each in lists]
        most = max(1, *counts)
        if name == "targets":
            return {**arguments, name: _with_valid(lists, most)}
        if "masks" in lists[0]:
            return {**arguments, name: FixedTargets.of(lists, sum(counts))}
        return {**arguments, name: FixedTargets.of(lists, max_boxes=most)}
    outputs = next(each for each in tree_leaves(arguments["preds"]) if isinstance(each, Tensor))
    batch = arguments["batch"]
    most = max(1, len(batch["bboxes"]))
    return {**arguments, "batch": pad_batch({**batch, "img": outputs}, max_boxes=most)}


def _with_valid(targets: Sequence[Mapping[str, Tensor]], most: int) -> list[dict[str, Tensor]]:
    """As rfdetr's pad_targets_to."""
    return [
        {
            "boxes": functional.pad(each["boxes"], (0, 0, 0, most - len(each["boxes"]))),
            "labels": functional.pad(each["labels"], (0, most - len(each["labels"]))),
            "valid": torch.arange(most, device=each["boxes"].device) < len(each["boxes"]),
        }
        for each in targets
    ]
