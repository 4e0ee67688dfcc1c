# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The criterion of RT-DETR and RT-DETRv2 as transformers has it, for all decoder layers at once.

The matcher, L1 and GIoU, and the IoU that the scores are trained towards: the original does them
layer by layer, with all boxes by all boxes. Nothing here waits for the device.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..class_loss import class_loss
from ..hungarian_match import hungarian_match
from ..matching_cost import matching_cost
from ..set_criterion import losses_of_pairs
from .constants import apart, weighted
from .targets import FixedTargets, GroundTruth, Targets, check_classes, collate_targets
from .versions import is_before

Losses = tuple[Tensor, dict[str, Tensor], list[dict[str, Tensor]] | None]
# Layers of as many queries: the suffixes of their losses' names, their scores and boxes.
Group = tuple[list[str], Tensor, Tensor]


class Pairs(NamedTuple):
    """Of each layer, and what their losses are divided by.

    Attributes:
        target_of_query: (layers, images, queries): each query's row of the ground truth, or -1.
    """

    target_of_query: Tensor
    number: Tensor


# By scores, the ground truth, pairs and each query's IoU, and the config: its name, and it, of each
# layer. Losses here are without their weight, config.weight_{name}.
ClassLoss = Callable[[Tensor, GroundTruth, Pairs, Tensor, Any], tuple[str, Tensor]]
# By each query's IoU, pairs, the ground truth, and whether the queries are those for denoising:
# losses of the first layers.
MoreLosses = Callable[[Tensor, Pairs, GroundTruth, bool], dict[str, Tensor]]
# By each query's row of the ground truth, and this: pairs for losses of boxes, where these are not
# the pairs of scores.
SharedPairs = Callable[[Tensor, GroundTruth], Pairs]

# Until 5.18 the main loss had the denoising queries in it (transformers#48528).
MAIN_LOSS_KEEPS_NOISE = is_before("transformers", 5, 18)


def varifocal(
    scores: Tensor, truth: GroundTruth, pairs: Pairs, iou: Tensor, config: Any
) -> tuple[str, Tensor]:
    """For loss_labels_vfl: a pair's score is to be its IoU, all others are to be 0."""
    loss = class_loss(
        scores,
        pairs.target_of_query,
        truth.labels,
        mode="varifocal",
        query_quality=iou,
        alpha=config.focal_loss_alpha,
        gamma=config.focal_loss_gamma,
        normalizer=pairs.number,
    )
    return "loss_vfl", loss


@dataclass(frozen=True)  # torch 2.11, at a break of a graph, empties what NamedTuple._replace gave
class Kind:
    """What one of the kin has of its own."""

    class_loss: ClassLoss = varifocal
    more_losses: MoreLosses = lambda *of_pairs: {}
    shared_pairs: SharedPairs | None = None
    keeps_noise: bool = MAIN_LOSS_KEEPS_NOISE
    layers: int | None = None  # of the outputs, if these have one more: see `layers_of`


RT_DETR = Kind()


