# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Converts criteria's num_boxes and avg_factor to a normalizer for box_loss and box_losses."""

import torch
from torch import Tensor

from ..arguments import as_normalizer


def number_of_boxes(name: str, number: float | Tensor, pred: Tensor, target: Tensor) -> Tensor:
    """A tensor without dimensions and gradient on the boxes' device; no synchronization.

    Of a number float64 where boxes are, else float32; a tensor keeps its dtype, from float32 on.
    """
    if not isinstance(number, Tensor):
        if not hasattr(number, "__float__"):
            given = type(number).__name__
            raise TypeError(f"{name} is {given}; it must be a number, or a tensor of one element")
        return as_normalizer(name, number, pred, target)
    if number.numel() != 1:
        raise ValueError(f"{name} has shape {tuple(number.shape)}; it must have one element")
    wide = torch.promote_types(number.dtype, torch.float32)
    return number.detach().reshape(()).to(pred.device, wide, non_blocking=True)
