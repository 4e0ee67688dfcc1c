# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What matchers and assigners see: predictions of all layers, and the true boxes of each image."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..common.cases import near, true_boxes

# Corners are exact in float32 in either format, as the agreement check's bounds assume.
STEP = 2**-10
SHORTEST_PREDICTION = 1
SPAN = 256  # DETR's boxes are relative to the image
LARGEST_LOGIT = 6  # beyond it 1 - sigmoid keeps few digits, and nothing could be checked


@dataclass(frozen=True)
class Cost:
    """What an entry is made of."""

    loss: str = "giou"
    iou_weight: float = 2
    l1_weight: float = 5
    class_weight: float = 0  # with 0 there are no classes
    class_mode: str = "focal"
    box_format: str = "cxcywh"
    eps: float = 0  # added


SOFTMAX = Cost(class_weight=1, class_mode="softmax")  # DETR's weights
FOCAL = Cost(class_weight=2)  # those of Deformable DETR and its heirs
BOXES_ONLY = Cost()
# No cost but the overlap itself.
OVERLAPS = Cost("ciou", iou_weight=1, l1_weight=0, box_format="xyxy", eps=1e-7)


@dataclass(frozen=True)
class Shape:
    """`boxes` in each image, or about as many as in COCO's."""

    layers: int
    images: int
    queries: int
    classes: int
    cost: Cost
    boxes: int | None = None
    groups: int = 1


SHAPES = {
    "detr": Shape(1, 8, 100, 92, SOFTMAX),  # 91 and "no object"
    "detr-layers": Shape(6, 8, 100, 92, SOFTMAX),
    "rtdetr": Shape(7, 16, 300, 80, FOCAL),
    "rtdetr-365": Shape(7, 16, 300, 365, FOCAL),
    "dense": Shape(1, 8, 300, 80, FOCAL, boxes=150),
    "dense-layers": Shape(7, 8, 300, 80, FOCAL, boxes=150),
    "lwdetr": Shape(1, 16, 3900, 91, FOCAL, groups=13),
    "assigner": Shape(1, 16, 8400, 0, OVERLAPS, boxes=100),
    "large": Shape(8, 16, 4096, 0, BOXES_ONLY, boxes=256),  # 512 MiB
    "large-focal": Shape(8, 16, 4096, 80, FOCAL, boxes=256),
}
# What is bound by a GPU's memory would take a CPU minutes and all memory.
SHAPES_ON_CPU = SHAPES | {
    "large": Shape(4, 8, 2048, 0, BOXES_ONLY, boxes=256),
    "large-focal": Shape(4, 8, 2048, 80, FOCAL, boxes=256),
}
QUICK_SHAPES = {
    "detr": Shape(1, 3, 20, 8, SOFTMAX),
    "detr-layers": Shape(2, 3, 20, 8, SOFTMAX),
    "rtdetr": Shape(3, 4, 30, 8, FOCAL),
    "rtdetr-365": Shape(3, 4, 30, 37, FOCAL),
    "dense": Shape(1, 3, 50, 8, FOCAL, boxes=25),
    "dense-layers": Shape(3, 3, 50, 8, FOCAL, boxes=25),
    "lwdetr": Shape(1, 3, 60, 9, FOCAL, groups=3),
    "assigner": Shape(1, 3, 200, 0, OVERLAPS, boxes=10),
    "large": Shape(2, 3, 100, 0, BOXES_ONLY, boxes=30),
    "large-focal": Shape(2, 3, 100, 8, FOCAL, boxes=30),
}
KINDS = tuple(SHAPES)
ASSIGNER = "assigner"
WRITING = (ASSIGNER, "large", "large-focal")  # held against what writes as much


