# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The criterion of Ultralytics' YOLOv8, 11 and 26, and of its kin for masks and for keypoints.

The original's assigner holds tensors of all anchors x boxes; here it is one operation, whose result
says for each anchor which row of the ground truth it learns, and scores are read where they lie.
The distribution focal loss, L1, masks and keypoints are Ultralytics' own. It is imported here,
under its AGPL-3.0.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from ultralytics.nn.tasks import DetectionModel, PoseModel, SegmentationModel
from ultralytics.utils.loss import BboxLoss, v8DetectionLoss, v8PoseLoss, v8SegmentationLoss
from ultralytics.utils.ops import xywh2xyxy
from ultralytics.utils.tal import TaskAlignedAssigner, bbox2dist

from ..class_loss import class_loss
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
        losses = learn_boxes(self, preds, batch).losses
        items: Any = losses.detach()
        if hasattr(self, "loss_names"):
            items = dict(zip(self.loss_names, items, strict=True))
        losses = losses * len(preds["scores"])
        return losses.sum() if GIVES_SUM else losses, items


class BoxesOfLoss(v8DetectionLoss):
    """Of a head that has masks or keypoints, too: their losses are Ultralytics' own, which wait."""

    def get_assigned_targets_and_loss(
        self, preds: dict[str, Any], batch: dict[str, Tensor]
    ) -> tuple[tuple[Tensor, ...], Tensor, dict[str, Tensor]]:
        learned = learn_boxes(self, preds, batch)
        row, losses = learned.row, learned.losses
        of_image = (row - learned.offsets[:-1, None]).clamp(min=0)
        found = row >= 0, of_image, learned.target[row], learned.cells, learned.strides
        return found, losses, dict(zip(self.loss_names, losses.detach(), strict=False))


class Learned(NamedTuple):
    """What the anchors of all images learn of boxes.

    Attributes:
        losses: box, classes and sides, each with its gain.
        row: (images, anchors): of the ground truth, or -1.
        target: corners in pixels; the last row is of no image: what row -1 is.
        offsets: (images + 1): image b has rows offsets[b] to offsets[b + 1].
        cells, strides: of the anchors.
    """

    losses: Tensor
    row: Tensor
    target: Tensor
    offsets: Tensor
    cells: Tensor
    strides: Tensor


def learn_boxes(criterion: Any, preds: dict[str, Any], batch: dict[str, Tensor]) -> Learned:
    check_parts(criterion)
    logits = preds["scores"].mT
    cells, strides = grid(preds["feats"], criterion.stride)
    size = tuple(side * criterion.stride[0] for side in preds["feats"][0].shape[2:])
    target, offsets, labels, factor = ground_truth(criterion, batch, len(logits), size)
    dist = preds["boxes"].detach().mT.contiguous()
    pred = criterion.bbox_decode(cells, dist) * strides  # in pixels, as all boxes here

    assigner = criterion.assigner
    row, score, _ = task_aligned_match(
        logits.detach().sigmoid(),
        pred,
        cells * strides,
        target,
        offsets,
        labels,
        topk=assigner.topk,
        topk2=getattr(assigner, "topk2", None),
        alpha=assigner.alpha,
        beta=assigner.beta,
        **small_sides(assigner),
    )
    total = score.sum().clamp(min=1)
    if factor is not None:
        total = total * factor
    # A list of fixed length, since to count would be to wait: each box chose topk anchors at most.
    # What is left of it are anchors without a box: their weight is 0, their row -1, the last.
    most = min(assigner.topk * len(target), score.numel())
    target = pad(target, (0, 0, 0, 1), value=FAR)
    weight, place = score.flatten().topk(most, sorted=False)
    chosen = row.flatten()[place]
    image, anchor = place // len(cells), place % len(cells)

    dist = torch.where((chosen >= 0)[:, None], preds["boxes"].mT[image, anchor], 0)
    own_cells, own_strides = cells[anchor], strides[anchor]
    pred = (criterion.bbox_decode(own_cells, dist[None]) * own_strides).squeeze(0)
    box = ciou_loss(pred, target, target_index=chosen, weight=weight, normalizer=total)
    classes = score_loss(criterion, logits, row, labels, score, total)
    of_sides = side_losses(criterion, dist, own_cells, own_strides, target[chosen], size)
    sides = (of_sides * weight).sum() / total
    gains = criterion.hyp
    losses = torch.stack((gains.box * box, gains.cls * classes, gains.dfl * sides))
    return Learned(losses, row, target, offsets, cells, strides)


