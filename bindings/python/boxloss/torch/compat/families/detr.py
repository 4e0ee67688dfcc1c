# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""DETR, YOLOS and Table Transformer as transformers has them, and what their kin, which have no
denoising queries, share with them.

All layers have as many queries. Nothing here waits for the device: pairs and the number of boxes
stay there.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..cache import weighted
from ..criterion import Layers, Learned, learn, of_scores, unweighted
from ..ranks import asks_accelerate, average_over_ranks
from ..targets import check_classes, ground_truth_of
from ..transformers_batches import cases
from ..transformers_models import Given, Losses, criterion, family
from ..versions import is_before

IMAGE_LOSS = "transformers.loss.loss_for_object_detection"
# Until 5.2 a figure for the log took the last class for "no object", which there is none of here.
FOUND_BY_LAST_CLASS = is_before("transformers", 5, 2)


@criterion("outputs_class", "outputs_coord")
def detr_loss(given: Given) -> Losses:
    """model.loss_function = detr_loss; gives what ForObjectDetectionLoss gives."""
    return of_softmax(given, losses_of)


def of_softmax(given: Given, losses: Callable[..., Losses]) -> Losses:
    """What `losses`, which takes what `losses_of` does, gives with DETR's class loss."""
    config = given["config"]
    classes = config.num_labels
    check_classes(config, given["logits"].shape[-1] - 1)  # and "no object"
    return losses(
        given,
        classes,
        partial(of_scores, mode="softmax", no_object_weight=config.eos_coefficient),
        found=lambda scores: (scores.argmax(-1) != classes).sum(-1),
        class_mode="softmax",
    )


def count_found(scores: Tensor) -> Tensor:
    """How many queries of each image have, of scores that are no softmax's."""
    if FOUND_BY_LAST_CLASS:
        return (scores.argmax(-1) != scores.shape[-1] - 1).sum(-1)
    return (scores.amax(-1).sigmoid() > 0.5).sum(-1)


def losses_of(
    given: Given,
    classes: int | Sequence[int],
    class_loss: Callable[[Learned], Tensor],
    *,
    encoder: tuple[Any, Any] | None = None,
    found: Callable[[Tensor], Tensor] = count_found,
    groups: int = 1,
    class_coefficient: float = 1.0,
    asks_others: bool | None = None,
    weighs_encoder: bool = True,
    more_losses: Callable[[Learned], dict[str, Tensor]] = lambda _: {},
    more_coefficients: Mapping[str, float] | None = None,
    **of_class: Any,
) -> Losses:
    """What a criterion gives.

    Args:
        classes: labels are less.
        encoder: its scores and boxes.
        found: by scores, how many queries of each image have found something.
        asks_others: whether other ranks' boxes count; by default accelerate says so.
        weighs_encoder: whether the encoder's losses count, or are for the log.
        more_losses: of all layers, and their coefficients.
        of_class: the class term's arguments of `matching_cost`; class_cost is computed, from layers
            and ground truth.
    """
    config = given["config"]
    weights = config.giou_cost, config.bbox_cost, config.class_cost
    if not any(weights):
        raise ValueError("class_cost, bbox_cost and giou_cost are 0; one must not be")
    layers, auxiliary = all_layers(given, encoder)
    truth = ground_truth_of(given["labels"], "class_labels", classes, has_sizes=True)
    if "class_cost" in of_class:
        of_class["class_cost"] = of_class["class_cost"](layers, truth)
    cost = dict(zip(("iou_weight", "l1_weight", "class_weight"), weights, strict=True)) | of_class
    does_ask = asks_accelerate(IMAGE_LOSS) if asks_others is None else asks_others
    number = average_over_ranks(truth.total * groups, does_ask).clamp(min=truth.one)

    def others(learned: Learned) -> dict[str, Tensor]:
        return {"loss_ce": class_loss(learned), **more_losses(learned)}

    losses = learn(layers, truth, number, cost, others, groups=groups)
    coefficients = {
        "loss_ce": class_coefficient,
        "loss_bbox": config.bbox_loss_coefficient,
        "loss_giou": config.giou_loss_coefficient,
        **(more_coefficients or {}),
    }
    # The original weighs as many layers as the configuration has.
    last = layers.names.index("")
    end = len(layers.names) - (encoder is not None and not weighs_encoder)
    weighed = max(getattr(config, "decoder_layers", last + 1) - 1, 0)

    def counted(values: Tensor) -> list[Tensor]:
        if weighed < last:
            return [values[:weighed], values[last:end]]
        return [values[:end] if end < len(values) else values]  # a slice has launches in backward

    parts = [(coefficients[name], part) for name in losses for part in counted(losses[name])]
    total = weighted(parts).sum()
    named = unweighted(layers.names, losses, found(layers.scores), truth.offsets.diff())
    return total, named, auxiliary


def all_layers(
    given: Given, encoder: tuple[Any, Any] | None
) -> tuple[Layers, list[dict[str, Any]] | None]:
    """The auxiliary ones, the last, the encoder's; and what models call auxiliary outputs."""
    last = given["logits"], given["pred_boxes"]
    parts, names, auxiliary = [[each[None] for each in last]], [""], None
    if given["config"].auxiliary_loss:
        first = given["outputs_class"][:-1], given["outputs_coord"][:-1]
        parts.insert(0, [*first])
        auxiliary = [{"logits": each, "pred_boxes": its} for each, its in zip(*first, strict=True)]
        names = [*(f"_{layer}" for layer in range(len(auxiliary))), ""]
    if encoder is not None:
        classes = encoder[0].shape[-1], last[0].shape[-1]
        if classes[0] != classes[1]:
            raise ValueError(
                "the encoder's logits have {} classes, logits have {}".format(*classes)
            )
        parts.append([each[None] for each in encoder])
        names.append("_enc")
    return Layers(names, *map(torch.cat, zip(*parts, strict=True))), auxiliary


FAMILY = family(detr_loss, cases)
