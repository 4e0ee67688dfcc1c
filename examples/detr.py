# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""transformers' DETR, trained with its own criterion and with boxloss in its place, in two ways.

    python -m examples.detr

`criterion` does all that has to do with boxes for all decoder layers at once, and nothing in it
waits for the device: pairs, class targets and the number of boxes stay there. `adapted` leaves
transformers' criterion as it is, layer by layer, and gives it a matcher and a loss_boxes from
boxloss.torch.compat. The model is small and random. Needs transformers, Pillow.
"""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import torch
from boxloss.torch import (
    box_losses,
    collate_ragged,
    global_normalizer,
    hungarian_match,
    matching_cost,
)
from boxloss.torch.compat import HungarianMatcher, detr_loss_boxes
from torch import Tensor
from torch.nn import functional
from transformers import DetrConfig, DetrForObjectDetection, ResNetConfig
from transformers.loss import loss_for_object_detection as originals

from examples import training
from examples.training import STEPS, Run

Targets = list[dict[str, Tensor]]
Losses = tuple[Tensor, dict[str, Tensor], list[dict[str, Tensor]] | None]


def criterion(
    logits: Tensor,
    labels: Targets,
    device: torch.device,
    pred_boxes: Tensor,
    config: DetrConfig,
    outputs_class: Tensor | None = None,
    outputs_coord: Tensor | None = None,
    **ignored: Any,
) -> Losses:
    """model.loss_function = criterion; gives what ForObjectDetectionLoss gives."""
    scores, boxes, auxiliary = logits[None], pred_boxes[None], None
    if config.auxiliary_loss:
        scores = torch.cat([outputs_class[:-1], scores])
        boxes = torch.cat([outputs_coord[:-1], boxes])
        layers = zip(scores[:-1], boxes[:-1], strict=True)
        auxiliary = [{"logits": each, "pred_boxes": its} for each, its in layers]
    true_boxes, offsets = collate_ragged([each["boxes"] for each in labels])
    classes = torch.cat([each["class_labels"] for each in labels])
    # Averaged over ranks, as DETR has it. (transformers 5.23 divides by their number twice.)
    number = global_normalizer(offsets[-1]).clamp(min=1)

    # For the matcher and loss_boxes.
    cost = matching_cost(
        boxes,
        true_boxes,
        offsets,
        logits=scores,
        labels=classes,
        iou_weight=config.giou_cost,
        l1_weight=config.bbox_cost,
        class_weight=config.class_cost,
    )
    pred_index, target_index, target_of_query = hungarian_match(cost, offsets)
    giou, l1, _ = box_losses(
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

    # The class loss and a figure for the log, in plain torch: who has no box, -1, is "no object".
    # At least in float32, as l1 is, whatever autocast made of the scores.
    wanted = functional.pad(classes, (0, 1), value=config.num_labels)[target_of_query]
    weight = torch.ones(config.num_labels + 1, dtype=l1.dtype, device=device)
    weight[-1].fill_(config.eos_coefficient)  # assigned, it would be waited for
    entropy = functional.cross_entropy(
        scores.flatten(0, 2).to(l1.dtype), wanted.flatten(), weight, reduction="none"
    )
    loss_ce = entropy.view(len(scores), -1).sum(1) / weight[wanted].flatten(1).sum(1)
    found = (scores.argmax(-1) != config.num_labels).sum(-1)
    cardinality_error = (found - offsets.diff()).abs().float().mean(1)

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
    return total.sum(), named, auxiliary


def adapted(*arguments: Any, **options: Any) -> Losses:
    """ForObjectDetectionLoss as it stands there, but for its matcher and its loss_boxes."""
    with (
        patch.object(originals, "HungarianMatcher", HungarianMatcher),
        patch.object(originals.ImageLoss, "loss_boxes", staticmethod(detr_loss_boxes)),
    ):
        return originals.ForObjectDetectionLoss(*arguments, **options)


# --- Training ---


def small_model() -> DetrForObjectDetection:
    backbone = ResNetConfig(
        embedding_size=8,
        hidden_sizes=[8, 16],
        depths=[1, 1],
        layer_type="basic",
        out_features=["stage2"],
    )
    config = DetrConfig(
        backbone_config=backbone,
        d_model=16,
        encoder_layers=1,
        encoder_ffn_dim=16,
        encoder_attention_heads=2,
        decoder_layers=3,
        decoder_ffn_dim=16,
        decoder_attention_heads=2,
        num_queries=20,
        auxiliary_loss=True,
        num_labels=5,
    )
    model = DetrForObjectDetection(config)
    training.add_noise(model)
    return model


def train(
    loss_function: Callable[..., Losses] | None = None, seed: int = 0, steps: int = STEPS
) -> Run:
    """None keeps the model's own criterion."""
    return training.train_transformers(small_model, loss_function, seed, steps)


if __name__ == "__main__":
    training.show("The loss", train(), boxloss=train(criterion), adapted=train(adapted))