@dataclass(frozen=True)
class Case:
    """All variants' tensors, on the device beforehand. What is padded is nobody's box."""

    kind: str
    shape: Shape
    pred: Tensor  # (layers, images, queries, 4)
    logits: Tensor | None  # (layers, images, queries, classes)
    target: Tensor  # (T, 4)
    labels: Tensor | None  # (T)
    offsets: Tensor  # (images + 1)
    counts: tuple[int, ...]
    padded_target: Tensor  # (images, most, 4)
    padded_labels: Tensor | None  # (images, most)

    @property
    def cost(self) -> Cost:
        return self.shape.cost

    @property
    def entries(self) -> int:
        """That are wanted: of each query with each true box of its own image."""
        return self.shape.layers * self.shape.queries * sum(self.counts)

    @property
    def bytes(self) -> int:
        return self.entries * torch.float32.itemsize

    @property
    def name(self) -> str:
        shape = self.shape
        parts = [self.kind, f"{shape.layers} x {shape.images} x {shape.queries} queries"]
        if shape.groups > 1:
            parts.append(f"{shape.groups} groups")
        if shape.classes:
            parts.append(f"{shape.classes} classes ({shape.cost.class_mode})")
        return ", ".join([*parts, f"{sum(self.counts):,} boxes"])

    def columns(self, image: int) -> slice:
        first = sum(self.counts[:image])
        return slice(first, first + self.counts[image])


def make_case(
    kind: str,
    shape: Shape,
    device: torch.device,
    seed: int = 0,
    counts: tuple[int, ...] | None = None,
) -> Case:
    """On the device from the start: the largest have millions of boxes."""
    generator = torch.Generator(device).manual_seed(seed)
    counts = counts or box_counts(shape, seed)
    total, most = sum(counts), max(counts)
    truths = true_boxes(total, generator) + STEP / 2
    # Guesses are near some true box, mostly of another image, and mostly of another query.
    rows = shape.layers * shape.images * shape.queries
    guesses = truths[torch.randint(total, (rows,), generator=generator, device=device)]
    boxes = (near(guesses, generator) / STEP).round() * STEP
    boxes[:, 2:] = torch.maximum(boxes[:, 2:], boxes[:, :2] + SHORTEST_PREDICTION)
    if shape.cost.box_format == "cxcywh":
        boxes, truths = relative(boxes), relative(truths)
    lead = (shape.layers, shape.images, shape.queries)
    logits = labels = padded_labels = None
    if shape.classes:
        logits = torch.randn(*lead, shape.classes, generator=generator, device=device) * 2
        logits.clamp_(-LARGEST_LOGIT, LARGEST_LOGIT)
        # The last class of a softmax is "no object".
        known = shape.classes - (shape.cost.class_mode == "softmax")
        labels = torch.randint(known, (total,), generator=generator, device=device)
        padded_labels = _padded(labels, counts, most)
    offsets = torch.tensor([0, *counts]).cumsum(0)
    return Case(
        kind,
        shape,
        boxes.view(*lead, 4),
        logits,
        truths,
        labels,
        offsets.to(device),
        counts,
        _padded(truths, counts, most),
        padded_labels,
    )


def box_counts(shape: Shape, seed: int) -> tuple[int, ...]:
    """About 7 in an image, half of the images with 4 or fewer, a few with dozens: log-normal, and
    spread evenly, for a handful of images is no sample."""
    if shape.boxes is not None:
        return (shape.boxes,) * shape.images
    middles = (torch.arange(shape.images) + 0.5) / shape.images
    drawn = (torch.special.ndtri(middles) + 1.5).exp().round().long()
    counts = drawn.clamp(max=min(63, shape.queries // shape.groups))
    order = torch.randperm(shape.images, generator=torch.Generator().manual_seed(seed))
    return tuple(counts[order].tolist())


def relative(boxes: Tensor) -> Tensor:
    one, other = (boxes / SPAN).chunk(2, dim=-1)
    return torch.cat([(one + other) / 2, other - one], dim=-1)


def _padded(values: Tensor, counts: tuple[int, ...], most: int) -> Tensor:
    """Padding repeats a box that exists: no variant is slowed by NaN."""
    padded = values[:1].expand(len(counts) * most, *values.shape[1:]).clone()
    padded = padded.view(len(counts), most, *values.shape[1:])
    for row, each in zip(padded, values.split(counts), strict=True):
        row[: len(each)] = each
    return padded
