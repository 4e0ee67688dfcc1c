# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Deformable DETR, Conditional DETR and DAB-DETR as transformers has them."""

from functools import partial

from ..criterion import of_scores
from ..targets import check_classes
from ..transformers_batches import cases
from ..transformers_models import Given, Losses, criterion, family
from .detr import losses_of


@criterion("outputs_class", "outputs_coord")
def deformable_detr_loss(given: Given) -> Losses:
    """model.loss_function = deformable_detr_loss; gives what DeformableDetrForObjectDetectionLoss
    gives."""
    config = given["config"]
    check_classes(config, given["logits"].shape[-1])
    focal = partial(of_scores, mode="focal", alpha=config.focal_alpha)
    return losses_of(given, config.num_labels, focal, class_mode="focal")


FAMILY = family(deformable_detr_loss, cases)
