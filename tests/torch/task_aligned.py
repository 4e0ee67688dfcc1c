# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The task-aligned assignment as whole matrices in plain torch, in double, and random problems."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

Problem = dict[str, Any]

UNIT = 2.0**-24
# What an overlap in float32 is off: CIoU of boxes of ordinary shape is a sum of three terms
# of at most 1, with some 20 roundings in each.
OVERLAP_ERROR = 64 * UNIT
METRIC_ERROR = 16 * UNIT  # relative: powers, their product, and how they are stored


def corners(boxes: Tensor, box_format: str) -> Tensor:
    if box_format == "xyxy":
        return boxes
    first, size = boxes[..., :2], boxes[..., 2:]
    if box_format == "cxcywh":
        first = first - size / 2
    return torch.cat((first, first + size), -1)


def ciou(a: Tensor, b: Tensor) -> Tensor:
    """Of corners that broadcast."""
    (ax1, ay1, ax2, ay2), (bx1, by1, bx2, by2) = a.unbind(-1), b.unbind(-1)
    aw, ah, bw, bh = ax2 - ax1, ay2 - ay1, bx2 - bx1, by2 - by1
    w = (torch.minimum(ax2, bx2) - torch.maximum(ax1, bx1)).clamp(min=0)
    h = (torch.minimum(ay2, by2) - torch.maximum(ay1, by1)).clamp(min=0)
    iou = w * h / (aw * ah + bw * bh - w * h + 1e-7)
    enclosing_w = torch.maximum(ax2, bx2) - torch.minimum(ax1, bx1)
    enclosing_h = torch.maximum(ay2, by2) - torch.minimum(ay1, by1)
    squared = (ax1 + ax2 - bx1 - bx2) ** 2 + (ay1 + ay2 - by1 - by2) ** 2
    distance = squared / 4 / (enclosing_w**2 + enclosing_h**2 + 1e-7)
    v = 4 / math.pi**2 * (torch.atan2(aw, ah) - torch.atan2(bw, bh)) ** 2
    return iou - distance - v * v / (1 - iou + v + 1e-7)


@dataclass
class Plain:
    """Results, and where rounding may decide otherwise."""

    target_index: Tensor
    score: Tensor
    overlap: Tensor
    is_open: Tensor


