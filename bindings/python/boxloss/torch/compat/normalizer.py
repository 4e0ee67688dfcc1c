# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Converts criteria's num_boxes and avg_factor to a normalizer for box_loss and box_losses."""

import torch
from torch import Tensor


def as_normalizer(number: float | Tensor, device: torch.device) -> Tensor:
    """A tensor without dimensions and gradient, at least float32; no synchronization."""
    if not isinstance(number, Tensor):
        return torch.full((), number, dtype=torch.float64, device=device)
    wide = torch.promote_types(number.dtype, torch.float32)
    return number.detach().reshape(()).to(device, wide, non_blocking=True)
