# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Masks as detectors are given them, (n, height, width) of each image: whether they can be used."""

from collections.abc import Sequence

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


def check_one_size(masks: Sequence[Tensor], name: str) -> None:
    sizes = [tuple(each.shape[1:]) for each in masks]
    if len({*sizes}) > 1:
        raise ValueError(f"{name} have height and width {sizes}; all must be the same")


def spread(masks: Tensor) -> Tensor:
    """Of (n, height, width) the largest less the least value of each, finite if all are. No integer
    is read."""
    if not masks.is_floating_point():
        return masks.new_zeros(len(masks), dtype=torch.float32)
    return masks.amax((1, 2)).float() - masks.amin((1, 2)).float()


def check_values(
    spreads: Tensor, labels: Tensor, offsets: Tensor, classes: int, name: str
) -> tuple[Tensor, Tensor | None]:
    """Of all images' masks, as `faults.check`."""
    stand_ins = pad(spreads[:, None], (3, 0))
    return check(Rows(stand_ins, labels, offsets, "class_labels", classes, True, None, name))
