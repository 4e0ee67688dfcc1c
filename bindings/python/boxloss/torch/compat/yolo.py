# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The criterion of Ultralytics' YOLOv8, 11 and 26.

The original's assigner holds tensors of all anchors x boxes; here it is one operation, whose result
says for each anchor which row of the ground truth it learns. Class scores, the distribution focal
loss and L1 are Ultralytics' own. It is imported here, under its AGPL-3.0.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad
from ultralytics.nn.tasks import DetectionModel
from ultralytics.utils.loss import BboxLoss, v8DetectionLoss
from ultralytics.utils.ops import xywh2xyxy
from ultralytics.utils.tal import TaskAlignedAssigner, bbox2dist

from ..losses import ciou_loss
from ..task_aligned_match import task_aligned_match
from . import faults
from .replace import qualified_name, replace_class, restore_class
from .versions import is_before

# Until 8.3.99 a loss was one number, not one for each part.
GIVES_SUM = is_before("ultralytics", 8, 3, 99)
# Until 8.4.128 only sides below the first stride were enlarged to the second one.
ENLARGES_BELOW_FIRST = is_before("ultralytics", 8, 4, 128)

FAR = -1e6  # pixels, where no point is
EPS = 1e-9  # of the assigner, beside the highest metric


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
        check_parts(self)
        logits = preds["scores"].mT
        cells, strides = grid(preds["feats"], self.stride)
        height, width = (side * self.stride[0] for side in preds["feats"][0].shape[2:])
        target, offsets, labels, factor = self.ground_truth(batch, len(logits), height, width)
        dist = preds["boxes"].detach().mT.contiguous()
        pred = self.bbox_decode(cells, dist) * strides  # in pixels, as all boxes here

        row, score, _ = task_aligned_match(
            logits.detach().sigmoid(),
            pred,
            cells * strides,
            target,
            offsets,
            labels,
            topk=self.assigner.topk,
            topk2=getattr(self.assigner, "topk2", None),
            alpha=self.assigner.alpha,
            beta=self.assigner.beta,
            **small_sides(self.assigner),
        )
        total = score.sum().clamp(min=1)
        if factor is not None:
            total = total * factor
        # A list of fixed length, since to count would be to wait: each box chose topk anchors at
        # most. What is left of it are anchors without a box: their weight is 0, their row -1, the
        # last.
        most = min(self.assigner.topk * len(target), score.numel())
        target, labels = pad(target, (0, 0, 0, 1), value=FAR), pad(labels, (0, 1))
        weight, place = score.flatten().topk(most, sorted=False)
        row = row.flatten()[place]
        image, anchor = place // len(cells), place % len(cells)

        dist = torch.where((row >= 0)[:, None], preds["boxes"].mT[image, anchor], 0)
        cells, strides = cells[anchor], strides[anchor]
        pred = (self.bbox_decode(cells, dist[None]) * strides).squeeze(0)
        box = ciou_loss(pred, target, target_index=row, weight=weight, normalizer=total)
        wanted = torch.zeros_like(logits)
        wanted[image, anchor, labels[row]] = weight.to(wanted)
        entropy = self.bce(logits, wanted)
        class_weights = getattr(self, "class_weights", None)
        if class_weights is not None:
            entropy = entropy * class_weights
        sides = self.sides(dist, cells, strides, target[row], (height, width))

        classes, sides = entropy.sum() / total, (sides * weight).sum() / total
        gains = self.hyp
        losses = torch.stack((gains.box * box, gains.cls * classes, gains.dfl * sides))
        items: Any = losses.detach()
        if hasattr(self, "loss_names"):
            items = dict(zip(self.loss_names, items, strict=True))
        losses = losses * len(logits)
        return losses.sum() if GIVES_SUM else losses, items

    def ground_truth(
        self, batch: dict[str, Tensor], images: int, height: float, width: float
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """Corners in pixels, offsets, labels, and 1 or NaN: a batch is a list already, image after
        image."""
        image, label, boxes = (
            batch[name].to(self.device) for name in ("batch_idx", "cls", "bboxes")
        )
        counts = image.numel(), label.numel(), len(boxes)
        if len({*counts}) > 1:
            raise ValueError(
                "batch_idx, cls and bboxes have {}, {} and {} rows; each box must have one of "
                "each".format(*counts)
            )
        boxes = boxes.to(torch.promote_types(boxes.dtype, torch.float32))
        boxes = torch.stack((boxes[:, 0::2] * width, boxes[:, 1::2] * height), -1).flatten(1)
        image, label = image.flatten(), label.flatten().long()
        firsts = torch.arange(images + 1, device=self.device, dtype=image.dtype)
        offsets = torch.searchsorted(image, firsts)
        factor = faults.check(faults.Rows(boxes, label, offsets, "cls", self.nc, True, image))
        corners = xywh2xyxy(boxes)
        # Padding, to Ultralytics; here a box that holds no point.
        corners = torch.where(corners.sum(1, keepdim=True) > 0, corners, FAR)
        return corners, offsets, label, factor

    def sides(
        self,
        dist: Tensor,
        cells: Tensor,
        strides: Tensor,
        target: Tensor,
        size: tuple[float, float],
    ) -> Tensor:
        """Of each anchor of the list: the distribution focal loss, or L1 where there is none."""
        if self.use_dfl:
            wanted = bbox2dist(cells, target / strides, self.reg_max - 1)
            return self.bbox_loss.dfl_loss(dist.view(-1, self.reg_max), wanted).squeeze(-1)
        height, width = size
        apart = (dist - bbox2dist(cells, target / strides)) * strides
        apart = torch.cat((apart[:, 0::2] / width, apart[:, 1::2] / height), 1)
        return apart.abs().mean(1)


def grid(maps: list[Tensor], stride: Tensor) -> tuple[Tensor, Tensor]:
    """make_anchors, on the device: the cells' centres, and the stride of each."""
    centres, strides = [], []
    for each, step in zip(maps, stride, strict=True):
        y, x = (torch.arange(n, device=each.device, dtype=each.dtype) + 0.5 for n in each.shape[2:])
        centres.append(torch.stack((x.expand(len(y), -1), y[:, None].expand(-1, len(x))), -1))
        strides.append(step.to(each).expand(len(y) * len(x), 1))
    return torch.cat([each.flatten(0, 1) for each in centres]), torch.cat(strides)


def small_sides(assigner: Any) -> dict[str, Any]:
    """How it enlarges small boxes; until 8.4 it did not."""
    if not hasattr(assigner, "stride"):
        return {}
    side = getattr(assigner, "stride_val", None) or assigner.stride[1]
    return {
        "min_side": side,
        "small_side": assigner.stride[0] if ENLARGES_BELOW_FIRST else side,
    }


class Model(DetectionModel):
    """Its criterion is made when the first loss is asked for."""

    def init_criterion(self) -> Any:
        criterion = super().init_criterion()
        replace_heads(criterion)
        return criterion


def check_parts(loss: Any) -> None:
    """What `DetectionLoss` has no call for must be Ultralytics' own, as it is when it is called."""
    for part, theirs in ((loss.assigner, TaskAlignedAssigner), (loss.bbox_loss, BboxLoss)):
        if type(part) is not theirs:
            raise ValueError(
                f"{qualified_name(type(part))} stands in the place of {qualified_name(theirs)}, "
                "which boxloss computes itself"
            )
    if loss.assigner.eps != EPS:
        raise ValueError(f"the assigner's eps is {loss.assigner.eps}; boxloss has {EPS} there")
    for name in ("preprocess", "get_assigned_targets_and_loss", "parse_output"):
        theirs = getattr(v8DetectionLoss, name, None)
        if getattr(type(loss), name, None) is not theirs:
            raise ValueError(f"{qualified_name(type(loss))} has a {name} of its own, not replaced")


def heads(criterion: Any) -> list[Any]:
    """The losses of its heads: itself, or what one of two heads has as attributes."""
    parts = [criterion, *getattr(criterion, "__dict__", {}).values()]
    return [each for each in parts if isinstance(each, v8DetectionLoss)]


def replace_heads(criterion: Any) -> None:
    found = heads(criterion)
    if not found:
        raise ValueError(
            f"its criterion is a {qualified_name(type(criterion))}; it has no v8DetectionLoss, "
            "which is what boxloss replaces"
        )
    for each in found:
        check_parts(each)
        replace_class(each, DetectionLoss)


def restore_heads(criterion: Any) -> None:
    for each in heads(criterion):
        restore_class(each)
