# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""A YOLO of Ultralytics, trained with its own criterion and with boxloss in its place.

    python -m examples.yolo

For YOLOv8, 11 and 26. The original's assigner holds tensors of all anchors x boxes; here it is one
operation, whose result says for each anchor which row of the true boxes it learns. Class scores,
the distribution focal loss and L1 are Ultralytics' own. The model is small and random. Needs
boxloss and ultralytics, which is under the AGPL-3.0.
"""

from types import SimpleNamespace
from typing import Any

import torch
from boxloss.torch import ciou_loss, task_aligned_match
from torch import Tensor
from ultralytics.nn.tasks import DetectionModel
from ultralytics.utils.loss import E2ELoss, v8DetectionLoss
from ultralytics.utils.ops import xywh2xyxy
from ultralytics.utils.tal import bbox2dist, make_anchors

from examples import training
from examples.training import COUNTS, STEPS, Run, random_boxes


class DetectionLoss(v8DetectionLoss):
    """model.criterion = DetectionLoss(model), or E2ELoss(model, DetectionLoss) for YOLO26."""

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
LIKE_26 = {"reg_max": 1, "end2end": True}  # YOLO26: no distributions, two heads


def criterion_of(model: DetectionModel, criterion: type[v8DetectionLoss]) -> Any:
    has_two_heads = isinstance(model.init_criterion(), E2ELoss)
    return E2ELoss(model, criterion) if has_two_heads else criterion(model)


def small_model(criterion: type[v8DetectionLoss], changes: dict[str, Any]) -> DetectionModel:
    model = DetectionModel({**SMALL, **changes}, verbose=False)
    model.args = SimpleNamespace(box=7.5, cls=0.5, dfl=1.5, epochs=100)
    model.criterion = criterion_of(model, criterion)
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
    criterion: type[v8DetectionLoss],
    seed: int = 0,
    steps: int = STEPS,
    counts: tuple[int, ...] = COUNTS,
    **changes: Any,
) -> Run:
    torch.manual_seed(seed)
    model = small_model(criterion, changes).train()
    batch = random_batch(counts)

    def losses() -> tuple[Tensor, Tensor]:
        loss, items = model(batch)
        return loss.sum(), items["box_loss"]

    return training.train(model, losses, steps)


if __name__ == "__main__":
    training.show("The box loss", train(v8DetectionLoss), boxloss=train(DetectionLoss))
