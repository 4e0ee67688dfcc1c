# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The criterion of Ultralytics' RT-DETR, for all layers at once, and for all denoising queries.

The original goes layer by layer, and assigns on the host. It is imported here, under its AGPL-3.0.
"""

from itertools import accumulate
from typing import Any

import torch
from torch import Tensor
from ultralytics.models.utils.loss import RTDETRDetectionLoss
from ultralytics.models.utils.ops import HungarianMatcher
from ultralytics.nn.tasks import RTDETRDetectionModel

from ..arguments import check_tensors
from ..collate import on_host
from ..hungarian_match import hungarian_match
from ..losses import box_losses
from ..matching_cost import matching_cost
from . import faults
from .pair_scores import logits_of_pairs, pair_losses
from .parts import Parts
from .replace import qualified_name, replace_class, restore_class
from .targets import GroundTruth
from .yolo import check_classes

PARTS = Parts(
    {
        "ultralytics.models.utils.loss": (
            *("DETRLoss", "RTDETRDetectionLoss", "FocalLoss", "VarifocalLoss"),
            *("HungarianMatcher", "bbox_iou"),
        ),
        "ultralytics.models.utils.ops": ("bbox_iou", "linear_sum_assignment", "xywh2xyxy"),
    }
)


class DetectionLoss(RTDETRDetectionLoss):
    def forward(
        self,
        preds: tuple[Tensor, Tensor],
        batch: dict[str, Any],
        dn_bboxes: Tensor | None = None,
        dn_scores: Tensor | None = None,
        dn_meta: dict[str, Any] | None = None,
    ) -> dict[str, Tensor]:
        check_parts(self)
        boxes, scores = preds
        check_classes(self, scores)
        truth = ground_truth(batch, self.nc)
        gains = self.matcher.cost_gain
        cost = matching_cost(
            boxes,
            truth.boxes,
            truth.offsets,
            logits=scores,
            labels=truth.labels,
            iou_weight=gains["giou"],
            l1_weight=gains["bbox"],
            class_weight=gains["class"],
            class_mode="focal" if self.matcher.use_fl else "softmax",
            focal_alpha=self.matcher.alpha,
            focal_gamma=self.matcher.gamma,
            eps=1e-7,
            nonfinite=0.0,
        )
        pred_index, target_index, _ = hungarian_match(cost, truth.offsets)
        number = sum(min(scores.shape[2], count) for count in truth.counts)
        losses = self.losses(boxes, scores, truth, pred_index, target_index, number)
        if dn_meta is None or dn_bboxes is None or dn_scores is None:
            noisy = {name: torch.zeros_like(each) for name, each in losses.items()}
        else:
            pairs = denoising_pairs(dn_meta, truth, *dn_bboxes.shape[:3])
            noisy = self.losses(dn_bboxes, dn_scores, truth, *pairs, pairs[0].shape[1])
        return losses | {f"{name}_dn": each for name, each in noisy.items()}

    def losses(
        self,
        boxes: Tensor,
        scores: Tensor,
        truth: GroundTruth,
        pred_index: Tensor,
        target_index: Tensor,
        number: int,
    ) -> dict[str, Tensor]:
        """Of the last layer, and of all others; each divided by the number of a layer's pairs."""
        divisor = truth.checked(torch.full((), float(max(number, 1)), device=boxes.device))
        giou, l1, iou = box_losses(
            boxes,
            truth.boxes,
            "giou",
            eps=1e-7,
            pred_format="cxcywh",
            target_format="cxcywh",
            pred_index=pred_index,
            target_index=target_index,
            normalizer=divisor,
        )
        scores = scores.to(iou.dtype)  # at least float32, whatever autocast made of them
        logits = logits_of_pairs(scores, truth.labels, pred_index, target_index)
        is_pair = pred_index >= 0
        given = scores, logits, iou, iou, is_pair
        if self.fl is None:
            classes = pair_losses(scores, logits, iou, 1.0, is_pair, gamma=0.0) / scores.shape[2]
        elif number and self.vfl is not None:
            alpha, gamma = getattr(self.vfl, "alpha", 0.75), getattr(self.vfl, "gamma", 2.0)
            classes = pair_losses(*given, alpha, gamma) / divisor
        else:
            alpha, gamma = getattr(self.fl, "alpha", 0.25), getattr(self.fl, "gamma", 1.5)
            weight = alpha * (1 - logits.sigmoid()) ** gamma
            wanted = torch.ones_like(logits)
            classes = pair_losses(scores, logits, wanted, weight, is_pair, 1 - alpha, gamma)
            classes = classes / divisor
        named = {"class": classes, "bbox": l1, "giou": giou}
        named = {name: self.loss_gain[name] * each for name, each in named.items()}
        losses = {f"loss_{name}": each[-1] for name, each in named.items()}
        if self.aux_loss:
            losses |= {f"loss_{name}_aux": each[:-1].sum() for name, each in named.items()}
        return losses


