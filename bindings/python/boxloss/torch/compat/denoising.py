# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Denoising queries of transformers' models."""

from typing import Any

import torch
from torch import Tensor

from .faults import GroundTruth


def denoising_pairs(noise: dict[str, Any], truth: GroundTruth, layers: int) -> Tensor:
    """For get_cdn_matched_indices: (layers, images, queries), rows of the ground truth, or -1.

    Each group of denoising queries has all boxes again, as get_contrastive_denoising_training_group
    lays them out: as many for each image, the boxes, then the same as negative ones.
    """
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
    row = torch.arange(queries, device=first.device) % (2 * most) + first
    target = row.masked_fill_(row >= torch.minimum(end, first + most), -1)
    return target.expand(layers, -1, -1).contiguous()
