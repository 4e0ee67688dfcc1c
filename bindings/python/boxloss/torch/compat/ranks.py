# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What criteria divide by: whose ranks' boxes they count, or num_boxes and avg_factor.

A criterion asks other ranks only where its original does. A rank that asks waits for all others,
which may be elsewhere: in an evaluation, or at their end.
"""

import sys
from typing import Any

import torch
from torch import Tensor, distributed
from torch.nn.parallel import DistributedDataParallel

from ..arguments import as_normalizer
from ..distributed import global_normalizer


def average_over_ranks(count: Tensor, does_ask: bool) -> Tensor:
    """At least one rank's share of 1. Without gradients, as in most evaluations, nobody asks."""
    if not (does_ask and torch.is_grad_enabled()):
        return count
    return global_normalizer(count, _group())


def asks_accelerate(module: str) -> bool:
    """As transformers' `module`: its state is there under Trainer and Accelerator, not under plain
    torchrun."""
    state: Any = getattr(sys.modules.get(module), "PartialState", None)
    return bool(state and state._shared_state) and state().num_processes > 1


# As torch.compiler.assume_constant_result does, which would import all of the compiler: a second.
asks_accelerate._dynamo_marked_constant = True  # type: ignore[attr-defined]


def _group() -> Any:
    """That of the DistributedDataParallel whose forward this is in; else all ranks."""
    if torch.compiler.is_compiling():
        return None
    around = getattr(DistributedDataParallel, "_active_ddp_module", None)
    return getattr(around, "process_group", None)


def is_initialized() -> bool:
    return distributed.is_available() and distributed.is_initialized()


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
