# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Pictures of real pixels with real objects in them: photographs and faces that scikit-image's
wheel holds, and scikit-learn's handwritten digits.

Photographs, faces and digits of the test are none of those of training. A tenth of the pictures
are empty, a fifth are crowds of small boxes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ..face_detector.data import SPLITS, Split, load_faces, load_originals

SIDE = 320  # of a picture, in pixels
FACE = 10  # the class after those of the digits
CLASSES = FACE + 1

EMPTY, CROWDED = 0.1, 0.2  # of all pictures
USUAL_COUNTS, CROWD_COUNTS = (1, 8), (20, 40)
USUAL_HEIGHTS, CROWD_HEIGHTS = (12, 112), (10, 40)  # of boxes, in pixels
FACES = 0.3  # of all objects
TEXTURE = 32  # the side that every object is stored with
TRAIN_DIGITS = 1200  # of 1,797
SMALLEST_CROP = 160
TOGETHER = 128  # pictures that are composed at once: what memory allows


@dataclass(frozen=True)
class Scenes:
    pictures: Tensor  # (n, 3, SIDE, SIDE) uint8
    boxes: list[Tensor]  # of each picture, (k, 4) corners in pixels, on the host
    labels: list[Tensor]

    def __len__(self) -> int:
        return len(self.boxes)


# --- Composing ---


@dataclass(frozen=True)
class Objects:
    textures: Tensor  # (n, 2, TEXTURE, TEXTURE): grey, as much as it covers, and how much that is
    aspects: Tensor  # width / height
    labels: Tensor


def compose(split: Split, count: int, device: torch.device) -> Scenes:
    """The same at each call."""
    draws = torch.Generator().manual_seed(SPLITS.index(split))
    faces, digits = as_objects(load_faces(split)), load_digits(split)
    photographs = [each.to(device) for each in load_photographs(split)]
    pictures = torch.empty(count, 3, SIDE, SIDE, dtype=torch.uint8, device=device)
    boxes, labels = [], []
    for first in range(0, count, TOGETHER):
        size = min(TOGETHER, count - first)
        drawn = torch.stack([background(photographs, draws) for _ in range(size)])
        light = (drawn.mean((1, 2, 3)) < 0.5).cpu()  # ink that can be seen
        chosen = [place(faces, digits, draws) for _ in range(size)]
        for slot in range(max(len(each.corners) for each in chosen)):
            filled = [i for i, each in enumerate(chosen) if slot < len(each.corners)]
            textures = torch.stack([chosen[i].textures[slot] for i in filled]).to(device)
            corners = torch.stack([chosen[i].corners[slot] for i in filled]).to(device)
            tints = 0.25 * torch.rand(len(filled), 3, generator=draws)
            faced = torch.tensor([bool(chosen[i].labels[slot] == FACE) for i in filled])
            tints = torch.where((faced | light[filled])[:, None], 1 - tints, tints)
            where = torch.tensor(filled, device=device)
            drawn[where] = pasted(drawn[where], textures, corners, tints.to(device))
        pictures[first : first + size] = (255 * drawn).round().byte()
        boxes += [each.corners for each in chosen]
        labels += [each.labels for each in chosen]
    return Scenes(pictures, boxes, labels)


@dataclass(frozen=True)
class Placed:
    textures: Tensor
    corners: Tensor
    labels: Tensor


def place(faces: Objects, digits: Objects, draws: torch.Generator) -> Placed:
    """A picture's objects, the largest first, so that no small one disappears behind it."""
    kind = torch.rand((), generator=draws).item()
    crowded = kind > 1 - CROWDED
    fewest, most = CROWD_COUNTS if crowded else USUAL_COUNTS
    lowest, highest = CROWD_HEIGHTS if crowded else USUAL_HEIGHTS
    count = int(torch.randint(fewest, most + 1, (), generator=draws)) if kind >= EMPTY else 0
    spread = torch.rand(count, generator=draws).sort(descending=True).values
    heights = lowest * (highest / lowest) ** spread

    chosen = (torch.rand(count, generator=draws) >= FACES).long()
    index = (torch.rand(count, generator=draws)).double()

    def of_both(name: str) -> Tensor:
        values = [
            getattr(each, name)[(index * len(each.labels)).long()] for each in (faces, digits)
        ]
        return torch.stack(values)[chosen, torch.arange(count)]

    sides = torch.stack((heights * of_both("aspects"), heights), 1)
    corner = (SIDE - sides) * torch.rand(count, 2, generator=draws)
    return Placed(of_both("textures"), torch.cat((corner, corner + sides), 1), of_both("labels"))


def background(photographs: list[Tensor], draws: torch.Generator) -> Tensor:
    def drawn(least: int, most: int) -> int:
        return int(torch.randint(least, most + 1, (), generator=draws))

    photograph = photographs[drawn(0, len(photographs) - 1)]
    height, width = photograph.shape[1:]
    side = drawn(SMALLEST_CROP, min(height, width))
    top, left = drawn(0, height - side), drawn(0, width - side)
    crop = photograph[:, top : top + side, left : left + side]
    return functional.interpolate(crop[None], (SIDE, SIDE), mode="bilinear")[0]


