# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""RF-DETR for segmentation as transformers has it: RF-DETR's criterion, and all layers' masks at
points.

A seed gives the same points. The original takes a mask's height and width from the boxes, (images *
queries, 4), for the number of points that its matcher compares; so does this. A batch without any
pair has losses of masks that are 0, where the original's cannot be differentiated.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from .. import transformers_models
from ..criterion import Layers
from ..faults import GroundTruth
from ..made_up import MadeUp
from ..mask_layers import made_up_masks
from ..mask_logits import Sampling
from ..masks import draw, truth_of_labels
from ..proof import Case
from ..rf_detr_points import LOSSES, LayersOfMasks
from ..transformers_models import Given, Losses, criterion, family
from . import lw_detr

ENCODER = *lw_detr.ENCODER, "enc_outputs_masks"


@criterion("outputs_class", "outputs_coord", "outputs_masks", *ENCODER, has_masks=True)
def rf_detr_masks_loss(given: Given) -> Losses:
    """model.loss_function = rf_detr_masks_loss; gives what RfDetrForSegmentationLoss gives."""
    config, logits, last_masks = given["config"], given["logits"], given["pred_masks"]
    groups, ratio = config.group_detr, config.mask_point_sample_ratio
    images, queries, height, width = last_masks.shape
    truth, factor = truth_of_labels(given["labels"], logits.shape[-1], has_one_size=True)
    others = given["outputs_masks"][:-1] if config.auxiliary_loss else ()
    layers = [*others, last_masks, given["enc_outputs_masks"]]
    compared = images * queries * 4 // ratio
    count = max(height, height * width // ratio)
    masks = LayersOfMasks(layers, truth, factor, groups, compared, count, Sampling("nearest"))

    last, sizes = len(others), ((1, compared), *masks.sizes(queries))
    points, *drawn = draw((last, *range(last), last + 1), sizes, logits.device)
    weights = config.mask_class_loss_coefficient, config.mask_dice_loss_coefficient

    def cost(layers: Layers, boxes: GroundTruth) -> Tensor:
        return masks.cost(layers, boxes, points, (config.class_cost, *weights))

    return lw_detr.losses_in_groups(
        given,
        weighs_encoder=config.auxiliary_loss,
        more_losses=partial(masks.losses, drawn=drawn),
        more_coefficients=dict(zip(LOSSES, weights, strict=True)),
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
