# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Batches for Ultralytics' YOLOs: pictures that are not squares."""

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch import Tensor
from ultralytics.utils.loss import v8DetectionLoss

from .made_up import MadeUp

STRIDES = 5, 4  # of the last map: an image's width and height
PLACES = 3, 4  # of boxes that do not overlap: rows, and columns

Grid: TypeAlias = tuple[int, int]
# Boxes, and for each anchor the distances of the box that it is near, or None: of a loss that takes
# anchors that overlap no box.
Boxes: TypeAlias = Callable[[MadeUp, tuple[int, ...], list[Grid]], tuple[Tensor, Tensor | None]]


def scattered(
    random: MadeUp, counts: tuple[int, ...], grids: list[Grid]
) -> tuple[Tensor, Tensor | None]:
    """Some are small."""
    boxes = torch.cat([random.boxes(count) for count in counts])
    if len(counts) > 1:
        boxes[::3, 2:] *= 0.2
    return boxes, None


def apart(
    random: MadeUp, counts: tuple[int, ...], grids: list[Grid]
) -> tuple[Tensor, Tensor | None]:
    """Distances, in cells, of the sides of the box that an anchor is near: (images, 4, 1, anchors).

    So all anchors in a box overlap it, and no other. Of those that do not Ultralytics' masks and
    keypoints learn some, which the pages list as a difference.
    """
    rows, columns = PLACES
    middles = _middles(rows, columns)
    boxes, distances = [], []
    for count in counts:
        centres = middles + random.uniform(-0.02, 0.02, *middles.shape)
        sizes = random.uniform(0.3, 0.8, *middles.shape) / torch.tensor([columns, rows])
        boxes.append(torch.cat((centres, sizes), 1)[:count])
        for height, width in grids:
            points = _middles(height, width)
            x, y = (points * torch.tensor([columns, rows])).long().unbind(1)
            place = y * columns + x
            moved, halves = points - centres[place], sizes[place] / 2
            sides = torch.cat((halves + moved, halves - moved), 1)
            distances.append((sides * torch.tensor([width, height] * 2)).clamp(min=0.1))
    return torch.cat(boxes), torch.cat(distances).view(len(counts), -1, 4).mT[:, :, None]


def _middles(rows: int, columns: int) -> Tensor:
    """Of an image's parts, row by row: x and y."""
    y, x = (torch.arange(each, dtype=torch.float32) + 0.5 for each in (rows, columns))
    return torch.cartesian_prod(y / rows, x / columns).flip(1)


def made_up(
    model: Any,
    counts: tuple[int, ...],
    boxes: Boxes = scattered,
    truth: Callable[[MadeUp, Grid], dict[str, Tensor]] = lambda *_: {},
    outputs: Callable[[MadeUp, int, Grid], dict[str, Tensor]] = lambda *_: {},
) -> dict[str, Any]:
    """A batch. What `truth` and `outputs` add is by the first map, and the number of anchors."""
    head, random = model.model[-1], MadeUp.of(model)
    strides = [int(each) for each in head.stride]
    across, down = (side * strides[-1] for side in STRIDES)
    grids = [(down // each, across // each) for each in strides]
    anchors, total = sum(height * width for height, width in grids), sum(counts)
    true_boxes, near = boxes(random, counts, grids)
    image = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
    batch = {
        "batch_idx": image.to(torch.float32),
        "cls": random.integers(head.nc, total, 1).to(torch.float32),
        "bboxes": true_boxes,
        **truth(random, grids[0]),
    }

    def preds() -> Any:
        # Distances of 1 to 4 cells, or distributions around them: most predictions overlap boxes,
        # as those of which a box has too few are a difference that the pages list.
        distances = random.uniform(1, 4, len(counts), 4, 1, anchors)
        if near is not None:
            distances = near * random.uniform(0.8, 1.2, *near.shape)
        if head.reg_max > 1:
            bins = torch.arange(head.reg_max)[:, None]
            distances = (
                random.normal(len(counts), 4, head.reg_max, anchors) - 3 * (bins - distances).abs()
            )
        made = {"boxes": distances.flatten(1, 2)}
        made["scores"] = random.normal(len(counts), head.nc, anchors)
        parts = torch.cat([*made.values()], 1).split([h * w for h, w in grids], 2)
        maps = [each.unflatten(2, grid) for each, grid in zip(parts, grids, strict=True)]
        if not hasattr(v8DetectionLoss, "loss"):  # until 8.4
            return [random.output(each) for each in maps]
        made |= outputs(random, anchors, grids[0])
        found = {name: random.output(each) for name, each in made.items()}
        return {**found, "feats": [each.to(random.device) for each in maps]}

    has_two = getattr(head, "one2one_cv2", None) is not None  # fusing leaves one of them
    found = {"one2many": preds(), "one2one": preds()} if has_two else preds()
    return {"preds": found, "batch": {name: each.to(random.device) for name, each in batch.items()}}
