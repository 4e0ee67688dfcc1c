# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What transformers' criteria of DETR and its kin, that have no denoising queries, have in common.

All layers have as many queries. Nothing here waits for the device: pairs and the number of boxes
stay there.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from .constants import weighted
from .criterion import Layers, Learned, Learning, learn, unweighted
from .made_up import MOST, MadeUp, cases_of
from .proof import Case
from .ranks import asks_accelerate, average_over_ranks
from .targets import collate_targets
from .transformers_models import Given, Losses
from .versions import is_before

IMAGE_LOSS = "transformers.loss.loss_for_object_detection"
# Until 5.2 a figure for the log took the last class for "no object", which there is none of here.
FOUND_BY_LAST_CLASS = is_before("transformers", 5, 2)


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
    **of_class: Any,
) -> Losses:
    """What a criterion gives.

    Args:
        classes: labels are less.
        encoder: its scores and boxes.
        found: by scores, how many queries of each image have found something.
        asks_others: whether other ranks' boxes count; by default accelerate says so.
        of_class: the class term's arguments of `matching_cost`; class_cost is computed, from layers
            and ground truth.
    """
    config = given["config"]
    weights = config.giou_cost, config.bbox_cost, config.class_cost
    if not any(weights):
        raise ValueError("class_cost, bbox_cost and giou_cost are 0; one must not be")
    layers, auxiliary = all_layers(given, encoder)
    truth = collate_targets(given["labels"], "class_labels", classes, has_sizes=True)
    if "class_cost" in of_class:
        of_class["class_cost"] = of_class["class_cost"](layers, truth)
    cost = dict(zip(("iou_weight", "l1_weight", "class_weight"), weights, strict=True)) | of_class
    does_ask = asks_accelerate(IMAGE_LOSS) if asks_others is None else asks_others
    number = average_over_ranks(truth.total * groups, does_ask).clamp(min=truth.one)
    learning = Learning(cost, lambda learned: {"loss_ce": class_loss(learned)}, groups=groups)
    losses = learn(layers, truth, number, learning)

    coefficients = {
        "loss_ce": class_coefficient,
        "loss_bbox": config.bbox_loss_coefficient,
        "loss_giou": config.giou_loss_coefficient,
    }
    # The original weighs as many layers as the configuration has.
    last = layers.names.index("")
    weighed = max(getattr(config, "decoder_layers", last + 1) - 1, 0)
    total = weighted(
        [
            (coefficients[name], part)
            for name, values in losses.items()
            for part in ([values[:weighed], values[last:]] if weighed < last else [values])
        ]
    ).sum()
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


HEADS = {"class_embed", "class_labels_classifier"}


def classes_of(model: Any) -> int:
    """Of the scores that its head gives; its configuration may have another number."""
    found = [
        part.out_features
        for name, part in model.named_modules()
        if HEADS & {*name.split(".")} and hasattr(part, "out_features")
    ]
    return int(found[-1]) if found else int(model.config.num_labels)


def queries_of(config: Any) -> int:
    return min(getattr(config, "num_queries", None) or config.num_detection_tokens, MOST)


def made_up(
    model: Any,
    counts: tuple[int, ...],
    queries: int,
    *,
    groups: int = 1,
    encoder: tuple[str, ...] = (),
    names: int | None = None,
    classes: int | None = None,
    absent: Tensor | None = None,
) -> dict[str, Any]:
    """A batch.

    Args:
        encoder: what its scores and boxes are called, where there are some.
        names: labels are less; by default as many as scores have classes, of DETR less one.
        absent: what has a score of -inf.
    """
    config, random = model.config, MadeUp.of(model)
    boxes = random.boxes(len(counts), queries)
    classes = classes or classes_of(model)
    layers = getattr(config, "decoder_layers", 2) if config.auxiliary_loss else 1
    made = random.layers(boxes.repeat(1, groups, 1), layers + bool(encoder), classes)
    if absent is not None:
        made[0].masked_fill_(absent, -torch.inf)
    of_layers = zip(("outputs_class", "outputs_coord"), made, strict=True)
    return {
        "labels": random.labels(boxes, counts, names or min(classes, config.num_labels)),
        **{each: random.output(values[:layers]) for each, values in of_layers},
        **{
            each: random.output(values[layers]) for each, values in zip(encoder, made, strict=False)
        },
        "layers": 0,
    }


def cases(model: Any) -> Iterator[Case]:
    """In training and in evaluation the criterion is one."""
    queries = queries_of(model.config)
    return cases_of(
        lambda counts: made_up(model, counts, queries), (queries + 3, 1), "in training, "
    )
