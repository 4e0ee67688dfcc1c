# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""transformers' DETR, trained with its own criterion and with boxloss in its place, in two ways.

    python -m examples.detr

`use_boxloss` does all that has to do with boxes for all decoder layers at once, by
boxloss/torch/compat/families/detr.py. `adapt` leaves transformers' criterion as it is, layer by
layer, and gives it a matcher and a loss_boxes. The model is small and random. Needs transformers,
Pillow.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from unittest.mock import patch

import torch
from boxloss.torch import box_losses, collate_matches
from boxloss.torch.compat import HungarianMatcher, use_boxloss
from torch import Tensor
from transformers import DetrConfig, DetrForObjectDetection, ResNetConfig
from transformers.loss import loss_for_object_detection as originals

from examples import training
from examples.training import STEPS, Replace, Run, keep


def adapt(model: DetrForObjectDetection) -> None:
    model.loss_function = adapted


def adapted(*arguments: Any, **options: Any) -> Any:
    """ForObjectDetectionLoss as it stands there, but for its matcher and its loss_boxes."""
    with (
        patch.object(originals, "HungarianMatcher", HungarianMatcher),
        patch.object(originals.ImageLoss, "loss_boxes", staticmethod(loss_boxes)),
    ):
        return originals.ForObjectDetectionLoss(*arguments, **options)


def loss_boxes(
    outputs: Mapping[str, Tensor],
    targets: Sequence[Mapping[str, Tensor]],
    indices: list[tuple[Tensor, Tensor]],
    num_boxes: Any,
) -> dict[str, Tensor]:
    pred, boxes = outputs["pred_boxes"], [each["boxes"] for each in targets]
    pairs = collate_matches(indices, [*map(len, boxes)], pred.shape[1], device=pred.device)
    giou, l1, _ = box_losses(
        pred,
        torch.cat(boxes),
        "giou",
        eps=0.0,
        pred_format="cxcywh",
        target_format="cxcywh",
        pred_index=pairs[0],
        target_index=pairs[1],
        normalizer=num_boxes,
    )
    return {"loss_bbox": l1, "loss_giou": giou}


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


def train(replace: Replace = keep, seed: int = 0, steps: int = STEPS) -> Run:
    return training.train_transformers(small_model, replace, seed, steps)


if __name__ == "__main__":
    training.show("The loss", train(), boxloss=train(use_boxloss), adapted=train(adapt))
