# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The criteria of DETR and Deformable DETR as transformers has them, for all layers at once.

Their kin share `criterion`, and have a class loss of their own.
Nothing here waits for the device: pairs and the number of boxes stay there.
"""

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..class_loss import class_loss
from ..hungarian_match import MatchResult, hungarian_match
from ..matching_cost import matching_cost
from ..set_criterion import losses_of_pairs
from .constants import apart, weighted
from .ranks import average_over_ranks
from .targets import FixedTargets, GroundTruth, Targets, check_classes, collate_targets
from .versions import is_before

Losses = tuple[Tensor, dict[str, Tensor], list[dict[str, Any]] | None]


class Layers(NamedTuple):
    """Outputs of all layers, of as many queries: the auxiliary ones, the last, the encoder's.

    Attributes:
        scores: (layers, images, queries, classes). boxes: (layers, images, queries, 4).
        names: the suffixes of their losses' names.
    """

    scores: Tensor
    boxes: Tensor
    names: list[str]


class Matched(NamedTuple):
    """What a class loss is computed from; iou has the shape of pairs.target_of_query."""

    scores: Tensor
    truth: GroundTruth
    pairs: MatchResult
    iou: Tensor
    number: Tensor
    config: Any


# The class loss of each layer, and how many queries of each image have found something.
ClassLoss = Callable[[Matched], tuple[Tensor, Tensor]]

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
    check_classes(config, logits.shape[-1] - 1)  # and "no object"
    layers, auxiliary = all_layers(logits, pred_boxes, outputs_class, outputs_coord, config)
    truth = collate_targets(labels, "class_labels", config.num_labels, has_sizes=True)
    of_class = {"logits": layers.scores, "labels": truth.labels, "class_mode": "softmax"}
    return *criterion(layers, truth, config, of_class, _cross_entropy), auxiliary


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
    check_classes(config, logits.shape[-1])
    layers, auxiliary = all_layers(logits, pred_boxes, outputs_class, outputs_coord, config)
    truth = collate_targets(labels, "class_labels", config.num_labels, has_sizes=True)
    of_class = {"logits": layers.scores, "labels": truth.labels, "class_mode": "focal"}
    return *criterion(layers, truth, config, of_class, _focal), auxiliary


def all_layers(
    logits: Tensor,
    pred_boxes: Tensor,
    outputs_class: Any,
    outputs_coord: Any,
    config: Any,
    encoder: tuple[Tensor, Tensor] | None = None,
) -> tuple[Layers, list[dict[str, Any]] | None]:
    """As models give them; and what they call auxiliary outputs."""
    scores, boxes, names, auxiliary = [logits[None]], [pred_boxes[None]], [""], None
    if config.auxiliary_loss:
        first = outputs_class[:-1], outputs_coord[:-1]
        scores.insert(0, first[0])
        boxes.insert(0, first[1])
        auxiliary = [{"logits": each, "pred_boxes": its} for each, its in zip(*first, strict=True)]
        names = [*(f"_{layer}" for layer in range(len(auxiliary))), ""]
    if encoder is not None:
        if encoder[0].shape[-1] != logits.shape[-1]:
            given = encoder[0].shape[-1], logits.shape[-1]
            raise ValueError("the encoder's logits have {} classes, logits have {}".format(*given))
        scores.append(encoder[0][None])
        boxes.append(encoder[1][None])
        names.append("_enc")
    return Layers(torch.cat(scores), torch.cat(boxes), names), auxiliary


def criterion(
    layers: Layers,
    truth: GroundTruth,
    config: Any,
    of_class: dict[str, Any],
    of_scores: ClassLoss,
    *,
    groups: int = 1,
    class_coefficient: float = 1.0,
    asks_others: bool | None = None,
) -> tuple[Tensor, dict[str, Tensor]]:
    """The total, and losses by name.

    Args:
        of_class: the class term's arguments of `matching_cost`.
        groups: of consecutive queries, each of which has all boxes.
        asks_others: whether other ranks' boxes count; by default accelerate says so.
    """
    if config.class_cost == config.bbox_cost == config.giou_cost == 0:
        raise ValueError("class_cost, bbox_cost and giou_cost are 0; one must not be")
    does_ask = asks_accelerate() if asks_others is None else asks_others
    number = average_over_ranks(truth.total * groups, does_ask).clamp(min=truth.one)

    # For the matcher and loss_boxes.
    cost = matching_cost(
        layers.boxes,
        truth.boxes,
        truth.offsets,
        iou_weight=config.giou_cost,
        l1_weight=config.bbox_cost,
        class_weight=config.class_cost,
        **of_class,
    )
    pairs = hungarian_match(cost, truth.offsets, groups=groups)
    giou, l1, iou = losses_of_pairs(layers.boxes, truth.boxes, pairs.target_of_query, number)
    matched = Matched(layers.scores, truth, pairs, iou, number, config)
    loss_ce, found = of_scores(matched)
    losses = {
        "loss_ce": loss_ce,
        "loss_bbox": l1,
        "loss_giou": giou,
        "cardinality_error": (found - truth.offsets.diff()).abs().float().mean(1),
    }
    # The original weighs as many layers as the configuration has.
    last = layers.names.index("")
    weighed = max(getattr(config, "decoder_layers", last + 1) - 1, 0)
    summed = [
        (weight, part)
        for weight, values in (
            (class_coefficient, loss_ce),
            (config.bbox_loss_coefficient, l1),
            (config.giou_loss_coefficient, giou),
        )
        for part in ([values[:weighed], values[last:]] if weighed < last else [values])
    ]
    named = {
        loss + name: value
        for loss, values in losses.items()
        for name, value in zip(layers.names, apart(values), strict=True)
    }
    return weighted(summed).sum(), named


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def asks_accelerate() -> bool:
    """As ImageLoss: its state is there under Trainer and Accelerator, not under plain torchrun."""
    theirs = sys.modules.get("transformers.loss.loss_for_object_detection")
    state: Any = getattr(theirs, "PartialState", None)
    return bool(state and state._shared_state) and state().num_processes > 1


def _cross_entropy(matched: Matched) -> tuple[Tensor, Tensor]:
    loss = class_loss(
        matched.scores,
        matched.pairs.target_of_query,
        matched.truth.labels,
        mode="softmax",
        no_object_weight=matched.config.eos_coefficient,
    )
    return loss, (matched.scores.argmax(-1) != matched.config.num_labels).sum(-1)


def _focal(matched: Matched) -> tuple[Tensor, Tensor]:
    loss = class_loss(
        matched.scores,
        matched.pairs.target_of_query,
        matched.truth.labels,
        mode="focal",
        alpha=matched.config.focal_alpha,
        normalizer=matched.number,
    )
    return loss, count_found(matched.scores)


def count_found(scores: Tensor) -> Tensor:
    """How many queries of each image have, of scores that are no softmax's."""
    if FOUND_BY_LAST_CLASS:
        return (scores.argmax(-1) != scores.shape[-1] - 1).sum(-1)
    return (scores.amax(-1).sigmoid() > 0.5).sum(-1)
