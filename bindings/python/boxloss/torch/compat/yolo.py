# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The criterion of Ultralytics' YOLOv8, 11 and 26.

The original's assigner holds tensors of all anchors x boxes; here it is one operation, whose result
says for each anchor which row of the true boxes it learns. Class scores, the distribution focal
loss and L1 are Ultralytics' own. It is imported here, under its AGPL-3.0.
"""

from typing import Any

import torch
from torch import Tensor
from ultralytics.nn.tasks import DetectionModel
from ultralytics.utils.loss import E2ELoss, v8DetectionLoss
from ultralytics.utils.ops import xywh2xyxy
from ultralytics.utils.tal import bbox2dist, make_anchors

from ..losses import ciou_loss
from ..task_aligned import task_aligned_match
from .replace import KeepsOriginal


class DetectionLoss(KeepsOriginal, v8DetectionLoss):
    """Of one head; YOLO26 has two."""

    original = v8DetectionLoss

    def loss(
        self, preds: dict[str, Any], batch: dict[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        logits, dist = preds["scores"].mT, preds["boxes"].mT.contiguous()
        cells, strides = make_anchors(preds["feats"], self.stride, 0.5)
        pred = self.bbox_decode(cells, dist) * strides  # in pixels, as all boxes here
        height, width = (side * self.assigner.stride[0] for side in preds["feats"][0].shape[2:])
        target, offsets, labels = self.true_boxes(batch, len(pred), height, width)

        row, score, _ = task_aligned_match(
            logits.detach().sigmoid(),
            pred.detach(),
            cells * strides,
            target,
            offsets,
            labels,
            topk=self.assigner.topk,
            topk2=self.assigner.topk2,
            alpha=self.assigner.alpha,
            beta=self.assigner.beta,
            min_side=self.assigner.stride_val,
        )
        total = score.sum().clamp(min=1)
        image, anchor = where = (row >= 0).nonzero(as_tuple=True)  # waits for their number
        weight, row = score[where], row[where]

        box = ciou_loss(
            pred,
            target,
            pred_index=image * pred.shape[1] + anchor,
            target_index=row,
            weight=weight,
            normalizer=total,
        )
        wanted = torch.zeros_like(logits)
        wanted[image, anchor, labels[row]] = weight.to(wanted)
        entropy = self.bce(logits, wanted)
        if self.class_weights is not None:
            entropy = entropy * self.class_weights
        sides = self.sides(
            dist[where], cells[anchor], strides[anchor], target[row], (height, width)
        )

        classes, sides = entropy.sum() / total, (sides * weight).sum() / total
        gains = self.hyp
        losses = torch.stack((gains.box * box, gains.cls * classes, gains.dfl * sides))
        return losses * len(pred), dict(zip(self.loss_names, losses.detach(), strict=True))

    def true_boxes(
        self, batch: dict[str, Tensor], images: int, height: float, width: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Corners in pixels, offsets and labels: a batch is a list already, image after image."""
        image, label, boxes = (
            batch[name].to(self.device) for name in ("batch_idx", "cls", "bboxes")
        )
        boxes = torch.stack((boxes[:, 0::2] * width, boxes[:, 1::2] * height), -1).flatten(1)
        firsts = torch.arange(images + 1, device=self.device, dtype=image.dtype)
        return xywh2xyxy(boxes), torch.searchsorted(image.flatten(), firsts), label.flatten().long()

    def sides(
        self,
        dist: Tensor,
        cells: Tensor,
        strides: Tensor,
        target: Tensor,
        size: tuple[float, float],
    ) -> Tensor:
        """Of each anchor that has a box: the distribution focal loss, or L1 where there is none."""
        if self.use_dfl:
            wanted = bbox2dist(cells, target / strides, self.reg_max - 1)
            return self.bbox_loss.dfl_loss(dist.view(-1, self.reg_max), wanted).squeeze(-1)
        height, width = size
        apart = (dist - bbox2dist(cells, target / strides)) * strides
        apart = torch.cat((apart[:, 0::2] / width, apart[:, 1::2] / height), 1)
        return apart.abs().mean(1)


class Model(DetectionModel):
    """Its criterion is made when the first loss is asked for."""

    def init_criterion(self) -> Any:
        is_of_two_heads = isinstance(super().init_criterion(), E2ELoss)
        return E2ELoss(self, DetectionLoss) if is_of_two_heads else DetectionLoss(self)


def renew_criterion(model: DetectionModel) -> None:
    """What was made before the model changed its class is made anew, as far in its schedule."""
    before = getattr(model, "criterion", None)
    if before is not None:
        model.criterion = model.init_criterion()
    if isinstance(before, E2ELoss):
        for name in ("updates", "o2m", "o2o"):
            setattr(model.criterion, name, getattr(before, name))
