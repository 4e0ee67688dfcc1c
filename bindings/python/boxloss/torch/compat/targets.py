# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""A batch's ground truth as detectors are given it: boxes and labels for each image.

As lenient as the criteria that are replaced where that is harmless, and never silent about a fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from ..arguments import check_tensors, whole
from ..collate import collate_ragged, on_host
from . import faults
from .faults import GroundTruth


class FixedTargets(NamedTuple):
    """A batch's ground truth in as many rows in each step, for `labels` of a model of transformers.

    A graph of a whole training step needs it: how many boxes there are, only the device knows.

    Attributes:
        boxes: (T, 4), cxcywh, image after image. Rows behind the last image's are padding: zeros.
        class_labels: (T), int64; 0 in padding.
        offsets: (images + 1), int64, on the boxes' device: image b has rows offsets[b] to
            offsets[b + 1]. Rows before offsets[0] are padding, too.
    """

    boxes: Tensor
    class_labels: Tensor
    offsets: Tensor

    @staticmethod
    def of(labels: Targets, rows: int) -> FixedTargets:
        """Of one dictionary for each image, as transformers has them; no synchronization.

        Raises:
            ValueError: there are more boxes than rows; and what the criterion raises. TypeError:
                rows is no integer.
        """
        rows = whole(rows, "rows")
        truth = ground_truth_of(labels, "class_labels", None)
        free = rows - len(truth.boxes)
        if free < 0:
            raise ValueError(f"labels has {len(truth.boxes)} boxes; rows is {rows}")
        boxes = functional.pad(truth.boxes, (0, 0, 0, free))
        return FixedTargets(boxes, functional.pad(truth.labels, (0, free)), truth.offsets)


Targets = Sequence[Mapping[str, Tensor]]


def check_classes(config: Any, classes: int) -> None:
    """Raises where logits have other classes than the configuration."""
    if classes != config.num_labels:
        raise ValueError(f"logits have {classes} classes, config.num_labels is {config.num_labels}")


def collate_boxes(targets: Targets) -> tuple[Tensor, Tensor]:
    """All boxes and offsets. Images may differ in dtype, and have shape (0,) for no boxes."""
    boxes = [each["boxes"] for each in targets]
    if not boxes:
        return collate_ragged(boxes)  # which refuses that
    filled = [each for each in boxes if each.numel()] or boxes[:1]
    dtype = reduce(torch.promote_types, (each.dtype for each in filled))
    none = filled[0].new_empty((0, 4), dtype=dtype)
    return collate_ragged([each.to(dtype) if each.numel() else none for each in boxes])


def _labels_of_boxes(
    targets: Targets, name: str, counts: list[int], drops_labels: bool
) -> Iterator[Tensor]:
    for b, (each, count) in enumerate(zip(targets, counts, strict=True)):
        given = each[name].flatten()
        if len(given) != count and not (drops_labels and len(given) > count):
            raise ValueError(f"targets[{b}] has {len(given)} {name}, {count} boxes")
        if count and (given.is_floating_point() or given.dtype == torch.bool):
            raise TypeError(f"targets[{b}]: {name} is {given.dtype}; it must be an integer dtype")
        if count:
            yield given[:count].long()


def ground_truth_of(
    targets: Targets | FixedTargets,
    name: str,
    classes: int | Sequence[int] | None,
    *,
    drops_labels: bool = False,
    has_sizes: bool = False,
) -> GroundTruth:
    """The ground truth as one list, checked; no synchronization with a GPU.

    Args:
        targets: for each image "boxes": (n, 4), or (0,) for none, and labels: (n), or (n, 1).
            Images may differ in dtype.
        name: what labels are called there.
        classes: labels must be less, of each image if they differ; 0 where the criterion does not
            know how many there are; None where faults have been looked for already.
        drops_labels: labels behind the last box belong to nothing; otherwise they are an error.
        has_sizes: boxes are cxcywh, not corners.

    Raises:
        ValueError: labels that are not as many as boxes; what `faults.check` finds. TypeError:
            labels that are no integers.
    """
    if isinstance(targets, FixedTargets):
        boxes, labels, offsets = targets
        if len(boxes) != len(labels):
            raise ValueError(f"targets has {len(labels)} {name}, {len(boxes)} boxes")
        return _checked(boxes, labels, offsets, [], name, classes, has_sizes)
    for b, each in enumerate(targets):
        check_tensors(f"targets[{b}]", boxes=each["boxes"], **{name: each[name]})
    if isinstance(classes, int):
        given, theirs = ([each[key] for each in targets] for key in ("boxes", name))
        if (found := faults.collate(given, theirs, name, classes, has_sizes)) is not None:
            return found
    boxes, offsets = collate_boxes(targets)
    counts = [len(each["boxes"]) for each in targets]
    labels = torch.cat([offsets[:0], *_labels_of_boxes(targets, name, counts, drops_labels)])
    return _checked(boxes, labels, offsets, counts, name, classes, has_sizes)


def _checked(
    boxes: Tensor,
    labels: Tensor,
    offsets: Tensor,
    counts: list[int],
    name: str,
    classes: int | Sequence[int] | None,
    has_sizes: bool,
) -> GroundTruth:
    factor = None
    if classes is not None:
        limit = _limit(classes, counts, boxes.device)
        labels, factor = faults.check(faults.Rows(boxes, labels, offsets, name, limit, has_sizes))
    return GroundTruth(boxes, offsets, labels, counts, factor)


def _limit(classes: int | Sequence[int], counts: list[int], device: torch.device) -> int | Tensor:
    """One for all rows, or each one's."""
    if isinstance(classes, int):
        return classes
    if len({*classes}) == 1 and classes[0]:
        return classes[0]
    of_rows = [each for each, count in zip(classes, counts, strict=True) for _ in range(count)]
    return on_host(of_rows, device).to(device, non_blocking=True)
