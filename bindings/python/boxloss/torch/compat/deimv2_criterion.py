# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The criterion of DEIMv2 as transformers has it: D-FINE's, with two differences.

Scores have a matching-aware loss (MAL; DEIM, Huang et al. 2025, 3.3). Boxes and distributions of
all layers have the same pairs: each query's true box is that which most layers match it with
(dense one-to-one). Where there are several such boxes, it is the first; the original sorts by
the number of layers in a way that does not say which.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from .d_fine_criterion import d_fine_loss
from .rt_detr_criterion import Kind, Losses, Pairs, entropy
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
    gamma = config.focal_loss_gamma
    others = 1.0 if config.mal_alpha is None else config.mal_alpha, gamma
    loss = entropy(
        scores, truth, pairs, wanted=iou**gamma, weight=torch.ones_like(iou), others=others
    )
    return "loss_mal", config.weight_loss_mal * loss


def pairs_of_most_layers(target_of_query: Tensor, truth: GroundTruth) -> Pairs:
    """For _get_dense_o2o_indices: (layers, pairs), the same for all layers.

    Args:
        target_of_query: (layers, images, queries), -1 for none.
    """
    layers, boxes = len(target_of_query), len(truth.boxes)
    found = target_of_query.flatten(1)
    votes = (found[:, None] == found).sum(0)
    # More layers come first, then the box that comes first; no box is last.
    rank = torch.where(found >= 0, votes * (boxes + 1) - found, 0)
    target = found.gather(0, rank.argmax(0, keepdim=True))[0]

    # The queries that have one, first; of these there are at most as many as pairs of all layers.
    # Their number would have to be waited for.
    is_pair, most = target >= 0, min(len(target), layers * boxes)
    place = torch.where(is_pair, is_pair.cumsum(0) - 1, most)  # a last one for all others
    queries = torch.arange(len(target), device=target.device)
    query = target.new_full((most + 1,), -1).scatter_(0, place, queries)[:most]
    first = torch.arange(layers, device=target.device)[:, None] * len(target)
    return Pairs(
        torch.where(query >= 0, first + query, -1),
        functional.pad(target, (0, 1), value=-1)[query].expand(layers, -1),
        truth.checked(is_pair.sum().clamp(min=1)),
    )