def pasted(pictures: Tensor, textures: Tensor, corners: Tensor, tints: Tensor) -> Tensor:
    """Each picture with a texture of its own at its own place."""
    centres = torch.arange(SIDE, device=pictures.device) + 0.5
    low, high = corners[:, None, :2], corners[:, None, 2:]
    x, y = (2 * (centres[None, :, None] - low) / (high - low) - 1).unbind(-1)  # -1 to 1 inside
    columns, rows = torch.broadcast_tensors(x[:, None, :], y[:, :, None])
    found = functional.grid_sample(textures, torch.stack((columns, rows), -1), align_corners=False)
    grey, cover = found.split(1, 1)
    return pictures * (1 - cover) + grey * tints[:, :, None, None]


# --- Sources ---


def as_objects(faces: np.ndarray) -> Objects:
    grey = resized(torch.from_numpy(faces)[:, None] / 255)
    labels = torch.full((len(faces),), FACE)
    return Objects(torch.cat((grey, torch.ones_like(grey)), 1), torch.ones(len(faces)), labels)


def load_digits(split: Split) -> Objects:
    """Ink alone; a box is around all that has half of the darkest ink."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    chosen = slice(None, TRAIN_DIGITS) if split == "train" else slice(TRAIN_DIGITS, None)
    ink = torch.from_numpy(images[chosen]).float().view(-1, 8, 8) / 16
    textures, aspects = [], []
    for each in ink:
        rows, columns = ((each > 0.5).any(axis).nonzero() for axis in (1, 0))
        tight = each[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
        textures.append(resized(tight[None, None])[0])
        aspects.append(tight.shape[1] / tight.shape[0])
    both = torch.stack(textures).expand(-1, 2, -1, -1)
    return Objects(both, torch.tensor(aspects), torch.from_numpy(labels[chosen]).long())


def load_photographs(split: Split) -> list[Tensor]:
    """(3, height, width), from 0 to 1."""

    def coloured(pixels: np.ndarray) -> Tensor:
        colours = pixels[..., :3] if pixels.ndim == 3 else np.stack([pixels] * 3, -1)
        return torch.from_numpy(colours.copy()).movedim(-1, 0).float() / 255

    return [coloured(each) for each in load_originals(split)]


def resized(images: Tensor) -> Tensor:
    return functional.interpolate(images, (TEXTURE, TEXTURE), mode="bilinear")


# --- Batches ---

LARGEST_ZOOM, LARGEST_SHIFT, LARGEST_GAIN = 1.25, 0.1, 1.3
LEAST_SEEN = 0.5  # of a box that stays

Batch = tuple[Tensor, list[Tensor], list[Tensor]]  # pictures, boxes as parts of sides, labels


def batches(scenes: Scenes, size: int, seed: int) -> Iterator[Batch]:
    """Without end; another order, and other zooms, shifts and brightness, in each epoch."""
    draws = torch.Generator().manual_seed(seed)
    while True:
        order = torch.randperm(len(scenes), generator=draws)
        for chosen in order[: len(order) // size * size].split(size):
            yield augmented(scenes, chosen, draws)


def augmented(scenes: Scenes, chosen: Tensor, draws: torch.Generator) -> Batch:
    """No flips, since digits have none."""
    device, count = scenes.pictures.device, len(chosen)

    def drawn(*shape: int) -> Tensor:
        return 2 * torch.rand(count, *shape, generator=draws) - 1

    zoom, gain = LARGEST_ZOOM ** drawn(1), LARGEST_GAIN ** drawn(1)
    shift = LARGEST_SHIFT * drawn(2)  # of the centre, in sides
    # Where in the picture each new pixel lies, from -1 to 1.
    there = torch.zeros(count, 2, 3)
    there[:, [0, 1], [0, 1]] = 1 / zoom
    there[:, :, 2] = -2 * shift / zoom
    numbers = torch.cat((there.flatten(1), gain), 1).to(device)
    grid = functional.affine_grid(
        numbers[:, :6].view(-1, 2, 3), [count, 3, SIDE, SIDE], align_corners=False
    )
    pictures = scenes.pictures[chosen.to(device)].float() / 255
    pictures = functional.grid_sample(pictures, grid, align_corners=False)
    pictures = (pictures * numbers[:, 6, None, None, None]).clamp(max=1)

    counts = torch.tensor([len(scenes.boxes[i]) for i in chosen])
    owner = torch.arange(count).repeat_interleave(counts)
    corners = torch.cat([scenes.boxes[i] for i in chosen]).view(-1, 2, 2) / SIDE
    moved = (corners - 0.5) * zoom[owner, None] + 0.5 + shift[owner, None]
    seen = moved.clamp(0, 1)
    stays = area(seen) >= LEAST_SEEN * area(moved)
    low, high = seen[stays].unbind(1)
    boxes = torch.cat(((low + high) / 2, high - low), 1).to(device)
    labels = torch.cat([scenes.labels[i] for i in chosen])[stays].to(device)
    ends = [0, *owner[stays].bincount(minlength=count).cumsum(0).tolist()]
    spans = [slice(*each) for each in pairwise(ends)]
    return pictures, [boxes[each] for each in spans], [labels[each] for each in spans]


def area(corners: Tensor) -> Tensor:
    return (corners[:, 1] - corners[:, 0]).prod(1)
