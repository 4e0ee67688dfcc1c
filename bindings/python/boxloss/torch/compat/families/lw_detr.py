# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""LW-DETR, and RF-DETR for detection, as transformers has them: DETR's criterion in groups.

Groups are those of training in evaluation, too, where a model gives one group's queries: these are
split into so many, and what is left belongs to no group. It is what the original does.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from ..criterion import of_scores
from ..made_up import cases_of
from ..proof import Case
from ..ranks import is_initialized
from ..transformers_batches import made_up, queries_of
from ..transformers_models import Given, Losses, criterion, family
from ..versions import is_before
from .detr import losses_of

# Until 5.10 it asked accelerate for other ranks, as DETR does.
ASKS_TORCH = not is_before("transformers", 5, 10)
ENCODER = "enc_outputs_class", "enc_outputs_coord"


@criterion("outputs_class", "outputs_coord", *ENCODER)
def lw_detr_loss(given: Given) -> Losses:
    """model.loss_function = lw_detr_loss; gives what LwDetrForObjectDetectionLoss gives."""
    return losses_in_groups(given, class_mode="focal")


def losses_in_groups(given: Given, **options: Any) -> Losses:
    """What `detr.losses_of` gives with LW-DETR's options, and others."""
    config, logits = given["config"], given["logits"]
    groups, queries = config.group_detr, logits.shape[1]
    if queries < groups:
        raise ValueError(
            f"config.group_detr is {groups}; there are {queries} queries, which is less"
        )
    return losses_of(
        given,
        logits.shape[-1],
        # A pair's score is to be near its IoU.
        partial(of_scores, mode="ia_bce", alpha=config.focal_alpha),
        encoder=tuple(given[name] for name in ENCODER),
        groups=groups,
        # A configuration of older versions has none; the loss counted as it is.
        class_coefficient=getattr(config, "class_loss_coefficient", 1.0),
        asks_others=is_initialized() if ASKS_TORCH else None,
        **options,
    )


def cases(model: Any) -> Iterator[Case]:
    """In training few queries, since the original compares all groups' pairs with each other."""
    for queries, groups, when in (
        (10, model.config.group_detr, "in training, "),
        (queries_of(model.config), 1, "in evaluation, "),
    ):
        make = partial(made_up, model, queries=queries, groups=groups, encoder=ENCODER)
        yield from cases_of(make, (queries + 3, queries + 1), when)


FAMILY = family(lw_detr_loss, cases)