def ground_truth(batch: dict[str, Any], classes: int) -> GroundTruth:
    """A batch is a list already, image after image."""
    boxes, labels, counts = batch["bboxes"], batch["cls"], batch["gt_groups"]
    check_tensors("batch", bboxes=boxes, cls=labels)
    if not len(boxes) == len(labels) == sum(counts):
        given = len(boxes), len(labels), sum(counts)
        raise ValueError("bboxes, cls and gt_groups have {}, {} and {} rows".format(*given))
    offsets = on_host(accumulate(counts, initial=0), boxes.device)
    offsets = offsets.to(boxes.device, non_blocking=True)
    image = batch.get("batch_idx")
    labels, factor = faults.check(faults.Rows(boxes, labels, offsets, "cls", classes, True, image))
    return GroundTruth(boxes, offsets, labels, counts, factor)


def denoising_pairs(
    noise: dict[str, Any], truth: GroundTruth, layers: int, images: int, queries: int
) -> tuple[Tensor, Tensor]:
    """For get_dn_match_indices: on the host, where these lists are."""
    groups, positive = noise["dn_num_group"], noise["dn_pos_idx"]
    rows = noise.get("dn_gt_idx")  # of all boxes, if there are not too many, as before 8.4
    if rows is None:
        rows = torch.arange(len(truth.boxes)).split(list(truth.counts))
    pred_index = torch.cat([each + b * queries for b, each in enumerate(positive)])
    first = torch.arange(layers)[:, None] * (images * queries)
    target_index = torch.cat([each.repeat(groups) for each in rows]).expand(layers, -1)
    device = truth.boxes.device
    return (
        (first + pred_index.to(first)).to(device, non_blocking=True),
        target_index.to(device, non_blocking=True),
    )


class Model(RTDETRDetectionModel):
    """Its criterion is made when the first loss is asked for."""

    def init_criterion(self) -> Any:
        return replace_heads(super().init_criterion())


MODELS = (Model,)


def check_parts(criterion: Any) -> None:
    """What `DetectionLoss` has no call for must be Ultralytics' own, as it is when it is called."""
    PARTS.check()
    if criterion.use_uni_match:
        raise ValueError("use_uni_match is set; boxloss matches each layer by itself")
    if type(criterion.matcher) is not HungarianMatcher:
        raise ValueError(
            f"{qualified_name(type(criterion.matcher))} stands in the place of "
            f"{qualified_name(HungarianMatcher)}, which boxloss computes itself"
        )
    for name in ("_get_loss", "_get_loss_class", "_get_loss_bbox", "_get_loss_aux"):
        if getattr(type(criterion), name) is not getattr(RTDETRDetectionLoss, name):
            kind = qualified_name(type(criterion))
            raise ValueError(f"{kind} has a {name} of its own, not replaced")


def replace_heads(criterion: Any) -> Any:
    if not isinstance(criterion, RTDETRDetectionLoss):
        raise ValueError(
            f"its criterion is a {qualified_name(type(criterion))}; it is no RTDETRDetectionLoss, "
            "which is what boxloss replaces"
        )
    check_parts(criterion)
    replace_class(criterion, DetectionLoss)
    return criterion


restore_heads = restore_class
