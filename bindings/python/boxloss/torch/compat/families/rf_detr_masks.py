# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""RF-DETR for segmentation as transformers has it: RF-DETR's criterion, and all layers' masks at
points.

A seed gives the same points. The original takes a mask's height and width from the boxes, (images *
queries, 4), for the number of points that its matcher compares; so does this. A batch without any
pair has losses of masks that are 0, where the original's cannot be differentiated.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from ... import matching_cost
from .. import transformers_models
from ..criterion import Layers, Learned
from ..faults import GroundTruth
from ..made_up import MadeUp
from ..mask_layers import made_up_masks
from ..masks import cost_at_points, draw, in_parts, losses_at_points, pairs_of, truth_of_labels
from ..proof import Case
from ..transformers_models import Given, Losses, criterion, family
from . import lw_detr

ENCODER = *lw_detr.ENCODER, "enc_outputs_masks"


@criterion("outputs_class", "outputs_coord", "outputs_masks", *ENCODER, has_masks=True)
def rf_detr_masks_loss(given: Given) -> Losses:
    """model.loss_function = rf_detr_masks_loss; gives what RfDetrForSegmentationLoss gives."""
    config, logits, last_masks = given["config"], given["logits"], given["pred_masks"]
    groups, ratio, device = config.group_detr, config.mask_point_sample_ratio, logits.device
    images, queries, height, width = last_masks.shape
    truth, factor = truth_of_labels(given["labels"], logits.shape[-1], has_one_size=True)
    others = given["outputs_masks"][:-1] if config.auxiliary_loss else ()
    masks = [*others, last_masks, given["enc_outputs_masks"]]

    count = max(height, height * width // ratio)
    uncertain = int(0.75 * count)
    compared = images * queries * 4 // ratio
    pairs, last = pairs_of(truth, queries, groups), len(others)
    sizes = (1, compared), (pairs, 3 * count), (pairs, count - uncertain)
    points, *of_losses = draw((last, *range(last), last + 1), sizes, device)
    weights = config.mask_class_loss_coefficient, config.mask_dice_loss_coefficient
    coefficients = dict(zip(("loss_mask_ce", "loss_mask_dice"), weights, strict=True))

    @torch.no_grad()
    def cost(layers: Layers, boxes: GroundTruth) -> Tensor:
        in_groups = queries // groups * groups
        of_classes = matching_cost(
            layers.boxes[:, :, :in_groups],
            boxes.boxes,
            boxes.offsets,
            logits=layers.scores[:, :, :in_groups],
            labels=boxes.labels,
            iou_weight=0.0,
            l1_weight=0.0,
            class_weight=config.class_cost,
            class_mode="focal",
        )
        with torch.autocast(device.type, enabled=False):
            own = [each[:, :in_groups] for each in masks]
            of_masks = cost_at_points(own, truth, points, *weights, mode="nearest")
        return of_classes + of_masks[:, truth.image, :, truth.place].permute(1, 2, 0)

    def more_losses(learned: Learned) -> dict[str, Tensor]:
        number = learned.pairs.number if factor is None else learned.pairs.number * factor
        rows = learned.pairs.target_of_query
        values = []
        for own in in_parts(len(masks), pairs * 3 * count, images * queries * compared):
            drawn = [each[own] for each in of_losses]
            given = masks[own], truth, rows[own], number, drawn, uncertain, groups, "nearest"
            values.append(losses_at_points(*given))
        return dict(zip(coefficients, map(torch.cat, zip(*values, strict=True)), strict=True))

    return lw_detr.losses_in_groups(
        given,
        weighs_encoder=config.auxiliary_loss,
        more_losses=more_losses,
        more_coefficients=coefficients,
        class_cost=cost,
        class_weight=1.0,
        nonfinite=torch.finfo(torch.float32).max,
    )


def cases(model: Any) -> Iterator[Case]:
    """Those in which all images or none have more masks than a group queries: in fixed shapes
    others would draw more points."""
    random = MadeUp.of(model)
    for case in lw_detr.cases(model):
        made = case.arguments
        layers, images, queries = made["outputs_class"].shape[:3]
        own = queries // model.config.group_detr
        are_crowded = {len(each["boxes"]) > own for each in made["labels"]}
        if not case.has_boxes or len(are_crowded) > 1:
            continue
        for each in made["labels"]:
            each["masks"] = made_up_masks(random, len(each["boxes"]), 40, 40)
        masks = [
            random.output(2 * random.normal(images, queries, 12, 12)) for _ in range(layers + 1)
        ]
        of_masks = {"outputs_masks": masks[:layers], ENCODER[2]: masks[layers]}
        yield case._replace(arguments={**made, **of_masks})


def made_losses(model: Any, outputs_masks: list[Tensor], **made: Any) -> Any:
    """At the same points each time."""
    torch.manual_seed(0)
    made |= {"outputs_masks": outputs_masks, "pred_masks": outputs_masks[-1]}
    return transformers_models.losses_of(model, **made)


FAMILY = family(rf_detr_masks_loss, cases, made_losses)
