# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The criterion of RT-DETR and RT-DETRv2 as transformers has it, for all decoder layers at once.

The matcher, L1 and GIoU, and the IoU that the scores are trained towards: the original does them
layer by layer, with all boxes by all boxes. Nothing here waits for the device.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ..collate import collate_ragged
from ..hungarian import hungarian_match
from ..losses import box_losses
from ..matching import matching_cost

Targets = list[dict[str, Tensor]]
Losses = tuple[Tensor, dict[str, Tensor], list[dict[str, Tensor]] | None]
# By the IoU of pairs, their two indices, the number of boxes, and whether the queries are those for
# denoising: losses of the first layers.
MoreLosses = Callable[[Tensor, Tensor, Tensor, Tensor, bool], dict[str, Tensor]]


def rt_detr_loss(
    logits: Tensor,
    labels: Targets,
    device: torch.device,
    pred_boxes: Tensor,
    config: Any,
    outputs_class: Any = None,
    outputs_coord: Any = None,
    enc_topk_logits: Any = None,
    enc_topk_bboxes: Any = None,
    denoising_meta_values: dict[str, Any] | None = None,
    more_losses: MoreLosses = lambda *of_pairs: {},
    **ignored: Any,
) -> Losses:
    """model.loss_function = rt_detr_loss; gives what RTDetrForObjectDetectionLoss gives."""
    # Layers first; denoising queries apart; the encoder's queries as one layer more.
    scores, boxes, names = logits[None], pred_boxes[None], [""]
    if config.auxiliary_loss:
        scores, boxes = outputs_class.transpose(0, 1), outputs_coord.transpose(0, 1)
    if denoising_meta_values is not None:
        split = denoising_meta_values["dn_num_split"]
        noisy_scores, scores = scores.split(split, dim=2)
        noisy_boxes, boxes = boxes.split(split, dim=2)
    if config.auxiliary_loss:
        names = [*(f"_aux_{layer}" for layer in range(len(boxes) - 1)), ""]
        names.append(f"_aux_{len(boxes) - 1}")
        scores = torch.cat([scores, enc_topk_logits[None]])
        boxes = torch.cat([boxes, enc_topk_bboxes[None]])

    true_boxes, offsets = collate_ragged([each["boxes"] for each in labels])
    classes = torch.cat([each["class_labels"] for each in labels])
    number = offsets[-1].clamp(min=1)  # of this rank alone, as there

    pairs = match(scores, boxes, true_boxes, offsets, classes, config)
    losses, iou = losses_of_pairs(scores, boxes, true_boxes, classes, *pairs, number, config)
    losses |= more_losses(iou, *pairs, number, False)
    named = with_names(losses, names)
    total: Any = sum(each.sum() for each in losses.values())
    if config.auxiliary_loss and denoising_meta_values is not None:
        pairs = denoising_pairs(denoising_meta_values, labels, layers=len(noisy_boxes))
        number = number * denoising_meta_values["dn_num_group"]
        losses, iou = losses_of_pairs(
            noisy_scores, noisy_boxes, true_boxes, classes, *pairs, number, config
        )
        losses |= more_losses(iou, *pairs, number, True)
        named |= with_names(losses, [f"_dn_{layer}" for layer in range(len(noisy_boxes))])
        total = total + sum(each.sum() for each in losses.values())

    layers = zip(names, scores, boxes, strict=True)
    auxiliary = [{"logits": each, "pred_boxes": its} for name, each, its in layers if name]
    return total, named, auxiliary if config.auxiliary_loss else None


def match(
    scores: Tensor,
    boxes: Tensor,
    true_boxes: Tensor,
    offsets: Tensor,
    classes: Tensor,
    config: Any,
) -> tuple[Tensor, Tensor]:
    """For RTDetrHungarianMatcher."""
    cost = matching_cost(
        boxes,
        true_boxes,
        offsets,
        logits=scores,
        labels=classes,
        iou_weight=config.matcher_giou_cost,
        l1_weight=config.matcher_bbox_cost,
        class_weight=config.matcher_class_cost,
        class_mode="focal" if config.use_focal_loss else "softmax",
        focal_alpha=config.matcher_alpha,
        focal_gamma=config.matcher_gamma,
    )
    pred_index, target_index, _ = hungarian_match(cost, offsets)
    return pred_index, target_index


def losses_of_pairs(
    scores: Tensor,
    boxes: Tensor,
    true_boxes: Tensor,
    classes: Tensor,
    pred_index: Tensor,
    target_index: Tensor,
    number: Tensor,
    config: Any,
) -> tuple[dict[str, Tensor], Tensor]:
    """For loss_boxes and loss_labels_vfl: each (layers). And the IoU of pairs."""
    giou, l1, iou = box_losses(
        boxes,
        true_boxes,
        "giou",
        eps=0.0,
        pred_format="cxcywh",
        target_format="cxcywh",
        pred_index=pred_index,
        target_index=target_index,
        normalizer=number,
    )
    # The varifocal loss, in plain torch: a pair's score is to be its IoU, all others are to be 0.
    # At least in float32, as iou is, whatever autocast made of the scores. What is no pair, -1, is
    # written to a last row that nobody reads.
    flat = scores.flatten(0, 2).to(iou.dtype)
    place = pred_index.flatten(), functional.pad(classes, (0, 1))[target_index.flatten()]
    weight = config.focal_loss_alpha * flat.detach().sigmoid().pow(config.focal_loss_gamma)
    weight = functional.pad(weight, (0, 0, 0, 1))
    wanted = torch.zeros_like(weight)
    wanted[place] = weight[place] = iou.flatten()
    vfl = functional.binary_cross_entropy_with_logits(
        flat, wanted[:-1], weight[:-1], reduction="none"
    )
    losses = {
        "loss_vfl": config.weight_loss_vfl * vfl.view(len(scores), -1).sum(1) / number,
        "loss_bbox": config.weight_loss_bbox * l1,
        "loss_giou": config.weight_loss_giou * giou,
    }
    return losses, iou


def denoising_pairs(
    denoising: dict[str, Any], labels: Targets, layers: int
) -> tuple[Tensor, Tensor]:
    """For get_cdn_matched_indices: each group of denoising queries has all true boxes again."""
    queries, _ = denoising["dn_num_split"]
    src = [each + b * queries for b, each in enumerate(denoising["dn_positive_idx"])]
    pred_index = torch.cat(src)
    rows = torch.arange(sum(len(each["boxes"]) for each in labels), device=pred_index.device)
    tgt = rows.split([len(each["boxes"]) for each in labels])
    target_index = torch.cat([each.tile(denoising["dn_num_group"]) for each in tgt])
    first = torch.arange(layers, device=pred_index.device)[:, None] * (len(labels) * queries)
    return first + pred_index, target_index.expand(layers, -1)


def with_names(losses: dict[str, Tensor], names: list[str]) -> dict[str, Tensor]:
    return {
        loss + name: value
        for loss, values in losses.items()
        for name, value in zip(names, values, strict=False)  # more_losses may have fewer layers
    }
