# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The pairs that a matcher leaves behind: DETR's layers, random rows, RetinaNet's foreground."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from boxloss.torch import collate_matches
from torch import Tensor

from ..common.cases import DTYPES, near, true_boxes

# Corners are exact in float32 in either format, and those of a prediction lie on this grid, of a
# true box half a step beside it: nothing ties, where formulations may differ in the gradient.
STEP = 2**-10
SHORTEST_PREDICTION = 1
SPAN = 256  # DETR's boxes are relative to the image

Matches = list[list[tuple[Tensor, Tensor]]]  # [layer][image] of (src, tgt)


@dataclass(frozen=True)
class Case:
    """Predictions of which few are matched, and the sum of losses that is wanted of those."""

    kind: str
    pair: str  # dtypes, "pred/target"
    shape: str  # for people
    pred: Tensor  # (..., 4); a leaf that requires its gradient
    target: Tensor  # (T, 4)
    pred_index: Tensor  # (S, P) or (P)
    target_index: Tensor
    box_format: str
    eps: float  # added
    giou_weight: float = 1
    l1_weight: float = 0  # with 0 neither L1 nor IoU is wanted
    weight: Tensor | None = None  # of each pair
    normalizer: Tensor | None = None  # on the device, as after an all-reduce
    # What loops over layers or images take: indices of pred's dimensions, and rows of target.
    loops: tuple[tuple[Tensor, ...], ...] = ()
    matches: Matches | None = None
    counts: tuple[int, ...] = ()
    forward_bytes: int | None = None
    backward_bytes: int | None = None

    @property
    def pairs(self) -> int:
        return self.pred_index.numel()

    @property
    def name(self) -> str:
        return f"{self.kind}, {self.shape}, {self.pairs:,} pairs, {self.pair}"


def detr_case(
    kind: str,
    layers: int,
    images: int,
    queries: int,
    boxes: int,
    pair: str,
    device: torch.device,
    seed: int = 0,
) -> Case:
    """Each image's `boxes` true boxes each meet one of its queries, another in each layer."""
    generator = torch.Generator().manual_seed(seed)
    pred_dtype, target_dtype = (DTYPES[name] for name in pair.split("/"))
    matches = [[_match(queries, boxes, generator) for _ in range(images)] for _ in range(layers)]
    counts = (boxes,) * images
    index, target_index = collate_matches(matches, counts, queries)
    truths = _true_boxes(images * boxes, generator)
    # What leaks out of a query without a match is found out by the agreement check.
    pred = torch.full((layers, images, queries, 4), torch.nan)
    pred.view(-1, 4)[index] = _relative(
        _predictions(truths[target_index.flatten()], generator)
    ).view(*index.shape, 4)
    loops = [
        (
            torch.cat([torch.full_like(src, image) for image, (src, _) in enumerate(layer)]),
            torch.cat([src for src, _ in layer]),
            rows,
        )
        for layer, rows in zip(matches, target_index, strict=True)
    ]
    return Case(
        kind,
        pair,
        f"{layers} layers x {images} images x {queries} queries",
        pred.to(device, pred_dtype).requires_grad_(),
        _relative(truths).to(device, target_dtype),
        index.to(device),
        target_index.to(device),
        "cxcywh",
        eps=0,
        giou_weight=2,
        l1_weight=5,
        normalizer=torch.tensor(float(images * boxes), device=device),
        loops=_to(device, loops),
        matches=matches,
        counts=counts,
    )


def gather_case(rows: int, pairs: int, device: torch.device, seed: int = 0) -> Case:
    """Random rows of long lists: of each, 16 of the 32 bytes that memory gives are wanted."""
    generator = torch.Generator(device).manual_seed(seed)
    truths = _true_boxes(rows, generator)
    place = torch.randperm(rows, generator=generator, device=device)
    pred = torch.empty_like(truths)
    pred[place] = _predictions(truths, generator)
    target_index = torch.randint(rows, (pairs,), generator=generator, device=device)
    index = place[target_index]
    read = 2 * pairs * (32 + index.element_size())
    return Case(
        "gather",
        "f32/f32",
        f"{rows:,} rows",
        pred.requires_grad_(),
        truths,
        index,
        target_index,
        "xyxy",
        eps=0,
        forward_bytes=read,
        backward_bytes=read + pred.nbytes,
    )


def retinanet_case(
    anchors: int, foreground: tuple[int, ...], device: torch.device, seed: int = 0
) -> Case:
    """Decoded boxes of all anchors, of which `foreground` in each image have a true box."""
    generator = torch.Generator().manual_seed(seed)
    images, boxes = len(foreground), 20
    truths = _true_boxes(images * boxes, generator)
    pred = torch.full((images, anchors, 4), torch.nan)
    loops = []
    for image, count in enumerate(foreground):
        rows = torch.randperm(anchors, generator=generator)[:count].sort().values
        truth = torch.randint(boxes, (count,), generator=generator)
        pred[image, rows] = _predictions(truths[image * boxes + truth], generator)
        loops.append((rows, truth + image * boxes))
    index, target_index = (
        torch.cat([step * image + each[i] for image, each in enumerate(loops)])
        for i, step in enumerate((anchors, 0))
    )
    weight = torch.cat([torch.full((n,), 1 / (n * images)) for n in foreground])
    return Case(
        "retinanet",
        "f32/f32",
        f"{images} images x {anchors:,} anchors",
        pred.to(device).requires_grad_(),
        truths.to(device),
        index.to(device),
        target_index.to(device),
        "xyxy",
        eps=1e-7,  # torchvision's
        weight=weight.to(device),
        loops=_to(device, loops),
    )


def _match(queries: int, boxes: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """As a Hungarian matcher returns it: queries in order."""
    src = torch.randperm(queries, generator=generator)[:boxes].sort().values
    return src, torch.randperm(boxes, generator=generator)


def _true_boxes(count: int, generator: torch.Generator) -> Tensor:
    return true_boxes(count, generator) + STEP / 2


def _predictions(truths: Tensor, generator: torch.Generator) -> Tensor:
    boxes = (near(truths, generator) / STEP).round() * STEP
    # An empty box touches whatever it lies in, which is a tie too.
    boxes[:, 2:] = torch.maximum(boxes[:, 2:], boxes[:, :2] + SHORTEST_PREDICTION)
    return boxes


def _relative(boxes: Tensor) -> Tensor:
    one, other = (boxes / SPAN).chunk(2, dim=-1)
    return torch.cat([(one + other) / 2, other - one], dim=-1)


def _to(
    device: torch.device, loops: Iterable[tuple[Tensor, ...]]
) -> tuple[tuple[Tensor, ...], ...]:
    return tuple(tuple(each.to(device) for each in loop) for loop in loops)
