# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Converts criteria's num_boxes and avg_factor to a normalizer for box_loss and box_losses."""

import torch
from torch import Tensor


def number_of_boxes(name: str, number: float | Tensor, device: torch.device) -> Tensor:
    """A tensor without dimensions and gradient, at least float32; no synchronization."""
    if not isinstance(number, Tensor):
        if not hasattr(number, "__float__"):
            given = type(number).__name__
            raise TypeError(f"{name} is {given}; it must be a number, or a tensor of one element")
        return torch.full((), float(number), dtype=torch.float64, device=device)
    if number.numel() != 1:
        raise ValueError(f"{name} has shape {tuple(number.shape)}; it must have one element")
    wide = torch.promote_types(number.dtype, torch.float32)
    return number.detach().reshape(()).to(device, wide, non_blocking=True)