def best(metric: Tensor, error: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """(boxes, anchors): those above 0 among the `count` highest, of equal ones the first; and the
    boxes whose choice rounding may change."""
    values, order = metric.sort(dim=-1, descending=True, stable=True)
    chosen = torch.zeros_like(metric, dtype=torch.bool)
    chosen.scatter_(-1, order[..., :count], values[..., :count] > 0)
    is_open = torch.zeros(len(metric), dtype=torch.bool)
    if count < metric.shape[-1]:
        last, next_ = values[:, count - 1], values[:, count]
        errors = error.gather(-1, order)[:, count - 1 : count + 1].sum(-1)
        is_open = (last > 0) & (last != next_) & (last - next_ <= errors)
    return chosen, is_open


def plain_image(
    scores: Tensor,
    pred: Tensor,
    points: Tensor,
    target: Tensor,
    labels: Tensor,
    has_box: Tensor,
    rule: Problem,
) -> Plain:
    """Of one image; target_index are its own boxes."""
    anchors, boxes = len(pred), len(target)
    if boxes == 0:
        return Plain(
            torch.full((anchors,), -1),
            torch.zeros(anchors),
            torch.zeros(anchors),
            torch.zeros(anchors, dtype=torch.bool),
        )
    around = target
    if rule["min_side"] > 0:
        centre = (target[:, :2] + target[:, 2:]) / 2
        sides = target[:, 2:] - target[:, :2]
        small = rule["min_side"] if rule["small_side"] is None else rule["small_side"]
        half = sides.where(sides >= small, rule["min_side"]) / 2
        around = torch.cat((centre - half, centre + half), -1)
    sides = torch.cat((points[None] - around[:, None, :2], around[:, None, 2:] - points[None]), -1)
    inside = (sides > 1e-9).all(-1) & has_box[:, None]

    overlap = ciou(pred.double()[None], target.double()[:, None]).clamp(min=0)
    overlap = overlap.where(inside, 0)
    powers = scores.pow(rule["alpha"]).double()  # in their own dtype
    metric = powers.T[labels.clamp(0, scores.shape[1] - 1)] * overlap.pow(rule["beta"])
    is_candidate = inside & (overlap == overlap) & (metric == metric)
    metric, overlap = metric.where(is_candidate, 0), overlap.where(is_candidate, 0)
    relative = rule["beta"] * OVERLAP_ERROR / overlap.clamp(min=1e-3) + METRIC_ERROR
    error = metric * relative
    if scores.dtype in (torch.float16, torch.bfloat16):  # a power may be rounded the other way
        error = error + metric * torch.finfo(scores.dtype).eps

    chosen, open_boxes = best(metric, error, rule["topk"])
    choosers = chosen.sum(0)
    having_any = overlap.where((overlap > 0) | (metric > 0), -1)
    most = having_any.max(0)  # the first of equal ones
    owner = torch.where(choosers > 1, most.indices, chosen.int().argmax(0))
    two = having_any.topk(min(2, boxes), 0).values
    close = (two[0] - two[-1] <= 2 * OVERLAP_ERROR) & (two[0] != two[-1]) & (choosers > 1)
    is_open = close | (inside & open_boxes[:, None]).any(0)
    owned = torch.arange(boxes)[:, None] == owner
    owned &= (choosers > 0) & (metric > 0)
    if (rule["topk2"] or rule["topk"]) != rule["topk"]:
        kept, open_boxes = best(metric.where(owned, 0), error, rule["topk2"])
        is_open = is_open | (inside & open_boxes[:, None]).any(0)
        owned &= kept
    metric, overlap = metric.where(owned, 0), overlap.where(owned, 0)
    normalized = metric * overlap.amax(-1, True) / (metric.amax(-1, True) + 1e-9)
    index = torch.where(owned.any(0), owner, -1)
    return Plain(index, normalized.amax(0), overlap.amax(0), is_open)


def plain(values: Problem) -> Plain:
    """Of a problem on the CPU."""
    scores, target, labels, offsets = (
        values[name] for name in ("scores", "target", "labels", "offsets")
    )
    rule = {
        "topk": 10,
        "topk2": None,
        "alpha": 0.5,
        "beta": 6.0,
        "min_side": 0.0,
        "small_side": None,
        **values,
    }
    pred = corners(values["pred"], values.get("pred_format", "xyxy"))
    # In float32 or wider, as points in boxes are decided on.
    tensors = (scores, pred, values["points"], target)
    wide = torch.float64 if any(each.dtype == torch.float64 for each in tensors) else torch.float32
    images = []
    for b in range(len(scores)):
        if offsets is None:
            first, own, own_labels = b * target.shape[1], target[b].to(wide), labels[b]
            has_box = own.sum(-1) > 0
        else:
            first, end = offsets[b].item(), offsets[b + 1].item()
            own, own_labels = target[first:end].to(wide), labels[first:end]
            has_box = torch.ones(len(own), dtype=torch.bool)
        points = values["points"] if values["points"].dim() == 2 else values["points"][b]
        image = plain_image(
            scores[b], pred[b], points.to(wide), own, own_labels.long(), has_box, rule
        )
        image.target_index = torch.where(image.target_index < 0, -1, image.target_index + first)
        images.append(image)
    names = ("target_index", "score", "overlap", "is_open")
    return Plain(*(torch.stack([getattr(each, name) for each in images]) for name in names))


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
    scores: torch.dtype = torch.float32,
    pred: torch.dtype = torch.float32,
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
    values: Problem = {
        "scores": rand(images, anchors, classes).to(scores),
        "pred": predicted.to(pred),
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
