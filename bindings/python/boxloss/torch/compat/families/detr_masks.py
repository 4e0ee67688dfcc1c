# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""DETR with masks as transformers has it: DETR's criterion, and the last layer's masks at all
pixels, by the focal loss and dice."""

from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor

from .. import transformers_batches
from ..criterion import Learned
from ..made_up import MadeUp
from ..mask_layers import made_up_masks
from ..masks import losses_at_pixels, truth_of_labels
from ..proof import Case
from ..transformers_models import Given, Losses, criterion, family
from .detr import losses_of, of_softmax


def losses_with_masks(
    given: Given, classes: int, class_loss: Callable[[Learned], Tensor], **options: Any
) -> Losses:
    """What `detr.losses_of` gives, and the losses of masks."""
    config, masks = given["config"], given["pred_masks"]
    truth, factor = truth_of_labels(given["labels"], classes)
    found: dict[str, Tensor] = {}

    def with_masks(learned: Learned) -> Tensor:
        number = learned.pairs.number if factor is None else learned.pairs.number * factor
        values = losses_at_pixels(masks, truth, learned.pairs.target_of_query[-1], number)
        found.update(zip(("loss_mask", "loss_dice"), values, strict=True))
        return class_loss(learned)

    total, named, auxiliary = losses_of(given, classes, with_masks, **options)
    weights = config.mask_loss_coefficient, config.dice_loss_coefficient
    total = total + sum(w * x for w, x in zip(weights, found.values(), strict=True))
    return total, named | found, auxiliary


@criterion("outputs_class", "outputs_coord", has_masks=True)
def detr_masks_loss(given: Given) -> Losses:
    """model.loss_function = detr_masks_loss; gives what ForSegmentationLoss gives."""
    return of_softmax(given, losses_with_masks)


def cases(model: Any) -> Iterator[Case]:
    random = MadeUp.of(model)
    for case in transformers_batches.cases(model):
        made = case.arguments
        images, queries = made["outputs_class"].shape[1:3]
        for each in made["labels"]:
            each["masks"] = made_up_masks(random, len(each["boxes"]), 40, 60)
        masks = random.output(2 * random.normal(images, queries, 12, 16))
        yield case._replace(arguments={**made, "pred_masks": masks})


FAMILY = family(detr_masks_loss, cases)
