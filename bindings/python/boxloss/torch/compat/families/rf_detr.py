# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""rfdetr's RF-DETR, for detection and for segmentation: its criterion, for all layers and groups
at once.

The original gathers pairs layer by layer, and assigns on the host. Up to rounding this is the same,
but for

- areas below 1e-7, a square of 0.0003 of the image's side: theirs are not clamped where GIoU has
  them in a numerator, and a box' negative size is 0 there;
- logits beyond 15 in the matcher: its focal term has log(p + 1e-8), theirs log(p);
- halves: theirs computes scores, corners and costs of masks in them.

A seed gives the same points of masks.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
from rfdetr.models.criterion import SetCriterion
from rfdetr.models.matcher import HungarianMatcher
from torch import Tensor
from torch.nn import functional

from ...distributed import global_normalizer
from ..criterion import (
    Layers,
    Learned,
    cost_of,
    learn,
    match,
    of_scores,
    pair_losses,
    scores_of_pairs,
    unweighted,
)
from ..family import Family, Swapped, nothing, swap
from ..faults import GroundTruth
from ..made_up import MadeUp, cases_of
from ..parts import Parts, check_class, check_methods
from ..proof import Case
from ..ranks import number_of_boxes
from ..targets import ground_truth_of
from .rf_detr_own_masks import Masks, add_masks

PARTS = Parts(
    {
        "rfdetr.models.criterion": (
            *("SetCriterion", "sigmoid_focal_loss", "sigmoid_varifocal_loss"),
            *("position_supervised_loss", "_batched_detection_loss_tensors"),
            *("dice_loss_jit", "sigmoid_ce_loss_jit", "_sample_target_masks_at_points"),
            *("point_sample", "calculate_uncertainty"),
            "get_uncertain_point_coords_with_randomness",
        ),
        "rfdetr.models.matcher": (
            *("HungarianMatcher", "_linear_sum_assignment"),
            *("batch_dice_loss", "batch_sigmoid_ce_loss", "point_sample"),
        ),
        "rfdetr.models.heads.segmentation": ("point_sample",),
        "rfdetr.utilities.box_ops": (
            *("box_cxcywh_to_xyxy", "generalized_box_iou", "box_iou", "elementwise_box_iou"),
            "elementwise_generalized_box_iou",
        ),
    }
)

OUTPUTS = "pred_logits", "pred_boxes"
METHODS = (
    *("loss_labels", "loss_boxes", "loss_masks", "loss_cardinality"),
    "num_boxes_for_targets",
)
LOSSES = {"labels", "boxes", "cardinality"}  # and "masks", not "keypoints"


class Criterion(SetCriterion):
    def forward(
        self,
        outputs: Mapping[str, Any],
        targets: Sequence[Mapping[str, Tensor]],
        num_boxes: Tensor | float | None = None,
    ) -> dict[str, Tensor]:
        check_parts(self)
        classes = outputs["pred_logits"].shape[-1]
        if classes != self.num_classes and not self.ia_bce_loss:  # which alone asks logits
            raise ValueError(
                f"pred_logits have {classes} classes, criterion.num_classes is {self.num_classes}"
            )
        groups = self.group_detr if self.training else 1
        truth = ground_truth_of(targets, "labels", classes, has_sizes=True)
        lengths = truth.offsets.diff()
        if "valid" in targets[0]:  # padded to as many rows in each image
            truth = GroundTruth(*truth[:-1], torch.cat([each["valid"] for each in targets]))
            lengths = torch.stack([each["valid"].sum() for each in targets])
        if num_boxes is None:
            number = lengths.sum() * (1 if self.sum_group_losses else groups)
            number = global_normalizer(number).clamp(min=1)
        else:
            number = number_of_boxes("num_boxes", num_boxes, outputs["pred_boxes"], truth.boxes)
        number = truth.checked(number)

        weights = self.matcher.cost_giou, self.matcher.cost_bbox, self.matcher.cost_class
        cost = cost_of(*weights, "focal", self.matcher.focal_alpha)
        cost |= {"eps": 1e-7, "eps_mode": "clamp"}
        by_name = outputs_of_layers(outputs)
        learns_masks = "masks" in self.losses
        masks = None
        if learns_masks or ("masks" in targets[0] and "pred_masks" in outputs):
            masks = Masks(self, by_name, targets, classes, groups)

        def row_of(layers: Layers) -> Tensor:
            with_masks = cost if masks is None else {**cost, **masks.class_cost(layers, truth)}
            return match(layers, truth, with_masks, groups).target_of_query

        def more_losses(learned: Learned) -> dict[str, Tensor]:
            found = self.class_loss(learned)
            return found | masks.losses(learned) if masks and learns_masks else found

        losses: dict[str, Tensor] = {}
        for layers in layers_of(by_name):
            row = row_of(layers)
            of_layers = learn(Layers(*layers[:3], row), truth, number, cost, more_losses)
            found = (layers.scores.amax(-1).sigmoid() > 0.5).sum(-1)
            losses |= unweighted(layers.names, of_layers, found, lengths)
            if layers.names[0] == "":  # another figure for the log, of the last layer
                wanted = functional.pad(truth.labels, (0, 1), value=-1)[row[0]]
                right = (layers.scores[0].argmax(-1) == wanted).sum()
                losses["class_error"] = 100 - 100 * right / (wanted >= 0).sum().clamp(min=1)
        return losses

    def class_loss(self, learned: Learned) -> dict[str, Tensor]:
        row, iou, number = learned.pairs
        alpha = self.focal_alpha
        if self.ia_bce_loss or not (self.use_position_supervised_loss or self.use_varifocal_loss):
            mode: Any = "ia_bce" if self.ia_bce_loss else "focal"
            return {"loss_ce": of_scores(learned, mode, alpha=alpha)}
        scores, logits = scores_of_pairs(learned)
        of_pairs, of_others = (alpha, 1 - alpha) if alpha >= 0 else (1.0, 1.0)
        wanted = weight = iou
        if self.use_position_supervised_loss:
            wanted = iou / (iou.amax(-1, keepdim=True) + 1e-8)
            weight = of_pairs * (wanted - logits.sigmoid()).square()
        is_pair = (row >= 0) & (wanted != 0)  # a pair that wants 0 is as no pair
        loss = pair_losses(scores, logits, wanted, weight, is_pair, of_others)
        return {"loss_ce": loss / number}


