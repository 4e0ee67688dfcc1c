# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Pictures with varying numbers of boxes, made on the fly.

`RandomPictures` is the data of the article that this study follows: noise and random boxes.
`FacePictures` is the same task made learnable: real faces pasted into real photographs, both from
scikit-image's wheel, so nothing is downloaded.

Picture i is a function of (seed, split, i) alone: every variant and every worker sees the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.data import Dataset

Split = Literal["train", "test"]
Sample = tuple[Tensor, Tensor]  # picture (256, 256) uint8, boxes (n, 4) uint8 xyxy
Bytes = np.ndarray[tuple[int, ...], np.dtype[np.uint8]]

PICTURE = 256
LARGEST_COORDINATE = 255  # boxes are uint8
SPLITS: tuple[Split, ...] = ("train", "test")
LENGTH = {"train": 1_000_000, "test": 10_000}

FACES = 100  # the first hundred of skimage's LFW subset are faces, the others are not
TRAIN_FACES = 80
FACE_SIDES = (25, 125)  # one to five times the faces' own 25 pixels

TRAIN_PHOTOGRAPHS = "astronaut brick camera chelsea coins grass hubble_deep_field moon"
PHOTOGRAPHS: dict[Split, str] = {"train": TRAIN_PHOTOGRAPHS, "test": "coffee gravel rocket"}
# Of the astronaut what is below its own face, which has no box and would teach the wrong thing.
FIRST_ROW = {"astronaut": 220}


def box_count(rng: np.random.Generator, most: int) -> int:
    """The article's distribution: most pictures hold fewer than ten boxes, a quarter none."""
    return int(np.clip(np.floor(abs(rng.normal(0, 3))), 0, most))


class Pictures(Dataset[Sample]):
    """A data set whose subclasses say how one picture is drawn."""

    def __init__(self, split: Split, seed: int, most_boxes: int) -> None:
        self.split = split
        self.seed = seed
        self.most_boxes = most_boxes

    def __len__(self) -> int:
        return LENGTH[self.split]

    def __getitem__(self, index: int) -> Sample:
        rng = np.random.default_rng((self.seed, SPLITS.index(self.split), index))
        picture, boxes = self.draw(rng, box_count(rng, self.most_boxes))
        return torch.from_numpy(picture), torch.from_numpy(boxes.astype(np.uint8))

    def draw(self, rng: np.random.Generator, count: int) -> tuple[Bytes, np.ndarray]:
        """A picture and its (count, 4) boxes, as integers in [0, 255]."""
        raise NotImplementedError


class RandomPictures(Pictures):
    """Noise, and boxes that have nothing to do with it."""

    def draw(self, rng: np.random.Generator, count: int) -> tuple[Bytes, np.ndarray]:
        picture = rng.integers(0, 256, (PICTURE, PICTURE), dtype=np.uint8)
        corners = rng.integers(0, 255, (count, 2))
        sides = rng.integers(1, 256, (count, 2))
        opposite = np.minimum(corners + sides, LARGEST_COORDINATE)
        return picture, np.concatenate([corners, opposite], axis=1)


class FacePictures(Pictures):
    """Photographs with faces pasted in."""

    def __init__(
        self,
        split: Split,
        seed: int,
        most_boxes: int,
        faces: Bytes | None = None,
        photographs: list[Bytes] | None = None,
    ) -> None:
        super().__init__(split, seed, most_boxes)
        self.faces = load_faces(split) if faces is None else faces
        self.photographs = load_photographs(split) if photographs is None else photographs

    def draw(self, rng: np.random.Generator, count: int) -> tuple[Bytes, np.ndarray]:
        picture = random_crop(rng, self.photographs[rng.integers(len(self.photographs))])
        # Largest first, so that no small face disappears behind a large one.
        sides = np.sort(rng.integers(FACE_SIDES[0], FACE_SIDES[1] + 1, count))[::-1]
        boxes = np.empty((count, 4), dtype=np.int64)
        for box, side in zip(boxes, sides, strict=True):
            x, y = rng.integers(0, LARGEST_COORDINATE - side + 1, 2)
            face = self.faces[rng.integers(len(self.faces))]
            picture[y : y + side, x : x + side] = resize_square(face, int(side))
            box[:] = x, y, x + side, y + side
        return picture, left_to_right(boxes)


def left_to_right(boxes: np.ndarray) -> np.ndarray:
    """An order that a picture shows, for prediction k is paired with the k-th box."""
    return boxes[np.lexsort((boxes[:, 1], boxes[:, 0]))]


def random_crop(rng: np.random.Generator, photograph: Bytes) -> Bytes:
    top, left = (rng.integers(0, side - PICTURE + 1) for side in photograph.shape)
    return photograph[top : top + PICTURE, left : left + PICTURE].copy()


def resize_square(image: Bytes, side: int) -> Bytes:
    """Bilinear: much faster than a general warp."""
    whole = torch.from_numpy(image)[None, None].float()
    resized = functional.interpolate(whole, (side, side), mode="bilinear")
    return resized[0, 0].round().byte().numpy()


def load_faces(split: Split) -> Bytes:
    """(n, 25, 25) faces; those of the two splits are different people's pictures."""
    from skimage.data import lfw_subset

    faces: Bytes = np.rint(lfw_subset()[:FACES] * 255).astype(np.uint8)
    return faces[:TRAIN_FACES] if split == "train" else faces[TRAIN_FACES:]


def load_photographs(split: Split) -> list[Bytes]:
    """Grayscale photographs of at least 256x256 pixels."""
    from skimage.color import rgb2gray

    def grey(photograph: Bytes) -> Bytes:
        if photograph.ndim == 3:
            photograph = np.rint(255 * rgb2gray(photograph[..., :3])).astype(np.uint8)
        return photograph

    return [grey(each) for each in load_originals(split)]


def load_originals(split: Split) -> list[Bytes]:
    """The same photographs as scikit-image has them, grey or in colours."""
    import skimage.data

    return [
        getattr(skimage.data, name)()[FIRST_ROW.get(name, 0) :]
        for name in PHOTOGRAPHS[split].split()
    ]


DATA: dict[str, Callable[[Split, int, int], Pictures]] = {
    "faces": FacePictures,
    "random": RandomPictures,
}
