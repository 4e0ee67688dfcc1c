# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""A YOLO of Ultralytics, trained with its own box loss and with boxloss in its place.

    python -m examples.yolo

The boxes of the anchors that have an object are read where they are, not gathered. The model is
small and random. Needs boxloss and ultralytics, which is under the AGPL-3.0.
"""

from typing import Any

import torch
from boxloss.torch import ciou_loss
from torch import Tensor
from ultralytics.nn.tasks import DetectionModel
from ultralytics.utils.loss import BboxLoss
from ultralytics.utils.tal import bbox2dist

from examples import training
from examples.training import COUNTS, STEPS, Run, random_boxes


class FusedBboxLoss(BboxLoss):
    """model.criterion.bbox_loss = FusedBboxLoss(reg_max), for models with reg_max > 1."""

    def forward(
        self,
        pred_dist: Tensor,
        pred_bboxes: Tensor,
        anchor_points: Tensor,
        target_bboxes: Tensor,
        target_scores: Tensor,
        target_scores_sum: Tensor,
        fg_mask: Tensor,
        imgsz: Tensor,
        stride: Tensor,
    ) -> tuple[Tensor, Tensor]:
        image, anchor = where = fg_mask.nonzero(as_tuple=True)  # the only wait for the device
        row = image * fg_mask.shape[1] + anchor
        weight = target_scores[where].sum(-1)
        box = ciou_loss(
            pred_bboxes,
            target_bboxes,
            pred_index=row,
            target_index=row,
            weight=weight,
            normalizer=target_scores_sum,
        )

        # The distribution focal loss is Ultralytics' own.
        bins = self.dfl_loss.reg_max
        sides = bbox2dist(anchor_points, target_bboxes, bins - 1)[where]
        dfl = self.dfl_loss(pred_dist[where].view(-1, bins), sides).squeeze(-1)
        return box, (dfl * weight).sum() / target_scores_sum


# --- Training ---

SMALL = {
    "nc": 5,
    "reg_max": 16,
    "end2end": False,
    "backbone": [
        [-1, 1, "Conv", [8, 3, 2]],
        [-1, 1, "Conv", [16, 3, 2]],
        [-1, 1, "Conv", [16, 3, 2]],
        [-1, 1, "Conv", [16, 3, 2]],
    ],
    "head": [[[2, 3], 1, "Detect", ["nc"]]],
}


def small_model(bbox_loss: type[BboxLoss]) -> DetectionModel:
    model = DetectionModel(dict(SMALL), verbose=False)
    model.args = type("Gains", (), {"box": 7.5, "cls": 0.5, "dfl": 1.5})
    model.criterion = model.init_criterion()
    model.criterion.bbox_loss = bbox_loss(SMALL["reg_max"])
    return model


def random_batch(counts: tuple[int, ...] = COUNTS) -> dict[str, Any]:
    """Images of noise, with `counts` true boxes each."""
    total = sum(counts)
    return {
        "img": torch.rand(len(counts), 3, 128, 128),
        "batch_idx": torch.arange(len(counts)).repeat_interleave(torch.tensor(counts)),
        "cls": torch.randint(5, (total,)),
        "bboxes": random_boxes(total),
    }


def train(
    bbox_loss: type[BboxLoss], seed: int = 0, steps: int = STEPS, counts: tuple[int, ...] = COUNTS
) -> Run:
    torch.manual_seed(seed)
    model = small_model(bbox_loss).train()
    batch = random_batch(counts)

    def losses() -> tuple[Tensor, Tensor]:
        loss, items = model(batch)
        return loss.sum(), items["box_loss"]

    return training.train(model, losses, steps)


if __name__ == "__main__":
    training.show("The box loss", train(BboxLoss), boxloss=train(FusedBboxLoss))
