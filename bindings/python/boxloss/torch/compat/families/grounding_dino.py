# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Grounding DINO and MM Grounding DINO as transformers has them: DETR's criterion, over text.

Scores are of the prompt's tokens, and a class is those that its name has in the prompt: a row of
its image's label map, of 0 and 1. Nothing here waits for the device.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ..criterion import Layers, Learned, pair_losses
from ..faults import GroundTruth
from ..made_up import MadeUp, cases_of
from ..proof import Case
from ..targets import FixedTargets
from ..transformers_batches import made_up, queries_of
from ..transformers_models import Given, Losses, criterion, family
from .detr import losses_of


@criterion("label_maps", "text_mask")
def grounding_dino_loss(given: Given) -> Losses:
    """model.loss_function = grounding_dino_loss; gives what GroundingDinoForObjectDetectionLoss
    gives."""
    labels, config, label_maps = given["labels"], given["config"], given["label_maps"]
    if isinstance(labels, FixedTargets):
        raise ValueError("labels is FixedTargets; here it must be a dictionary for each image")
    # Of every image but the first, the original reads the target tokens behind as many rows as the
    # image has classes: the right ones where all prompts are alike.
    classes = [len(each) for each in label_maps]
    skipped = [0, *classes[1:]]
    rows_of_all = sum(classes)
    allowed = [min(own, rows_of_all - rows) for own, rows in zip(classes, skipped, strict=True)]

    def cost(layers: Layers, truth: GroundTruth) -> Tensor:
        maps = [each[of] for each, of in zip(label_maps, rows_of(truth), strict=True)]
        return class_cost(layers.scores, maps)

    def focal(learned: Learned) -> Tensor:
        """With a gamma of 2, of all tokens: those of a pair's class are to be 1."""
        assert learned.matched is not None
        pred_index, target_index, _ = learned.matched
        rows = [each + behind for each, behind in zip(rows_of(learned.truth), skipped, strict=True)]
        tokens = torch.cat(tuple(label_maps))[torch.cat(rows)] != 0
        tokens = functional.pad(tokens, (0, 0, 0, 1))  # of what is no pair, -1
        # At least float32, whatever autocast made of the scores.
        wide = learned.layers.scores.to(learned.pairs.iou.dtype)
        scores = wide.masked_fill(~given["text_mask"], -torch.inf)
        logits = scores.flatten(0, 2)[pred_index.clamp(min=0)]
        is_wanted = tokens[target_index] & (logits != -torch.inf)
        logits = torch.where(is_wanted, logits, 0)
        alpha = config.focal_alpha
        of_wanted, of_others = (alpha, 1 - alpha) if alpha >= 0 else (1.0, 1.0)
        weight = of_wanted * (1 - logits.sigmoid()).square()
        wanted = torch.ones_like(logits)
        loss = pair_losses(scores, logits, wanted, weight, is_wanted, of_others)
        return loss / learned.pairs.number

    encoder = (given["encoder_logits"], given["encoder_pred_boxes"]) if config.two_stage else None
    options: Any = {"encoder": encoder, "class_coefficient": 2.0, "class_cost": cost}
    total, named, auxiliary = losses_of(given, allowed, focal, **options)
    for each in auxiliary or ():
        each |= {"label_maps": label_maps, "text_mask": given["text_mask"]}
    return total, named, auxiliary


def rows_of(truth: GroundTruth) -> tuple[Tensor, ...]:
    """Of each image: of its label map, by box."""
    return truth.labels.split(truth.counts)


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


def cases(model: Any) -> Iterator[Case]:
    config, device = model.config, MadeUp.of(model).device
    queries, tokens = queries_of(config), config.max_text_len
    encoder = ("encoder_logits", "encoder_pred_boxes") if config.two_stage else ()

    def make(counts: tuple[int, ...]) -> dict[str, Any]:
        text = text_of(device, len(counts), queries, tokens)
        made = made_up(model, counts, queries, encoder=encoder, classes=tokens)
        with torch.no_grad():
            for scores in (made["outputs_class"], *(made[name] for name in encoder[:1])):
                scores.masked_fill_(~text["text_mask"], -torch.inf)
        for each in made["labels"]:
            each["class_labels"] %= len(text["label_maps"][0])
        return made | text

    return cases_of(make, (queries + 3, 1), "in training, ")


def text_of(device: torch.device, images: int, queries: int, tokens: int) -> dict[str, Any]:
    """Prompts of four classes of one or two tokens, in another order for each image."""
    maps = torch.zeros(4, tokens, dtype=torch.int64)
    for row, place in ((0, 1), (1, 3), (1, 4), (2, 6), (3, 8), (3, 9)):
        maps[row, place] = 1
    mask = torch.arange(tokens) < 12 - torch.arange(images)[:, None]
    return {
        "label_maps": tuple(maps.roll(image, 0).to(device) for image in range(images)),
        "text_mask": mask[:, None].repeat(1, queries, 1).to(device),
    }


FAMILY = family(grounding_dino_loss, cases, fix=None)
