# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Random problems for task_aligned_match."""

from typing import Any

import torch
from torch import Tensor

Problem = dict[str, Any]

# What an overlap in float32 is off: CIoU of boxes of ordinary shape is a sum of three terms
# of at most 1, with some 20 roundings in each.
OVERLAP_ERROR = 64 * 2.0**-24
STRIDES = (8, 16, 32)


def grid(size: int) -> Tensor:
    """The points of a pyramid's cells."""
    cells = [(torch.arange(size // stride) + 0.5) * stride for stride in STRIDES]
    return torch.cat([torch.cartesian_prod(each, each).flip(-1) for each in cells])


def problem(
    seed: int,
    device: torch.device | None = None,
    images: int = 3,
    boxes: int = 12,
    classes: int = 4,
    size: int = 128,
    is_padded: bool = False,
    is_rotated: bool = False,
    **rule: Any,
) -> Problem:
    """Predictions as a network gives them that has learned something; some images have no boxes."""
    random = torch.Generator().manual_seed(seed)

    def rand(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=random)

    points = grid(size)
    anchors = len(points)
    centre, sides = size * rand(images, boxes, 2), 4 + size / 2 * rand(images, boxes, 2) ** 2
    target = torch.cat((centre - sides / 2, centre + sides / 2), -1)
    labels = torch.randint(classes, (images, boxes), generator=random)
    counts = torch.randint(boxes + 1, (images,), generator=random)
    near = torch.randint(boxes, (images, anchors), generator=random)
    own = target.gather(1, near[..., None].expand(-1, -1, 4))
    spread = 0.4 * (own[..., 2:] - own[..., :2]).repeat(1, 1, 2)
    predicted = own + spread * (rand(images, anchors, 4) - 0.5)
    if is_rotated:  # the angles of these boxes, and of predictions near them
        turn = 4 * rand(images, boxes, 1) - 1
        target = torch.cat((centre, sides, turn), -1)
        own = target.gather(1, near[..., None].expand(-1, -1, 5))
        noise = rand(images, anchors, 5) - 0.5
        predicted = own + noise * torch.cat(
            (0.4 * own[..., 2:4].repeat(1, 1, 2), noise[..., :1]), -1
        )
    values: Problem = {
        "scores": rand(images, anchors, classes),
        "pred": predicted,
        "points": points,
        **rule,
    }
    has_box = torch.arange(boxes) < counts[:, None]
    if is_padded:
        values["target"] = target * has_box[..., None]
        values["labels"] = labels.where(has_box, -1)
        values["offsets"] = None
    else:
        values["target"], values["labels"] = target[has_box], labels[has_box]
        values["offsets"] = torch.cat((torch.zeros(1, dtype=torch.int64), counts.cumsum(0)))
    if device is None:
        return values
    return {k: v.to(device) if isinstance(v, Tensor) else v for k, v in values.items()}
