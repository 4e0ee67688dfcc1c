# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Batches whose ground truth has as many rows in each step, so that a graph can repeat the step."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils._pytree import tree_leaves
from torch.utils.data import default_collate

from ..arguments import whole
from ..collate import on_host
from . import faults
from .targets import FixedTargets, kept_boxes


def collate_fixed(
    samples: Sequence[Mapping[str, Any]],
    *,
    max_boxes: int,
    num_labels: int = 0,
    drop_smallest: bool = False,
) -> dict[str, Any]:
    """A batch of transformers' samples whose "labels" are FixedTargets; all else is stacked.

    By functools.partial it is the collate_fn of a DataLoader, or the data_collator of a Trainer.
    Options and errors are those of `FixedTargets.of`.
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

    For a trainer's preprocess_batch, before anything is moved to the device. Rows behind the last
    image's are zeros, of the last image, and "offsets" (images + 1) says where each image's begin.
    Options and errors are those of `FixedTargets.of`.
    """
    names, images = ("batch_idx", "cls", "bboxes"), len(batch["img"])
    most, image = whole(max_boxes, "max_boxes"), batch["batch_idx"].flatten()
    if (image.diff() < 0).any() or not ((image >= 0) & (image < images)).all():
        raise ValueError(f"batch_idx must lie in [0, {images}), and not decrease")
    given = [batch[name].split(image.long().bincount(minlength=images).tolist()) for name in names]
    rows = []
    for b, of_image in enumerate(zip(*given, strict=True)):
        kept = kept_boxes(most, f"image {b}", of_image[2], drop_smallest)
        rows.append([each[kept] for each in of_image])
    offsets = on_host(accumulate((len(each) for each, *_ in rows), initial=0), image.device)
    offsets = offsets.to(image.device)
    index, labels, boxes = (torch.cat(each) for each in zip(*rows, strict=True))
    faults.check(faults.Rows(boxes, labels.flatten().long(), offsets, "cls", num_classes, True))
    free = most * images - len(boxes)
    index = functional.pad(index, (0, free), value=images - 1)
    fixed = {"batch_idx": index, "offsets": offsets}
    for name, each in (("cls", labels), ("bboxes", boxes)):
        fixed[name] = torch.cat((each, each.new_zeros(free, *each.shape[1:])))
    return {**batch, **fixed}


def in_fixed_shapes(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Of a criterion, which has them as lists: the same in fixed shapes."""
    if "labels" in arguments:
        labels = arguments["labels"]
        most = max(1, *(len(each["boxes"]) for each in labels))
        return {**arguments, "labels": FixedTargets.of(labels, max_boxes=most)}
    outputs = next(each for each in tree_leaves(arguments["preds"]) if isinstance(each, Tensor))
    batch = arguments["batch"]
    most = max(1, len(batch["bboxes"]))
    fixed = pad_batch({**batch, "img": outputs}, max_boxes=most)
    return {**arguments, "batch": fixed}
