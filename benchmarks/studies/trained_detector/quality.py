# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""How well a detector finds the faces of held-out pictures: average precision, as COCO and VOC have
it, which says how well detections, by falling score, find boxes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from boxloss.torch import collate_padded
from torch import Tensor, nn

from .pictures import DrawnPictures

BATCH = 128
MOST_DETECTIONS = 64  # of a picture; the fullest have a dozen faces
TOO_NEAR = 0.5  # the IoU above which two detections are of the same face
SURE = 0.5  # the score of a detection that mean IoU counts
THRESHOLDS = [0.5 + 0.05 * step for step in range(10)]  # COCO's


@dataclass(frozen=True)
class Quality:
    ap50: float
    ap: float  # mean over THRESHOLDS
    mean_iou: float  # of each true box with the sure detection nearest to it, 0 without one


@torch.no_grad()
def detect(model: nn.Module, pictures: Tensor, autocast: torch.autocast) -> tuple[Tensor, Tensor]:
    """Boxes (N, MOST_DETECTIONS, 4) and scores, which fall; those of a suppressed box are 0."""
    model.eval()
    found = []
    for batch in pictures.split(BATCH):
        with autocast:
            logits, boxes = model(batch.float())
        found.append(suppress(boxes, logits.sigmoid(), MOST_DETECTIONS, TOO_NEAR))
    boxes, scores = (torch.cat(each) for each in zip(*found, strict=True))
    return boxes, scores


def judge(boxes: Tensor, scores: Tensor, truths: list[Tensor]) -> Quality:
    """Of what `detect` found; every true box counts, also one that training gave no cell."""
    target, lengths = (each.to(boxes.device) for each in collate_padded(truths))
    counted = torch.arange(target.shape[1], device=boxes.device) < lengths[:, None]
    overlaps = iou(boxes, target.float())
    right = match(overlaps, counted, torch.tensor(THRESHOLDS, device=boxes.device))
    count = sum(map(len, truths))
    precisions = [average_precision(scores, each, count) for each in right]
    sure = torch.where((scores >= SURE)[..., None], overlaps, 0.0)
    mean_iou = sure.amax(dim=1)[counted].sum().item() / count
    return Quality(precisions[0], sum(precisions) / len(precisions), mean_iou)


def quality(model: nn.Module, drawn: DrawnPictures, autocast: torch.autocast) -> Quality:
    return judge(*detect(model, drawn.pictures, autocast), drawn.boxes)


def iou(boxes: Tensor, truths: Tensor) -> Tensor:
    """(B, K, M) of boxes (B, K, 4) and truths (B, M, 4); 0 where both are empty."""
    one, other = boxes[:, :, None], truths[:, None]
    sides = torch.minimum(one[..., 2:], other[..., 2:]) - torch.maximum(
        one[..., :2], other[..., :2]
    )
    overlap = sides.clamp(min=0).prod(dim=-1)
    areas = [(each[..., 2:] - each[..., :2]).prod(dim=-1) for each in (one, other)]
    union = areas[0] + areas[1] - overlap
    return torch.where(union > 0, overlap / union, 0.0)


def suppress(boxes: Tensor, scores: Tensor, most: int, overlap: float) -> tuple[Tensor, Tensor]:
    """Of each picture the `most` best boxes (B, most, 4), by falling score. One that overlaps a
    better one is suppressed: it gets score 0 and no area."""
    scores, order = scores.topk(most, dim=1)
    boxes = boxes.gather(1, order[..., None].expand(-1, -1, 4))
    too_near = iou(boxes, boxes) > overlap
    kept = torch.ones_like(scores, dtype=torch.bool)
    for rank in range(most - 1):
        kept[:, rank + 1 :] &= ~(kept[:, rank, None] & too_near[:, rank, rank + 1 :])
    return torch.where(kept[..., None], boxes, 0.0), torch.where(kept, scores, 0.0)


def match(overlaps: Tensor, counted: Tensor, thresholds: Tensor) -> Tensor:
    """Which detections are right: (thresholds, B, K).

    The best detection of a picture comes first and takes, of the truths that are still free, the
    one that it overlaps most, if that is enough. `overlaps` is (B, K, M), by falling score;
    `counted` (B, M) says which truths there are.
    """
    free = counted.expand(len(thresholds), -1, -1).clone()
    right = []
    for rank in range(overlaps.shape[1]):
        most, which = torch.where(free, overlaps[:, rank], -1.0).max(dim=-1)
        hit = most >= thresholds[:, None]
        taken = torch.zeros_like(free).scatter_(-1, which[..., None], hit[..., None])
        free &= ~taken
        right.append(hit)
    return torch.stack(right, dim=-1)


def average_precision(scores: Tensor, right: Tensor, truths: int) -> float:
    """The area under precision over recall, with all points: precision at a recall is the best that
    is had at this recall or a higher one. Each right detection adds 1 / truths to the recall."""
    right = right.flatten()[scores.flatten().argsort(descending=True, stable=True)].double()
    precision = right.cumsum(0) / torch.arange(1, len(right) + 1, device=right.device)
    best = precision.flip(0).cummax(0).values.flip(0)
    return (best * right).sum().item() / truths
