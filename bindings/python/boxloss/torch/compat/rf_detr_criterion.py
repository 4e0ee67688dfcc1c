# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The criterion of RF-DETR, for all layers and groups at once.

The original gathers pairs layer by layer, and assigns on the host. Nothing here waits for the
device. Up to rounding it is the same, but for

- areas below 1e-7, a square of 0.0003 of the image's side: theirs are not clamped where GIoU has
  them in a numerator, and a box' negative size is 0 there;
- logits beyond 15 in the matcher: its focal term has log(p + 1e-8), theirs log(p);
- halves: theirs computes scores and corners in them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from rfdetr.models.criterion import SetCriterion
from rfdetr.models.matcher import HungarianMatcher
from torch import Tensor
from torch.nn import functional

from ..class_loss import class_loss
from ..distributed import global_normalizer
from ..hungarian_match import hungarian_match
from ..matching_cost import matching_cost
from ..set_criterion import losses_of_pairs
from .constants import apart
from .normalizer import number_of_boxes
from .pair_scores import pair_losses
from .parts import Parts
from .replace import qualified_name
from .targets import GroundTruth, collate_targets

PARTS = Parts(
    {
        "rfdetr.models.criterion": (
            *("SetCriterion", "sigmoid_focal_loss", "sigmoid_varifocal_loss"),
            *("position_supervised_loss", "_batched_detection_loss_tensors"),
        ),
        "rfdetr.models.matcher": ("HungarianMatcher", "_linear_sum_assignment"),
        "rfdetr.utilities.box_ops": (
            *("box_cxcywh_to_xyxy", "generalized_box_iou", "box_iou", "elementwise_box_iou"),
            "elementwise_generalized_box_iou",
        ),
    }
)

OUTPUTS = "pred_logits", "pred_boxes"
LOSSES = {"labels", "boxes", "cardinality"}  # not "masks", nor "keypoints"


