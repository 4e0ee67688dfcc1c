# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The criterion of DEIMv2 as transformers has it: D-FINE's, with two differences.

Scores have a matching-aware loss (MAL; DEIM, Huang et al. 2025, 3.3). Boxes and distributions of
all layers have the same pairs: each query's ground-truth box is that which most layers match it
with (dense one-to-one). Where there are several such boxes, it is the first; the original sorts by
the number of layers in a way that does not say which.
"""

from typing import Any

import torch
from torch import Tensor

from ..class_loss import class_loss
from .d_fine_criterion import d_fine_loss
from .rt_detr_criterion import Kind, Losses, Pairs
from .targets import FixedTargets, GroundTruth, Targets


def deimv2_loss(
    logits: Tensor,
    labels: Targets | FixedTargets,
    device: torch.device,
    pred_boxes: Tensor,
    config: Any,
    outputs_class: Any = None,
    outputs_coord: Any = None,
    denoising_meta_values: dict[str, Any] | None = None,
    **more_outputs: Any,
) -> Losses:
    """model.loss_function = deimv2_loss; gives what Deimv2ForObjectDetectionLoss gives."""
    kind = Kind(
        class_loss=matching_aware,
        shared_pairs=pairs_of_most_layers if config.use_dense_one_to_one else None,
        keeps_noise=False,
    )
    # Without losses of layers the main loss has the denoising queries in it.
    noise = denoising_meta_values if config.auxiliary_loss else None
    return d_fine_loss(
        logits,
        labels,
        device,
        pred_boxes,
        config,
        outputs_class,
        outputs_coord,
        denoising_meta_values=noise,
        kind=kind,
        **more_outputs,
    )


def matching_aware(
    scores: Tensor, truth: GroundTruth, pairs: Pairs, iou: Tensor, config: Any
) -> tuple[str, Tensor]:
    """For loss_labels_mal."""
    loss = class_loss(
        scores,
        pairs.target_of_query,
        truth.labels,
        mode="mal",
        query_quality=iou,
        alpha=config.mal_alpha,
        gamma=config.focal_loss_gamma,
        normalizer=pairs.number,
    )
    return "loss_mal", loss


def pairs_of_most_layers(target_of_query: Tensor, truth: GroundTruth) -> Pairs:
    """For _get_dense_o2o_indices: the same for all layers.

    Args:
        target_of_query: (layers, images, queries), -1 for none.
    """
    votes = (target_of_query[:, None] == target_of_query).sum(0)
    # More layers come first, then the box that comes first; no box is last.
    rank = votes * (len(truth.boxes) + 1) - target_of_query
    rank = torch.where(target_of_query >= 0, rank, 0)
    target = target_of_query.gather(0, rank.argmax(0, keepdim=True))
    number = (target >= 0).sum().clamp(min=truth.one)
    return Pairs(target.expand_as(target_of_query), number)
