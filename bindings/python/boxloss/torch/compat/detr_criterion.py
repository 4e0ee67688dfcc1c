# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The criteria of DETR and Deformable DETR as transformers has them, for all layers at once.

Nothing here waits for the device: pairs, class targets and the number of boxes stay there.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ..._options import ClassMode
from ..distributed import global_normalizer
from ..hungarian_match import hungarian_match
from ..losses import box_losses
from ..matching_cost import matching_cost
from .targets import FixedTargets, Targets, check_classes, collate_targets
from .versions import is_before

Losses = tuple[Tensor, dict[str, Tensor], list[dict[str, Tensor]] | None]
# By scores, the class that each query should have, the number of boxes, and the config: the class
# loss of each layer, and how many queries of each image have found something.
ClassLoss = Callable[[Tensor, Tensor, Tensor, Any], tuple[Tensor, Tensor]]

# Until 5.2 a figure for the log took the last class for "no object", which there is none of here.
FOUND_BY_LAST_CLASS = is_before("transformers", 5, 2)


def detr_loss(
    logits: Tensor,
    labels: Targets | FixedTargets,
    device: torch.device,
    pred_boxes: Tensor,
    config: Any,
    outputs_class: Any = None,
    outputs_coord: Any = None,
    **ignored: Any,
) -> Losses:
    """model.loss_function = detr_loss; gives what ForObjectDetectionLoss gives."""
    outputs = logits, pred_boxes, outputs_class, outputs_coord
    return _criterion(*outputs, labels, config, "softmax", _cross_entropy)


def deformable_detr_loss(
    logits: Tensor,
    labels: Targets | FixedTargets,
    device: torch.device,
    pred_boxes: Tensor,
    config: Any,
    outputs_class: Any = None,
    outputs_coord: Any = None,
    **ignored: Any,
) -> Losses:
    """model.loss_function = deformable_detr_loss; gives what DeformableDetrForObjectDetectionLoss
    gives."""
    outputs = logits, pred_boxes, outputs_class, outputs_coord
    return _criterion(*outputs, labels, config, "focal", _focal)


def _criterion(
    logits: Tensor,
    pred_boxes: Tensor,
    outputs_class: Any,
    outputs_coord: Any,
    labels: Targets | FixedTargets,
    config: Any,
    class_mode: ClassMode,
    class_loss: ClassLoss,
) -> Losses:
    scores, boxes, auxiliary = logits[None], pred_boxes[None], None
    if config.auxiliary_loss:
        scores = torch.cat([outputs_class[:-1], scores])
        boxes = torch.cat([outputs_coord[:-1], boxes])
        layers = zip(scores[:-1], boxes[:-1], strict=True)
        auxiliary = [{"logits": each, "pred_boxes": its} for each, its in layers]
    classes = scores.shape[-1] - (class_mode == "softmax")  # and "no object"
    check_classes(config, classes, may_be_more=class_mode == "focal")
    if config.class_cost == config.bbox_cost == config.giou_cost == 0:
        raise ValueError("class_cost, bbox_cost and giou_cost are 0; one must not be")
    truth = collate_targets(labels, "class_labels", config.num_labels, has_sizes=True)
    # Averaged over ranks, as DETR has it; an evaluation may run on one rank alone, and does not
    # wait for the others.
    number = truth.offsets[-1]
    if torch.is_grad_enabled():
        number = global_normalizer(number)
    number = truth.checked(number.clamp(min=1))

    # For the matcher and loss_boxes.
    cost = matching_cost(
        boxes,
        truth.boxes,
        truth.offsets,
        logits=scores,
        labels=truth.labels,
        iou_weight=config.giou_cost,
        l1_weight=config.bbox_cost,
        class_weight=config.class_cost,
        class_mode=class_mode,
    )
    pred_index, target_index, target_of_query = hungarian_match(cost, truth.offsets)
    giou, l1, _ = box_losses(
        boxes,
        truth.boxes,
        "giou",
        eps=0.0,
        pred_format="cxcywh",
        target_format="cxcywh",
        pred_index=pred_index,
        target_index=target_index,
        normalizer=number,
    )

    # The class loss and a figure for the log, in plain torch: who has no box, -1, is "no object".
    # At least in float32, as l1 is, whatever autocast made of the scores.
    wanted = functional.pad(truth.labels, (0, 1), value=config.num_labels)[target_of_query]
    loss_ce, found = class_loss(scores.to(l1.dtype), wanted, number, config)
    cardinality_error = (found - truth.offsets.diff()).abs().float().mean(1)

    losses = {
        "loss_ce": loss_ce,
        "loss_bbox": l1,
        "loss_giou": giou,
        "cardinality_error": cardinality_error,
    }
    total = loss_ce + config.bbox_loss_coefficient * l1 + config.giou_loss_coefficient * giou
    names = [*(f"_{layer}" for layer in range(len(boxes) - 1)), ""]
    named = {
        loss + name: value
        for loss, values in losses.items()
        for name, value in zip(names, values, strict=True)
    }
    # The original weighs as many layers as the configuration has.
    weighed = max(getattr(config, "decoder_layers", len(boxes)) - 1, 0)
    if weighed < len(boxes) - 1:
        total = torch.cat([total[:weighed], total[-1:]])
    return total.sum(), named, auxiliary


def _cross_entropy(
    scores: Tensor, wanted: Tensor, number: Tensor, config: Any
) -> tuple[Tensor, Tensor]:
    weight = torch.ones(config.num_labels + 1, dtype=scores.dtype, device=scores.device)
    weight[-1].fill_(config.eos_coefficient)  # assigned, it would be waited for
    entropy = functional.cross_entropy(
        scores.flatten(0, 2), wanted.flatten(), weight, reduction="none"
    )
    loss = entropy.view(len(scores), -1).sum(1) / weight[wanted].flatten(1).sum(1)
    return loss, (scores.argmax(-1) != config.num_labels).sum(-1)


def _focal(scores: Tensor, wanted: Tensor, number: Tensor, config: Any) -> tuple[Tensor, Tensor]:
    """With a gamma of 2. A query without a box has a class behind the last, which is cut off."""
    target = torch.zeros_like(functional.pad(scores, (0, 1)))
    target = target.scatter_(-1, wanted[..., None], 1.0)[..., :-1]
    miss = scores.sigmoid()
    miss = miss + target - 2 * miss * target
    loss = functional.binary_cross_entropy_with_logits(scores, target, reduction="none")
    loss = loss * miss.square()
    if config.focal_alpha >= 0:
        loss = loss * (1 - config.focal_alpha + (2 * config.focal_alpha - 1) * target)
    if FOUND_BY_LAST_CLASS:
        found = (scores.argmax(-1) != scores.shape[-1] - 1).sum(-1)
    else:
        found = (scores.amax(-1).sigmoid() > 0.5).sum(-1)
    return loss.flatten(1).sum(1) / number, found