def outputs_of_layers(outputs: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """By their losses' suffixes: of the last layer, the others, and the encoder."""
    layers = {"": outputs}
    layers |= {f"_{i}": each for i, each in enumerate(outputs.get("aux_outputs", ()))}
    return layers | ({"_enc": outputs["enc_outputs"]} if "enc_outputs" in outputs else {})


def layers_of(outputs: Mapping[str, Mapping[str, Any]]) -> Iterator[Layers]:
    """Each of as many queries."""
    last, parts = outputs[""], [dict(outputs)]
    encoder = outputs.get("_enc", last)
    if any(encoder[name].shape != last[name].shape for name in OUTPUTS):
        # Of a small image the encoder has fewer places than queries; or a head of its own.
        parts.append({"_enc": parts[0].pop("_enc")})
    for part in parts:
        yield Layers([*part], *(torch.stack([x[name] for x in part.values()]) for name in OUTPUTS))


def check_parts(criterion: Any) -> None:
    """What `Criterion` has no call for must be rfdetr's own, as it is when it is called."""
    PARTS.check()
    if {*criterion.losses} - {"masks"} != LOSSES:
        raise ValueError(
            f"criterion.losses is {criterion.losses}; use_boxloss knows RF-DETR for detection, "
            f'{sorted(LOSSES)}, and with "masks", not for keypoints'
        )
    check_class(criterion.matcher, HungarianMatcher)
    check_methods(criterion, SetCriterion, METHODS)


def replace(criterion: Any) -> Iterator[Swapped]:
    check_parts(criterion)
    yield swap(criterion, Criterion)


def cases(criterion: Any) -> Iterator[Case]:
    """The last layer, another one and the encoder, on the CPU."""
    check_parts(criterion)
    for in_training in (True, False):
        make = partial(made_up, criterion, in_training)
        yield from cases_of(make, (13, 1), f"in {'training' if in_training else 'evaluation'}, ")


def made_up(criterion: Any, in_training: bool, counts: tuple[int, ...]) -> dict[str, Any]:
    random, groups = MadeUp(torch.device("cpu")), criterion.group_detr if in_training else 1
    boxes = random.boxes(len(counts), 10)
    made = random.layers(boxes.repeat(1, groups, 1), 3, criterion.num_classes)
    layers = [
        dict(zip(OUTPUTS, map(random.output, each), strict=True))
        for each in zip(*made, strict=True)
    ]
    targets = random.labels(boxes, counts, criterion.num_classes, "labels")
    if "masks" in criterion.losses:
        add_masks(random, layers, targets, in_training)
    last, other, encoder = layers
    return {
        "in_training": in_training,
        "outputs": {**last, "aux_outputs": [other], "enc_outputs": encoder},
        "targets": targets,
    }


def losses_of(criterion: Any, in_training: bool, **made: Any) -> Any:
    """At the same points each time."""
    torch.manual_seed(0)
    with patch.dict(vars(criterion), training=in_training):
        return criterion(**made)


FAMILY = Family(replace, cases, PARTS, losses_of, fix=nothing)
