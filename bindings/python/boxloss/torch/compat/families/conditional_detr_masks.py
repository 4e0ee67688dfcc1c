# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Conditional DETR with masks as transformers has it: DETR's matcher, and the focal loss."""

from functools import partial

from ..criterion import of_scores
from ..targets import check_classes
from ..transformers_models import Given, Losses, criterion, family
from .detr_masks import cases, losses_with_masks


@criterion("outputs_class", "outputs_coord", has_masks=True)
def conditional_detr_masks_loss(given: Given) -> Losses:
    """model.loss_function = conditional_detr_masks_loss; gives what
    DeformableDetrForSegmentationLoss gives."""
    config = given["config"]
    check_classes(config, given["logits"].shape[-1])
    focal = partial(of_scores, mode="focal", alpha=config.focal_alpha)
    return losses_with_masks(given, config.num_labels, focal, class_mode="softmax")


FAMILY = family(conditional_detr_masks_loss, cases)
