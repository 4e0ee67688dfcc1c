# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Ultralytics' RT-DETR: its criterion for all layers at once, and for all denoising queries.

The original goes layer by layer, and assigns on the host. It is imported here, under its AGPL-3.0.
"""

from collections.abc import Iterator
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor
from ultralytics.models.utils.loss import RTDETRDetectionLoss
from ultralytics.models.utils.ops import HungarianMatcher
from ultralytics.nn.tasks import RTDETRDetectionModel

from ...arguments import check_tensors
from ...class_loss import class_loss
from ...collate import on_host
from .. import faults
from ..criterion import Layers, Learned, cost_of, learn, of_scores, pair_losses, scores_of_pairs
from ..faults import GroundTruth
from ..made_up import COUNTS, MadeUp
from ..parts import Parts, check_class, check_methods
from ..proof import Case
from ..ultralytics_models import check_classes, family

PARTS = Parts(
    {
        "ultralytics.models.utils.loss": (
            *("DETRLoss", "RTDETRDetectionLoss", "FocalLoss", "VarifocalLoss"),
            *("HungarianMatcher", "bbox_iou"),
        ),
        "ultralytics.models.utils.ops": ("bbox_iou", "linear_sum_assignment", "xywh2xyxy"),
    }
)
METHODS = "_get_loss", "_get_loss_class", "_get_loss_bbox", "_get_loss_aux"


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
        number = sum(min(scores.shape[2], count) for count in truth.counts)
        losses = self.losses(Layers((), scores, boxes), truth, number)
        if dn_meta is None or dn_bboxes is None or dn_scores is None:
            noisy = {name: torch.zeros_like(each) for name, each in losses.items()}
        else:
            pairs = denoising_pairs(dn_meta, truth, dn_bboxes.shape[2])
            number = sum(map(len, dn_meta["dn_pos_idx"]))
            known = pairs.expand(dn_bboxes.shape[:3])
            noisy = self.losses(Layers((), dn_scores, dn_bboxes, known), truth, number)
        return losses | {f"{name}_dn": each for name, each in noisy.items()}

    def losses(self, layers: Layers, truth: GroundTruth, number: int) -> dict[str, Tensor]:
        """Of the last layer, and of all others; each divided by the number of a layer's pairs."""
        gains = self.matcher.cost_gain
        weights = gains["giou"], gains["bbox"], gains["class"]
        mode: Any = "focal" if self.matcher.use_fl else "softmax"
        cost = cost_of(*weights, mode, self.matcher.alpha, self.matcher.gamma)
        cost |= {"eps": 1e-7, "nonfinite": 0.0}
        device = truth.boxes.device
        divisor = truth.checked(torch.full((), float(max(number, 1)), device=device))
        found = learn(
            layers, truth, divisor, cost, lambda own: {"loss_class": self.class_loss(own, number)}
        )
        named = {name: self.loss_gain[name[5:]] * each for name, each in found.items()}
        losses = {name: each[-1] for name, each in named.items()}
        if self.aux_loss:
            losses |= {f"{name}_aux": each[:-1].sum() for name, each in named.items()}
        return losses

    def class_loss(self, learned: Learned, number: int) -> Tensor:
        row, iou, divisor = learned.pairs
        if self.fl is not None and self.vfl is not None and number:
            alpha, gamma = getattr(self.vfl, "alpha", 0.75), getattr(self.vfl, "gamma", 2.0)
            scores, logits = scores_of_pairs(learned)
            return pair_losses(scores, logits, iou, iou, row >= 0, alpha, gamma) / divisor
        if self.fl is not None:
            alpha, gamma = getattr(self.fl, "alpha", 0.25), getattr(self.fl, "gamma", 1.5)
            return of_scores(learned, "focal", alpha=alpha, gamma=gamma)
        scores, labels = learned.layers.scores, learned.truth.labels
        of_all = class_loss(scores, row, labels, mode="bce", query_quality=iou, reduction="sum")
        return of_all / scores.shape[2]


def ground_truth(batch: dict[str, Any], classes: int) -> GroundTruth:
    """A batch is a list already, image after image."""
    if "offsets" in batch:
        raise ValueError("batch is pad_batch's; this criterion counts boxes on the host")
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


def denoising_pairs(noise: dict[str, Any], truth: GroundTruth, queries: int) -> Tensor:
    """For get_dn_match_indices: (images, queries), made on the host, where these lists are."""
    rows = noise.get("dn_gt_idx")  # of all boxes, if there are not too many, as before 8.4
    if rows is None:
        rows = torch.arange(len(truth.boxes)).split(list(truth.counts))
    target = torch.full((len(rows), queries), -1)
    for of_image, own, places in zip(target, rows, noise["dn_pos_idx"], strict=True):
        of_image[places] = own.repeat(noise["dn_num_group"])
    return target.to(truth.boxes.device, non_blocking=True)


def check_parts(criterion: Any) -> None:
    """What `DetectionLoss` has no call for must be Ultralytics' own, as it is when it is called."""
    PARTS.check()
    if criterion.use_uni_match:
        raise ValueError("use_uni_match is set; boxloss matches each layer by itself")
    check_class(criterion.matcher, HungarianMatcher)
    check_methods(criterion, RTDETRDetectionLoss, METHODS)


def cases(model: Any) -> Iterator[Case]:
    """The encoder is the first layer."""
    queries, layers, classes = 20, 3, model.model[-1].nc
    for counts in (*COUNTS, (queries + 3, 1)):
        for groups in (0, 2) if any(counts) else (0,):
            words = f"images with {counts} boxes, {groups} groups of denoising queries"
            random = MadeUp.of(model)
            boxes = random.boxes(len(counts), queries)
            scores, boxes_of_layers = map(random.output, random.layers(boxes, layers, classes))
            truth = [random.near(each, count) for each, count in zip(boxes, counts, strict=True)]
            index = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
            arguments: dict[str, Any] = {
                "preds": (boxes_of_layers, scores),
                "batch": {
                    "cls": random.integers(classes, sum(counts)).to(random.device),
                    "bboxes": torch.cat(truth).to(random.device),
                    "batch_idx": index.to(random.device),
                    "gt_groups": list(counts),
                },
            }
            if groups:
                most = max(counts)
                noisy = random.boxes(len(counts), 2 * most * groups)
                made = map(random.output, random.layers(noisy, layers, classes))
                arguments |= zip(("dn_scores", "dn_bboxes"), made, strict=True)
                first = 2 * most * torch.arange(groups)[:, None]
                arguments["dn_meta"] = {
                    "dn_pos_idx": [(first + torch.arange(each)).flatten() for each in counts],
                    "dn_gt_idx": list(torch.arange(sum(counts)).split(counts)),
                    "dn_num_group": groups,
                }
            yield Case(words, arguments, any(counts))


FAMILY = family((RTDETRDetectionModel,), DetectionLoss, check_parts, cases, PARTS)
