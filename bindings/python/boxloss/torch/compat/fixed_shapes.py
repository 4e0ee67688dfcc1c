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
from .targets import FixedTargets, kept_rows, offsets_of, rows_of_batch


def collate_fixed(
    samples: Sequence[Mapping[str, Any]],
    *,
    max_boxes: int,
    num_labels: int = 0,
    drop_smallest: bool = False,
) -> dict[str, Any]:
    """A batch of transformers' samples whose "labels" are FixedTargets; all else is stacked.

    By functools.partial it is the collate_fn of a DataLoader, or the data_collator of a Trainer,
    which can compute metrics from lists alone. A last batch of fewer images has other shapes: drop
    it. Options and errors are those of `FixedTargets.of`.
    """
    labels = FixedTargets.of(
        [each["labels"] for each in samples],
        max_boxes=max_boxes,
        num_labels=num_labels,
        drop_smallest=drop_smallest,
    )
    others = [{name: each[name] for name in each if name != "labels"} for each in samples]
    return {**default_collate(others), "labels": labels}


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
    kept = kept_rows(most, "image {}", boxes, offsets, offsets.diff().tolist(), drop_smallest)
    index, labels, boxes = (each[kept.row] for each in (index, labels, boxes))
    free = most * images - len(boxes)
    index = functional.pad(index, (0, free), value=images - 1)
    fixed = {"batch_idx": index, "offsets": kept.offsets}
    for name, each in (("cls", labels), ("bboxes", boxes)):
        fixed[name] = torch.cat((each, each.new_zeros(free, *each.shape[1:])))
    return {**batch, **fixed}


def in_fixed_shapes(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Of a criterion, which has them as lists: the same in fixed shapes."""
    if "batch" not in arguments:
        name = "labels" if "labels" in arguments else "targets"
        lists = arguments[name]
        most = max(1, *(len(each["boxes"]) for each in lists))
        if name == "targets":
            return {**arguments, name: _with_valid(lists, most)}
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
