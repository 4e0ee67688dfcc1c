# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Pictures with faces, drawn once and kept, and the cells that their faces belong to.

The held-out pictures are the demo's. Eight photographs as they are would not teach what is no face:
the detector then takes the first gravel that it sees for a crowd. So it learns from them in several
sizes, turned, and with patches pasted in that are no faces.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..face_detector.data import (
    FACE_SIDES,
    FACES,
    PICTURE,
    Bytes,
    FacePictures,
    Split,
    load_photographs,
    resize_square,
)
from .model import CELL, CELLS

MOST_FACES = CELLS * CELLS - 1  # the article's; the distribution ends at about a dozen
ZOOMS = (0.5, 1, 2)
PATCHES = 4  # without a face, on the area of a picture

Assigned = tuple[Tensor, Tensor]  # boxes (n, 4) int16 xyxy, and the cell of each (n)


@dataclass(frozen=True)
class DrawnPictures:
    pictures: Tensor  # (N, 256, 256) uint8
    boxes: list[Tensor]  # of each picture (n, 4), int16: a mirrored one can end at 256


def draw(split: Split, seed: int, count: int) -> DrawnPictures:
    photographs = varied(load_photographs(split), seed) if split == "train" else None
    source = FacePictures(split, seed, MOST_FACES, photographs=photographs)
    pictures, boxes = torch.empty(count, PICTURE, PICTURE, dtype=torch.uint8), []
    for index in range(count):
        pictures[index], truths = source[index]
        boxes.append(truths.to(torch.int16))
    return DrawnPictures(pictures, boxes)


def varied(photographs: list[Bytes], seed: int) -> list[Bytes]:
    """Each in several sizes, turned by right angles, with faceless patches in it."""
    from skimage.data import lfw_subset
    from skimage.transform import rescale

    rng = np.random.default_rng(seed)
    patches = np.rint(lfw_subset()[FACES:] * 255).astype(np.uint8)
    made = []
    for photograph in photographs:
        for zoom in ZOOMS:
            zoomed = rescale(photograph, zoom, anti_aliasing=zoom < 1, preserve_range=True)
            if min(zoomed.shape) < PICTURE:
                continue
            for turns in range(4):
                turned = np.rot90(np.rint(zoomed).astype(np.uint8), turns).copy()
                _paste(rng, turned, patches)
                made.append(turned)
    return made


def _paste(rng: np.random.Generator, photograph: Bytes, patches: Bytes) -> None:
    for _ in range(PATCHES * photograph.size // PICTURE**2):
        side = int(rng.integers(FACE_SIDES[0], FACE_SIDES[1] + 1))
        top, left = (int(rng.integers(0, length - side + 1)) for length in photograph.shape)
        patch = patches[rng.integers(len(patches))]
        photograph[top : top + side, left : left + side] = resize_square(patch, side)


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
