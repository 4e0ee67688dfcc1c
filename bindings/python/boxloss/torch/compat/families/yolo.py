# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Ultralytics' YOLOs for detection. Ultralytics is imported here, under its AGPL-3.0."""

from functools import partial
from typing import Any

import torch
from torch import Tensor
from ultralytics.nn.tasks import DetectionModel
from ultralytics.utils.loss import v8DetectionLoss

from .. import yolo
from ..family import nothing
from ..made_up import cases_of
from ..ultralytics_models import family
from ..versions import is_before
from ..yolo_batches import made_up

# Until 8.3.99 a loss was one number, not one for each part.
GIVES_SUM = is_before("ultralytics", 8, 3, 99)


class DetectionLoss(v8DetectionLoss):
    """Of one head; YOLO26 has two. It keeps the settings of the one in whose place it is."""

    def __call__(self, preds: Any, batch: dict[str, Tensor]) -> tuple[Tensor, Any]:
        """Until 8.4 the head's maps have boxes and scores in one, and there is no `loss`."""
        maps = preds[1] if isinstance(preds, tuple) else preds
        if isinstance(maps, dict):
            return self.loss(maps, batch)
        joined = torch.cat([each.flatten(2) for each in maps], 2)
        boxes, scores = joined.split((4 * self.reg_max, self.nc), 1)
        return self.loss({"boxes": boxes, "scores": scores, "feats": maps}, batch)

    def loss(self, preds: dict[str, Any], batch: dict[str, Tensor]) -> tuple[Tensor, Any]:
        losses = yolo.learn_boxes(self, preds, batch).losses
        items: Any = losses.detach()
        if hasattr(self, "loss_names"):
            items = dict(zip(self.loss_names, items, strict=True))
        losses = losses * len(preds["scores"])
        return losses.sum() if GIVES_SUM else losses, items


FAMILY = family(
    (DetectionModel,),
    DetectionLoss,
    yolo.check_parts,
    lambda model: cases_of(partial(made_up, model), (40,)),
    yolo.PARTS,
    fix=nothing,
)
