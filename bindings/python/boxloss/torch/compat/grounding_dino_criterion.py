# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The criterion of Grounding DINO and MM Grounding DINO as transformers has it: DETR's, over text.

Scores are of the prompt's tokens, and a class is those that its name has in the prompt: a row of
its image's label map, of 0 and 1. Nothing here waits for the device.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from .detr_criterion import Losses, Matched, all_layers, count_found, criterion
from .pair_scores import pair_losses
from .targets import FixedTargets, Targets, collate_targets


def grounding_dino_loss(
    logits: Tensor,
    labels: Targets | FixedTargets,
    device: torch.device,
    pred_boxes: Tensor,
    config: Any,
    label_maps: Sequence[Tensor],
    text_mask: Tensor,
    outputs_class: Any = None,
    outputs_coord: Any = None,
    encoder_logits: Any = None,
    encoder_pred_boxes: Any = None,
) -> Losses:
    """model.loss_function = grounding_dino_loss; gives what GroundingDinoForObjectDetectionLoss
    gives."""
    if isinstance(labels, FixedTargets):
        raise ValueError("labels is FixedTargets; here it must be a dictionary for each image")
    encoder = (encoder_logits, encoder_pred_boxes) if config.two_stage else None
    layers, auxiliary = all_layers(
        logits, pred_boxes, outputs_class, outputs_coord, config, encoder
    )
    for each in auxiliary or ():
        each |= {"label_maps": label_maps, "text_mask": text_mask}
    # Of every image but the first, the original reads the target tokens behind as many rows as the
    # image has classes: the right ones where all prompts are alike.
    classes = [len(each) for each in label_maps]
    skipped = [0, *classes[1:]]
    total = sum(classes)
    allowed = [min(own, total - rows) for own, rows in zip(classes, skipped, strict=True)]
    truth = collate_targets(labels, "class_labels", allowed, has_sizes=True)
    of_images = truth.labels.split(truth.counts)
    rows = [each + behind for each, behind in zip(of_images, skipped, strict=True)]
    tokens = torch.cat(tuple(label_maps))[torch.cat(rows)] != 0
    tokens = functional.pad(tokens, (0, 0, 0, 1))  # of what is no pair, -1

    def focal(matched: Matched) -> tuple[Tensor, Tensor]:
        """With a gamma of 2, of all tokens: those of a pair's class are to be 1."""
        # At least float32, whatever autocast made of the scores.
        scores = matched.scores.to(matched.iou.dtype).masked_fill(~text_mask, -torch.inf)
        pred_index, target_index, _ = matched.pairs
        logits = scores.flatten(0, 2)[pred_index.clamp(min=0)]
        is_wanted = tokens[target_index] & (logits != -torch.inf)
        logits = torch.where(is_wanted, logits, 0).flatten(1)
        alpha = config.focal_alpha
        of_wanted, of_others = (alpha, 1 - alpha) if alpha >= 0 else (1.0, 1.0)
        weight = of_wanted * (1 - logits.sigmoid()).square()
        wanted = torch.ones_like(logits)
        loss = pair_losses(scores, logits, wanted, weight, is_wanted.flatten(1), of_others)
        return loss / matched.number, count_found(matched.scores)

    maps = [each[of] for each, of in zip(label_maps, of_images, strict=True)]
    of_class = {"class_cost": class_cost(layers.scores, maps)}
    losses = criterion(layers, truth, config, of_class, focal, class_coefficient=2.0)
    return *losses, auxiliary


@torch.no_grad()
def class_cost(scores: Tensor, maps: list[Tensor]) -> Tensor:
    """(layers, queries, boxes): the mean over a class' tokens of Deformable DETR's focal cost.

    Args:
        scores: (layers, images, queries, tokens). maps: of each image, (boxes, tokens).
    """
    p = scores.to(torch.promote_types(scores.dtype, torch.float32)).sigmoid()
    miss = 1 - p
    cost = (miss + 1e-8).log_().mul_(p.square()).mul_(0.75)
    cost.addcmul_((p + 1e-8).log_(), miss.square_(), value=-0.25)
    with torch.autocast(cost.device.type, enabled=False):  # of a product it would make a half
        costs = [
            of_image @ (each / each.sum(-1, keepdim=True)).to(cost.dtype).mT
            for of_image, each in zip(cost.unbind(1), maps, strict=True)
        ]
    return torch.cat(costs, -1)
