# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The criterion of LW-DETR, and of RF-DETR for detection, as transformers has it: DETR's in groups.

Groups are those of training in evaluation, too, where a model gives one group's queries: these are
split into so many, and what is left belongs to no group. It is what the original does.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ..class_loss import class_loss
from .detr_criterion import Layers, Losses, Matched, all_layers, count_found, criterion
from .ranks import is_initialized
from .targets import FixedTargets, Targets, collate_targets
from .versions import is_before

# Until 5.10 it asked accelerate for other ranks, as DETR does.
ASKS_TORCH = not is_before("transformers", 5, 10)


def lw_detr_loss(
    logits: Tensor,
    labels: Targets | FixedTargets,
    device: torch.device,
    pred_boxes: Tensor,
    config: Any,
    outputs_class: Any = None,
    outputs_coord: Any = None,
    enc_outputs_class: Any = None,
    enc_outputs_coord: Any = None,
    **ignored: Any,
) -> Losses:
    """model.loss_function = lw_detr_loss; gives what LwDetrForObjectDetectionLoss gives."""
    groups, queries = config.group_detr, logits.shape[1]
    if queries < groups:
        raise ValueError(
            f"config.group_detr is {groups}; there are {queries} queries, which is less"
        )
    encoder = enc_outputs_class, enc_outputs_coord
    layers, auxiliary = all_layers(
        logits, pred_boxes, outputs_class, outputs_coord, config, encoder
    )
    truth = collate_targets(labels, "class_labels", logits.shape[-1], has_sizes=True)
    in_groups = queries - queries % groups
    layers = Layers(layers.scores, layers.boxes[:, :, :in_groups], layers.names)
    of_class = {
        "logits": layers.scores[:, :, :in_groups],
        "labels": truth.labels,
        "class_mode": "focal",
    }

    def of_iou(matched: Matched) -> tuple[Tensor, Tensor]:
        """IA-BCE: a pair's score is to be near its IoU."""
        target_of_query, iou = (
            functional.pad(each, (0, queries - in_groups), value=none)
            for each, none in ((matched.pairs.target_of_query, -1), (matched.iou, 0))
        )
        loss = class_loss(
            matched.scores,
            target_of_query,
            truth.labels,
            mode="ia_bce",
            query_quality=iou,
            alpha=config.focal_alpha,
            normalizer=matched.number,
        )
        return loss, count_found(matched.scores)

    # A configuration of older versions has none; the loss counted as it is.
    coefficient = getattr(config, "class_loss_coefficient", 1.0)
    losses = criterion(
        layers,
        truth,
        config,
        of_class,
        of_iou,
        groups=groups,
        class_coefficient=coefficient,
        asks_others=is_initialized() if ASKS_TORCH else None,
    )
    return *losses, auxiliary