def score_loss(
    criterion: Any, logits: Tensor, row: Tensor, labels: Tensor, score: Tensor, total: Tensor
) -> Tensor:
    """Of all anchors, of which those with a box are to have its score."""
    of_classes = getattr(criterion, "class_weights", None)
    bce = criterion.bce
    is_plain = type(bce) is nn.BCEWithLogitsLoss and bce.reduction == "none"
    if is_plain and bce.weight is None and bce.pos_weight is None:
        return class_loss(
            logits,
            row,
            labels,
            mode="bce",
            query_quality=score,
            weight=None if of_classes is None else of_classes.flatten(),
            normalizer=total,
        )
    # Somebody's own, which takes what Ultralytics' gives it.
    wanted = torch.zeros_like(pad(logits, (0, 1)))
    column = torch.where(row < 0, logits.shape[-1], pad(labels, (0, 1))[row])
    wanted = wanted.scatter_(-1, column[..., None], score[..., None].to(wanted))[..., :-1]
    entropy = bce(logits, wanted)
    return (entropy if of_classes is None else entropy * of_classes).sum() / total


def ground_truth(
    criterion: Any, batch: dict[str, Tensor], images: int, size: tuple[Tensor, ...]
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Corners in pixels, offsets, labels, and 1 or NaN: a batch is a list already, image after
    image."""
    image, label, boxes = (
        batch[name].to(criterion.device) for name in ("batch_idx", "cls", "bboxes")
    )
    counts = image.numel(), label.numel(), len(boxes)
    if len({*counts}) > 1:
        raise ValueError(
            "batch_idx, cls and bboxes have {}, {} and {} rows; each box must have one of "
            "each".format(*counts)
        )
    height, width = size
    boxes = boxes.to(torch.promote_types(boxes.dtype, torch.float32))
    boxes = torch.stack((boxes[:, 0::2] * width, boxes[:, 1::2] * height), -1).flatten(1)
    image, label = image.flatten(), label.flatten().long()
    firsts = torch.arange(images + 1, device=criterion.device, dtype=image.dtype)
    offsets = torch.searchsorted(image, firsts)
    rows = faults.Rows(boxes, label, offsets, "cls", criterion.nc, True, image)
    label, factor = faults.check(rows)
    corners = xywh2xyxy(boxes)
    # Padding, to Ultralytics; here a box that holds no point.
    corners = torch.where(corners.sum(1, keepdim=True) > 0, corners, FAR)
    return corners, offsets, label, factor


def side_losses(
    criterion: Any,
    dist: Tensor,
    cells: Tensor,
    strides: Tensor,
    target: Tensor,
    size: tuple[Tensor, ...],
) -> Tensor:
    """Of each anchor of the list: the distribution focal loss, or L1 where there is none."""
    if criterion.use_dfl:
        wanted = bbox2dist(cells, target / strides, criterion.reg_max - 1)
        losses = criterion.bbox_loss.dfl_loss(dist.view(-1, criterion.reg_max), wanted)
        return losses.squeeze(-1)
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
        return replace_heads(super().init_criterion())


class Segmentation(SegmentationModel):
    def init_criterion(self) -> Any:
        return replace_heads(super().init_criterion())


class Pose(PoseModel):
    def init_criterion(self) -> Any:
        return replace_heads(super().init_criterion())


MODELS = Segmentation, Pose, Model


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
    names = ["preprocess", "parse_output"]
    if not isinstance(loss, BoxesOfLoss):
        names.append("get_assigned_targets_and_loss")
    for name in names:
        theirs = getattr(v8DetectionLoss, name, None)
        if getattr(type(loss), name, None) is not theirs:
            raise ValueError(f"{qualified_name(type(loss))} has a {name} of its own, not replaced")


def heads(criterion: Any) -> list[Any]:
    """The losses of its heads: itself, or what one of two heads has as attributes."""
    parts = [criterion, *getattr(criterion, "__dict__", {}).values()]
    return [each for each in parts if isinstance(each, v8DetectionLoss)]


def replace_heads(criterion: Any) -> Any:
    found = heads(criterion)
    if not found:
        raise ValueError(
            f"its criterion is a {qualified_name(type(criterion))}; it has no v8DetectionLoss, "
            "which is what boxloss replaces"
        )
    for each in found:
        check_parts(each)
        has_more = isinstance(each, (v8SegmentationLoss, v8PoseLoss))
        replace_class(each, BoxesOfLoss if has_more else DetectionLoss)
    return criterion


def restore_heads(criterion: Any) -> None:
    for each in heads(criterion):
        restore_class(each)
