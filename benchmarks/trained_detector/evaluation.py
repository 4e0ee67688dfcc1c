# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""How well a detector finds the faces of held-out pictures."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from boxloss.torch import collate_padded
from torch import Tensor, nn

from .average_precision import average_precision, iou, match, suppress
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
