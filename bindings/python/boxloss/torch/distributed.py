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
        count: this rank's number of valid pairs; a tensor without dimensions on the device that
            the group communicates through, or an int, which stays on the CPU.
        group: the process group; the default one when not given. Without an initialized group
            there is one rank.

    Returns:
        A float32 tensor without dimensions and without gradient, on count's device. No
        synchronization with the host. Exact where the world size is a power of two and the sum less
        than 2^24; else within (world size + 2) * 2^-24 of it, relatively, as the average of the
        gradients is.

    Raises:
        ValueError: count has a dimension; this rank is not in the group. TypeError: count is no
            number.
    """
    if not isinstance(count, Tensor):
        if not hasattr(count, "__float__"):
            given = type(count).__name__
            raise TypeError(f"count is {given}; it must be an integer or a tensor")
        count = torch.tensor(count, device="cpu")
    if count.dim():
        raise ValueError(f"count has shape {tuple(count.shape)}; it must have no dimension")
    is_shared = dist.is_available() and dist.is_initialized()
    ranks = dist.get_world_size(group) if is_shared else 1
    if ranks < 1:
        raise ValueError(
            f"group is without this rank, {dist.get_rank()}; it must be one that the rank is in"
        )
    # Divided first, in the kernel that also copies and converts: what follows is in place.
    divisor = torch.tensor(ranks, dtype=torch.float32, device="cpu")
    share = torch.div(count, divisor).to(torch.float32)
    if is_shared:
        dist.all_reduce(share, group=group)
    return share.clamp_min_(1 / ranks)
