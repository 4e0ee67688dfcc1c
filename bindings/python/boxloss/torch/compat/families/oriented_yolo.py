# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Ultralytics' YOLOs for oriented boxes, (cx, cy, w, h, angle).

Sides and classes are learned as yolo.py has it; a side's distance from an anchor's point is in the
frame of the box. The box loss is ProbIoU's, and the angle has a loss of its own. Ultralytics is
imported here, under its AGPL-3.0.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad
from ultralytics.nn.tasks import OBBModel
from ultralytics.utils.loss import RotatedBboxLoss, v8OBBLoss
from ultralytics.utils.tal import RotatedTaskAlignedAssigner

from ...rotated_box_loss import rotated_box_loss
from .. import yolo
from ..family import nothing
from ..faults import GroundTruth
from ..made_up import MadeUp, cases_of
from ..proof import Case
from ..ultralytics_models import check_classes, family
from ..yolo_batches import STRIDES, made_up, scattered

check_parts = partial(
    yolo.check_parts,
    theirs=v8OBBLoss,
    assigner=RotatedTaskAlignedAssigner,
    box_loss=RotatedBboxLoss,
    methods=(*yolo.METHODS, "calculate_angle_loss"),
)
SHORTEST = 2.0  # pixels: a box with a shorter side is not learned


class OrientedLoss(v8OBBLoss):
    """Of one head; YOLO26 has two. It keeps the settings of the one in whose place it is."""

    def loss(
        self, preds: dict[str, Any], batch: dict[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        check_parts(self)
        logits, sides = preds["scores"].mT, preds["boxes"]
        check_classes(self, logits)
        its = yolo.grid(preds["feats"], self.stride)
        scale = pad(its.size, (0, 1), value=1.0)
        truth = without_padding(yolo.ground_truth(self, batch, len(logits), scale))
        angle = preds["angle"]  # a half has too few digits for a sine
        angle = angle.to(torch.promote_types(angle.dtype, truth.boxes.dtype))
        pred = boxes_of(yolo.distances(self, sides.detach()) * its.strides.mT, angle.detach())
        pred[:, :2] += its.points[:2]
        found = yolo.match(self, logits, pred.mT, its.points[:2], truth)

        # From here on in strides, of each anchor, and from its point.
        own, angle = found.of(sides), found.of(angle)
        points, reach = its.at(found.place)
        centre, side, turn = truth.boxes[found.chosen].mT.split((2, 2, 1))
        centre, side = (centre - points[:2]) / reach[2:], side / reach[2:]
        weight = found.weight.to(found.total) / found.total
        box = rotated_box_loss(
            boxes_of(yolo.distances(self, own[None]).squeeze(0), angle).mT,
            torch.cat((centre, side, turn)).mT,
            "probiou",
            weight=found.weight,
            normalizer=found.total / self.hyp.box,
            mask=found.chosen >= 0,
            floor=self.bbox_loss.floor,
        )
        middle = turned(centre, -turn)
        wanted = torch.cat((side / 2 - middle, side / 2 + middle))
        losses = torch.stack(
            (
                box,
                yolo.score_loss(self, logits, truth.labels, found),
                yolo.side_loss(self, own, wanted, reach / its.size[:, None], found),
                (angle_loss(angle - turn, side) * weight).sum() * self.hyp.angle,
            )
        )
        items = dict(zip(self.loss_names, losses.detach(), strict=True))
        return losses * len(logits), items


def without_padding(truth: GroundTruth) -> GroundTruth:
    """With what Ultralytics leaves out where no point is: padding and small boxes."""
    boxes = truth.boxes
    is_box = (boxes.sum(1) > 0) & (boxes[:, 2:4] >= SHORTEST).all(1)
    centres = torch.where(is_box[:, None], boxes[:, :2], yolo.FAR)
    return GroundTruth(torch.cat((centres, boxes[:, 2:]), 1), *truth[1:])


def boxes_of(distances: Tensor, angle: Tensor) -> Tensor:
    """(..., 5, anchors), from the anchors' points, of distances to sides and an angle."""
    low, high = distances.to(angle.dtype).split(2, -2)
    return torch.cat((turned((high - low) / 2, angle), low + high, angle), -2)


def turned(points: Tensor, angle: Tensor) -> Tensor:
    """(..., 2, anchors), around the origin."""
    x, y = points.split(1, -2)
    cos, sin = angle.cos(), angle.sin()
    return torch.cat((x * cos - y * sin, x * sin + y * cos), -2)


def angle_loss(apart: Tensor, side: Tensor) -> Tensor:
    """Of angles, the less the longer a box is. Turns by a quarter cost nothing."""
    w, h = side + 1e-9  # so that a box without sides, which none learns, has a loss
    return (2 * apart).sin().square() * (-(((w / h).log() / 3).square())).exp()


def cases(model: Any) -> Iterator[Case]:
    across, down = (side * int(model.model[-1].stride[-1]) for side in STRIDES)

    def boxes(random: MadeUp, counts: tuple[int, ...], grids: Any) -> tuple[Tensor, None]:
        made = torch.cat((scattered(random, counts, grids)[0], random.angles(sum(counts), 1)), 1)
        made[:1, 2], made[1:2, 3] = 2.2 / across, 1.8 / down  # pixels, around SHORTEST
        return made, None

    def make(counts: tuple[int, ...]) -> dict[str, Any]:
        # No pair is nearly equal: an eps of 1e-7 beside the square of a ProbIoU loss above 0.1, as
        # all are, moves it by less than 1e-7 / (2 * 0.1^2) = 5e-6 of it.
        def angles(random: MadeUp, anchors: int, _: Any) -> dict[str, Tensor]:
            return {"angle": random.angles(len(counts), 1, anchors)}

        return made_up(model, counts, boxes, outputs=angles)

    return cases_of(make, (40,))


OLDEST = 8, 4, 130  # whose criterion is today's
FAMILY = family((OBBModel,), OrientedLoss, check_parts, cases, yolo.PARTS, OLDEST, nothing)
