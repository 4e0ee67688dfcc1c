# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Ultralytics' YOLOs with masks or keypoints, whose losses stay Ultralytics' own, and wait.

Ultralytics is imported here, under its AGPL-3.0.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad
from ultralytics.nn.tasks import PoseModel, SegmentationModel
from ultralytics.utils.loss import v8DetectionLoss

from .. import yolo
from ..made_up import MadeUp, cases_of
from ..proof import Case
from ..ultralytics_models import criterion_of, family, settings
from ..yolo_batches import PLACES, apart, made_up


class BoxesOfLoss(v8DetectionLoss):
    """The part that their losses are given."""

    def get_assigned_targets_and_loss(
        self, preds: dict[str, Any], batch: dict[str, Tensor]
    ) -> tuple[tuple[Tensor, ...], Tensor, dict[str, Tensor]]:
        learned = yolo.learn_boxes(self, preds, batch)
        row, losses = learned.row, learned.losses
        of_image = (row - learned.offsets[:-1, None]).clamp(min=0)
        # The last row, which is of no image, is what row -1 is.
        target = pad(learned.target, (0, 0, 0, 1), value=yolo.FAR)
        found = row >= 0, of_image, target[row], learned.cells, learned.strides
        return found, losses, dict(zip(self.loss_names, losses.detach(), strict=False))


def cases(model: Any) -> Iterator[Case]:
    head = model.model[-1]
    masks = getattr(head, "nm", 0) if hasattr(head, "npr") else 0  # put together to one
    number, numbers = getattr(head, "kpt_shape", (0, 0))  # of keypoints, and of each

    def make(counts: tuple[int, ...]) -> dict[str, Any]:
        total = sum(counts)

        def truth(random: MadeUp, grid: tuple[int, int]) -> dict[str, Tensor]:
            more = {}
            if number:
                visible = random.integers(3, total, number, numbers - 2)
                more["keypoints"] = torch.cat((random.uniform(0, 1, total, number, 2), visible), -1)
            if masks:
                made = criterion_of(model)
                one = getattr(made, "one2many", made)
                overlaps = getattr(one, "overlap", settings(model).overlap_mask)
                highest = counts if overlaps else total * (1,)
                sides = [2 * side for side in grid]
                each = [random.integers(most + 1, 1, *sides) for most in highest]
                more["masks"] = torch.cat([*each, torch.zeros(0, *sides, dtype=torch.float32)])
            return more

        def outputs(random: MadeUp, anchors: int, grid: tuple[int, int]) -> dict[str, Tensor]:
            images, more = len(counts), {}
            if number:
                more["kpts"] = random.normal(images, number * numbers, anchors)
            if masks:
                more["mask_coefficient"] = random.normal(images, masks, anchors)
                more["proto"] = random.normal(images, masks, *(2 * side for side in grid))
            return more

        return made_up(model, counts, apart, truth, outputs)

    return cases_of(make, (PLACES[0] * PLACES[1],))


# An older criterion has no place for boxloss' pairs.
OLDEST = 8, 4, 190
MODELS = SegmentationModel, PoseModel
FAMILY = family(MODELS, BoxesOfLoss, yolo.check_parts, cases, yolo.PARTS, OLDEST)