def rt_detr_loss(
    logits: Tensor,
    labels: Targets | FixedTargets,
    device: torch.device,
    pred_boxes: Tensor,
    config: Any,
    outputs_class: Any = None,
    outputs_coord: Any = None,
    enc_topk_logits: Any = None,
    enc_topk_bboxes: Any = None,
    denoising_meta_values: dict[str, Any] | None = None,
    kind: Kind = RT_DETR,
    **ignored: Any,
) -> Losses:
    """model.loss_function = rt_detr_loss; gives what RTDetrForObjectDetectionLoss gives."""
    # Layers first. Layers of as many queries are one group: the decoder's, and the encoder's
    # queries as one layer more; then the denoising queries, whose pairs are known.
    noise = denoising_meta_values
    is_layered = config.auxiliary_loss and outputs_class is not None
    keeps_noise = noise is not None and kind.keeps_noise
    groups: list[Group] = []
    if keeps_noise or not is_layered:
        own = logits[None], pred_boxes[None]
        if noise is not None and not keeps_noise:
            own = tuple(each.split(noise["dn_num_split"], dim=2)[1] for each in own)
        groups.append(([""], *own))
    if is_layered:
        scores, boxes = outputs_class.transpose(0, 1), outputs_coord.transpose(0, 1)
        if noise is not None:
            noisy_scores, scores = scores.split(noise["dn_num_split"], dim=2)
            noisy_boxes, boxes = boxes.split(noise["dn_num_split"], dim=2)
        scores, boxes = (layers_of(each, kind.layers) for each in (scores, boxes))
        last = sum(map(len, boxes)) - 1
        names = [f"_aux_{layer}" for layer in range(last + 1)]
        if keeps_noise:
            scores, boxes = ([*each[:-1], each[-1][:-1]] for each in (scores, boxes))
        else:
            names.insert(last, "")
        scores = torch.cat([*scores, enc_topk_logits[None]])
        boxes = torch.cat([*boxes, enc_topk_bboxes[None]])
        groups.append((names, scores, boxes))

    check_classes(config, logits.shape[-1])
    truth = collate_targets(labels, "class_labels", config.num_labels, has_sizes=True)
    number = truth.divisor()  # of this rank alone, as there
    names_of_losses: list[str] = []
    summed: list[tuple[float, Tensor]] = []

    def add(group: Group, pairs: Pairs, of_boxes: Pairs, is_noisy: bool) -> None:
        names, scores, boxes = group
        losses, iou = box_losses_of(boxes, truth, of_boxes)
        own_iou = iou if of_boxes is pairs else iou_of(boxes, truth, pairs)
        name, values = kind.class_loss(scores, truth, pairs, own_iou, config)
        losses[name] = values
        if names != [""]:  # more losses are of layers, not of the outputs alone
            losses |= kind.more_losses(iou, of_boxes, truth, is_noisy)
        for name, values in losses.items():
            names_of_losses.extend(name + layer for layer in names[: len(values)])
            summed.append((getattr(config, f"weight_{name}"), values))

    for group in groups:
        pairs = of_boxes = Pairs(match(*group[1:], truth, config), number)
        if kind.shared_pairs is not None:
            of_boxes = kind.shared_pairs(pairs.target_of_query, truth)
        add(group, pairs, of_boxes, False)
    if is_layered and noise is not None:
        layers = kind.layers or len(noisy_boxes)
        noisy_scores, noisy_boxes = noisy_scores[:layers], noisy_boxes[:layers]
        names = [f"_dn_{layer}" for layer in range(layers)]
        pairs = denoising_pairs(noise, truth, number, layers)
        add((names, noisy_scores, noisy_boxes), pairs, pairs, True)

    auxiliary = None
    if is_layered:
        auxiliary = [
            {"logits": each, "pred_boxes": its}
            for name, each, its in zip(*groups[-1], strict=True)
            if name
        ]
    losses = weighted(summed)
    return losses.sum(), dict(zip(names_of_losses, apart(losses), strict=True)), auxiliary


def layers_of(outputs: Tensor, layers: int | None) -> list[Tensor]:
    """Parts of a model's outputs, layers first: all, or so many, of which the last is the last.

    D-FINE's outputs begin with a box before its first layer's corners. The original goes through
    all of them together, as far as there are corners; last come the model's own outputs.
    """
    if layers is None or len(outputs) == layers:
        return [outputs]
    first, _, last = outputs.split([layers - 1, len(outputs) - layers, 1])
    return [first, last]


def match(scores: Tensor, boxes: Tensor, truth: GroundTruth, config: Any) -> Tensor:
    """For RTDetrHungarianMatcher: (layers, images, queries)."""
    cost = matching_cost(
        boxes,
        truth.boxes,
        truth.offsets,
        logits=scores,
        labels=truth.labels,
        iou_weight=config.matcher_giou_cost,
        l1_weight=config.matcher_bbox_cost,
        class_weight=config.matcher_class_cost,
        class_mode="focal" if config.use_focal_loss else "softmax",
        focal_alpha=config.matcher_alpha,
        focal_gamma=config.matcher_gamma,
    )
    return hungarian_match(cost, truth.offsets).target_of_query


def box_losses_of(
    boxes: Tensor, truth: GroundTruth, pairs: Pairs
) -> tuple[dict[str, Tensor], Tensor]:
    """For loss_boxes: each (layers). And each query's IoU, 0 without a box."""
    giou, l1, iou = losses_of_pairs(boxes, truth.boxes, pairs.target_of_query, pairs.number)
    return {"loss_bbox": l1, "loss_giou": giou}, iou


def iou_of(boxes: Tensor, truth: GroundTruth, pairs: Pairs) -> Tensor:
    """(layers, images, queries)."""
    found = losses_of_pairs(boxes.detach(), truth.boxes, pairs.target_of_query, pairs.number, "iou")
    return found.iou


def denoising_pairs(
    noise: dict[str, Any], truth: GroundTruth, number: Tensor, layers: int
) -> Pairs:
    """For get_cdn_matched_indices: each group of denoising queries has all boxes again, as
    get_contrastive_denoising_training_group lays them out: as many for each image, the boxes, then
    the same as negative ones."""
    queries, _ = noise["dn_num_split"]
    groups = noise["dn_num_group"]
    if truth.counts:
        given = [len(each) for each in noise["dn_positive_idx"]]
        if given != [count * groups for count in truth.counts]:
            raise ValueError(
                f"dn_positive_idx has {given} queries with a box, in {groups} groups; labels have "
                f"{truth.counts} boxes"
            )
    most = queries // (2 * groups)  # of FixedTargets there may be more, which have no query
    first, end = truth.offsets[:-1, None], truth.offsets[1:, None]
    row = torch.arange(queries, device=number.device) % (2 * most) + first
    target = row.masked_fill_(row >= torch.minimum(end, first + most), -1)
    return Pairs(target.expand(layers, -1, -1).contiguous(), number * groups)
