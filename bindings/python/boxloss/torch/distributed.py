# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Losses of several ranks divided by one number."""

import torch
from torch import Tensor
from torch import distributed as dist


@torch.no_grad()
def global_normalizer(count: Tensor | int, group: dist.ProcessGroup | None = None) -> Tensor:
    """max(sum of count over the ranks, 1) / world size, for giou_loss(..., normalizer=...).

    DistributedDataParallel averages gradients over the ranks. With this divisor on each rank that
    average is the gradient of one loss: all ranks' sum / all ranks' number of boxes.

    Args:
        count: this rank's number of counted pairs; a tensor without dimensions on the device that
            the group communicates through, or an int, which stays on the CPU.
        group: the process group; the default one when not given. Without an initialised group
            there is one rank.

    Returns:
        A float32 tensor without dimensions and without gradient, on count's device. No
        synchronisation with the host.

    Raises:
        ValueError: count has a dimension.
    """
    total = torch.as_tensor(count).to(torch.float64, copy=True)
    if total.dim():
        raise ValueError(f"count has shape {tuple(total.shape)}; it must have no dimension")
    ranks = 1
    if dist.is_available() and dist.is_initialized():
        dist.all_reduce(total, group=group)
        ranks = dist.get_world_size(group)
    return (total.clamp_min(1) / ranks).to(torch.float32)
