# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Masks as detectors are given them, (n, height, width) of each image: whether they can be used."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from .faults import Rows, check


def check_shapes(masks: Sequence[Tensor], labels: Sequence[Tensor], name: str) -> None:
    """Labels of each image must be (n). `name` is what masks are called."""
    if len(masks) != len(labels):
        raise ValueError(f"{name} has {len(masks)} images, class_labels has {len(labels)}")
    for b, (each, own) in enumerate(zip(masks, labels, strict=True)):
        if each.dim() != 3 or own.shape != each.shape[:1]:
            raise ValueError(
                f"{name}[{b}] has shape {tuple(each.shape)}, class_labels[{b}] "
                f"{tuple(own.shape)}; they must be (n, height, width) and (n)"
            )


def masks_of(labels: Sequence[Mapping[str, Tensor]]) -> list[Tensor]:
    """Of each image's dictionary."""
    for b, each in enumerate(labels):
        if "masks" not in each:
            raise ValueError(f'labels[{b}] has no "masks"; all images must have them, or none')
    return [each["masks"] for each in labels]


def check_one_size(masks: Sequence[Tensor], name: str) -> None:
    sizes = [tuple(each.shape[1:]) for each in masks]
    if len({*sizes}) > 1:
        raise ValueError(f"{name} have height and width {sizes}; all must be the same")


def spread(masks: Tensor) -> Tensor:
    """Of (n, height, width) the largest less the least value of each, finite if all are. No integer
    is read."""
    if not masks.is_floating_point():
        return masks.new_zeros(len(masks), dtype=torch.float32)
    low, high = masks.flatten(1).aminmax(dim=1)
    return high.float() - low.float()


def check_values(
    spreads: Tensor, labels: Tensor, offsets: Tensor, classes: int, name: str
) -> tuple[Tensor, Tensor | None]:
    """Of all images' masks, as `faults.check`."""
    stand_ins = pad(spreads[:, None], (3, 0))
    return check(Rows(stand_ins, labels, offsets, "class_labels", classes, True, None, name))
