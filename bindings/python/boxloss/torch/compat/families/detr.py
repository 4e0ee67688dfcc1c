# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""DETR, YOLOS and Table Transformer as transformers has them."""

from functools import partial

from ..criterion import of_scores
from ..detr_layers import losses_of
from ..targets import check_classes
from ..transformers_batches import cases
from ..transformers_models import Given, Losses, criterion, family


@criterion("outputs_class", "outputs_coord")
def detr_loss(given: Given) -> Losses:
    """model.loss_function = detr_loss; gives what ForObjectDetectionLoss gives."""
    config = given["config"]
    classes = config.num_labels
    check_classes(config, given["logits"].shape[-1] - 1)  # and "no object"
    return losses_of(
        given,
        classes,
        partial(of_scores, mode="softmax", no_object_weight=config.eos_coefficient),
        found=lambda scores: (scores.argmax(-1) != classes).sum(-1),
        class_mode="softmax",
    )


FAMILY = family(detr_loss, cases)