class Criterion(SetCriterion):
    def forward(
        self,
        outputs: Mapping[str, Any],
        targets: Sequence[Mapping[str, Tensor]],
        num_boxes: Tensor | float | None = None,
    ) -> dict[str, Tensor]:
        check_parts(self)
        layers = {"": outputs}
        layers |= {f"_{i}": each for i, each in enumerate(outputs.get("aux_outputs", ()))}
        parts = [layers]
        if "enc_outputs" in outputs:
            encoder = {"_enc": outputs["enc_outputs"]}
            if all(encoder["_enc"][name].shape == outputs[name].shape for name in OUTPUTS):
                layers |= encoder
            else:  # of a small image it has fewer places than queries; or a head of its own
                parts.append(encoder)
        groups = self.group_detr if self.training else 1

        classes = outputs["pred_logits"].shape[-1]
        if classes != self.num_classes and not self.ia_bce_loss:  # which alone asks logits
            raise ValueError(
                f"pred_logits have {classes} classes, criterion.num_classes is {self.num_classes}"
            )
        truth = collate_targets(targets, "labels", classes, has_sizes=True)
        lengths = truth.offsets.diff()
        is_box = None
        if "valid" in targets[0]:  # padded to as many rows in each image
            is_box = torch.cat([each["valid"] for each in targets])
            lengths = torch.stack([each["valid"].sum() for each in targets])
        if num_boxes is None:
            number = lengths.sum() * (1 if self.sum_group_losses else groups)
            number = global_normalizer(number).clamp(min=1)
        else:
            number = number_of_boxes("num_boxes", num_boxes, outputs["pred_boxes"], truth.boxes)
        number = truth.checked(number)
        losses: dict[str, Tensor] = {}
        for part in parts:
            losses |= self.losses_of_layers(part, truth, lengths, is_box, number, groups)
        return losses

    def losses_of_layers(
        self,
        layers: Mapping[str, Any],
        truth: GroundTruth,
        lengths: Tensor,
        is_box: Tensor | None,
        number: Tensor,
        groups: int,
    ) -> dict[str, Tensor]:
        """Of layers of as many queries, by the suffixes of their losses' names."""
        scores = torch.stack([each["pred_logits"] for each in layers.values()])
        boxes = torch.stack([each["pred_boxes"] for each in layers.values()])
        cost = matching_cost(
            boxes,
            truth.boxes,
            truth.offsets,
            logits=scores,
            labels=truth.labels,
            iou_weight=self.matcher.cost_giou,
            l1_weight=self.matcher.cost_bbox,
            class_weight=self.matcher.cost_class,
            class_mode="focal",
            focal_alpha=self.matcher.focal_alpha,
            eps=1e-7,
            eps_mode="clamp",
        )
        if is_box is not None:
            cost = cost.masked_fill(~is_box, torch.inf)
        target_of_query = hungarian_match(cost, truth.offsets, groups=groups).target_of_query
        giou, l1, iou = losses_of_pairs(
            boxes, truth.boxes, target_of_query, number, eps=1e-7, eps_mode="clamp"
        )
        found = (scores.amax(-1).sigmoid() > 0.5).sum(-1)
        losses = {
            "loss_ce": self.class_loss(scores, truth.labels, target_of_query, iou, number),
            "loss_bbox": l1,
            "loss_giou": giou,
            "cardinality_error": (found - lengths).abs().float().mean(1),
        }
        named = {
            loss + name: value
            for loss, values in losses.items()
            for name, value in zip(layers, apart(values), strict=True)
        }
        if "" in layers:
            # Another figure for the log, of the last layer. A query without a box has the class -1.
            wanted = functional.pad(truth.labels, (0, 1), value=-1)[target_of_query[0]]
            right = (scores[0].argmax(-1) == wanted).sum()
            named["class_error"] = 100 - 100 * right / (wanted >= 0).sum().clamp(min=1)
        return named

    def class_loss(
        self, scores: Tensor, labels: Tensor, target_of_query: Tensor, iou: Tensor, number: Tensor
    ) -> Tensor:
        """(layers); iou has target_of_query's shape."""
        if self.ia_bce_loss or not (self.use_position_supervised_loss or self.use_varifocal_loss):
            return class_loss(
                scores,
                target_of_query,
                labels,
                mode="ia_bce" if self.ia_bce_loss else "focal",
                query_quality=iou if self.ia_bce_loss else None,
                alpha=self.focal_alpha,
                normalizer=number,
            )
        return self.rare_class_loss(scores, labels, target_of_query, iou) / number

    def rare_class_loss(
        self, scores: Tensor, labels: Tensor, target_of_query: Tensor, iou: Tensor
    ) -> Tensor:
        """In plain torch. At least in float32, whatever autocast made of the scores."""
        scores = scores.to(iou.dtype)
        alpha = self.focal_alpha
        of_pairs, of_others = (alpha, 1 - alpha) if alpha >= 0 else (1.0, 1.0)
        wanted = weight = iou
        own = functional.pad(labels, (0, 1))[target_of_query]
        logits = scores.gather(-1, own[..., None]).squeeze(-1)
        if self.use_position_supervised_loss:
            best = iou.amax(-1, keepdim=True)
            wanted = iou / (best + 1e-8)
            weight = of_pairs * (wanted - logits.sigmoid()).square()
        is_pair = (target_of_query >= 0) & (wanted != 0)  # a pair that wants 0 is as no pair
        logits, wanted, weight, is_pair = (
            each.flatten(1) for each in (logits, wanted, weight, is_pair)
        )
        return pair_losses(scores, logits, wanted, weight, is_pair, of_others)


def check_parts(criterion: Any) -> None:
    """What `Criterion` has no call for must be rfdetr's own, as it is when it is called."""
    PARTS.check()
    if {*criterion.losses} != LOSSES:
        raise ValueError(
            f"criterion.losses is {criterion.losses}; use_boxloss knows RF-DETR for detection, "
            f"{sorted(LOSSES)}, not for masks and keypoints"
        )
    matcher = criterion.matcher
    hooks = matcher._forward_pre_hooks or matcher._forward_hooks
    if type(matcher) is not HungarianMatcher or "forward" in vars(matcher) or hooks:
        raise ValueError(
            f"{qualified_name(type(matcher))} is no longer, or not alone, "
            f"{qualified_name(HungarianMatcher)}, which boxloss computes itself"
        )
    for name in ("loss_labels", "loss_boxes", "loss_cardinality", "num_boxes_for_targets"):
        is_theirs = getattr(type(criterion), name) is getattr(SetCriterion, name)
        if name in vars(criterion) or not is_theirs:
            raise ValueError(
                f"{qualified_name(type(criterion))} has a {name} of its own, not replaced"
            )
