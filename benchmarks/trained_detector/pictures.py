# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Pictures with faces, drawn once and kept, and the cells that their faces belong to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ..face_detector.data import PICTURE, FacePictures, Split
from .model import CELL, CELLS

MOST_FACES = CELLS * CELLS - 1  # the article's; the distribution ends at about a dozen
NOT_MIRRORED, MIRRORED = 0, 1

Assigned = tuple[Tensor, Tensor]  # boxes (n, 4) int16 xyxy, and the cell of each (n)


@dataclass(frozen=True)
class DrawnPictures:
    pictures: Tensor  # (N, 256, 256) uint8
    boxes: list[Tensor]  # of each picture (n, 4), int16: a mirrored one can end at 256


def draw(split: Split, seed: int, count: int, on_picture: Callable[[int], None]) -> DrawnPictures:
    source = FacePictures(split, seed, MOST_FACES)
    pictures, boxes = torch.empty(count, PICTURE, PICTURE, dtype=torch.uint8), []
    for index in range(count):
        pictures[index], truths = source[index]
        boxes.append(truths.to(torch.int16))
        on_picture(index + 1)
    return DrawnPictures(pictures, boxes)


def mirror(boxes: Tensor) -> Tensor:
    """Left and right exchanged."""
    x1, y1, x2, y2 = boxes.unbind(1)
    return torch.stack([PICTURE - x2, y1, PICTURE - x1, y2], dim=1)


def assign(boxes: Tensor) -> Assigned:
    """The boxes that have a cell of their own: that of their centre, where of several the smallest
    stays, whose face was pasted over the others."""
    largest_first = (boxes[:, 2] - boxes[:, 0]).argsort(descending=True, stable=True)
    columns, rows = ((boxes[:, :2] + boxes[:, 2:]) // (2 * CELL)).unbind(1)
    cells = rows.long() * CELLS + columns.long()
    cell_of = cells.tolist()
    owners = {cell_of[row]: row for row in largest_first.tolist()}
    kept = torch.tensor(sorted(owners.values()), dtype=torch.long)
    return boxes[kept], cells[kept]


def assign_all(drawn: DrawnPictures) -> list[tuple[Assigned, Assigned]]:
    """Of each picture, as it is and mirrored."""
    return [(assign(boxes), assign(mirror(boxes))) for boxes in drawn.boxes]
