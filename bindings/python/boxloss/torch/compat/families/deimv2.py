# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""DEIMv2 as transformers has it: D-FINE's criterion, with two differences.

Scores have a matching-aware loss (MAL; DEIM, Huang et al. 2025, 3.3). Boxes and distributions of
all layers have the same pairs: each query's ground-truth box is that which most layers match it
with (dense one-to-one). Where there are several such boxes, it is the first; the original sorts by
the number of layers in a way that does not say which.
"""

import sys
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from ..criterion import Learned, of_scores
from ..denoising import fix_denoising
from ..faults import GroundTruth
from ..transformers_batches import denoising_cases
from ..transformers_models import Given, Losses, criterion, family, losses_of
from . import d_fine
from .rt_detr import Kind


@criterion("outputs_class", "outputs_coord")
def deimv2_loss(given: Given) -> Losses:
    """model.loss_function = deimv2_loss; gives what Deimv2ForObjectDetectionLoss gives."""
    config = given["config"]
    kind = Kind(
        class_loss=matching_aware,
        pairs_of_boxes=pairs_of_most_layers if config.use_dense_one_to_one else None,
        keeps_noise=False,
    )
    if not config.auxiliary_loss:  # the main loss has the denoising queries in it
        given = given | {"denoising_meta_values": None}
    return d_fine.losses_of(given, kind)


def matching_aware(learned: Learned, config: Any) -> dict[str, Tensor]:
    """For loss_labels_mal."""
    options = {"alpha": config.mal_alpha, "gamma": config.focal_loss_gamma}
    return {"loss_mal": of_scores(learned, "mal", **options)}


def pairs_of_most_layers(target_of_query: Tensor, truth: GroundTruth) -> tuple[Tensor, Tensor]:
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
    return target.expand_as(target_of_query), number


class StableTorch:
    """torch for the original, which leaves to a sort which of equals comes first."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    def argsort(self, *given: Any, **options: Any) -> Tensor:
        return torch.argsort(*given, **options, stable=True)


def losses(model: Any, **made: Any) -> Any:
    with patch.object(sys.modules["transformers.loss.loss_deimv2"], "torch", StableTorch()):
        return losses_of(model, **made)


CASES = partial(denoising_cases, has_corners=True)
FAMILY = family(deimv2_loss, CASES, losses, fix_denoising)
