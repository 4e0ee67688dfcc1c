# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Which ranks' boxes a criterion counts: it asks others only where its original does.

A rank that asks waits for all others, which may be elsewhere: in an evaluation, or at their end.
"""

import sys
from typing import Any

import torch
from torch import Tensor, distributed
from torch.nn.parallel import DistributedDataParallel

from ..distributed import global_normalizer


def average_over_ranks(count: Tensor, does_ask: bool) -> Tensor:
    """At least one rank's share of 1. Without gradients, as in most evaluations, nobody asks."""
    if not (does_ask and torch.is_grad_enabled()):
        return count
    return global_normalizer(count, _group())


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def asks_accelerate(module: str) -> bool:
    """As transformers' `module`: its state is there under Trainer and Accelerator, not under plain
    torchrun."""
    state: Any = getattr(sys.modules.get(module), "PartialState", None)
    return bool(state and state._shared_state) and state().num_processes > 1


def _group() -> Any:
    """That of the DistributedDataParallel whose forward this is in; else all ranks."""
    if torch.compiler.is_compiling():
        return None
    around = getattr(DistributedDataParallel, "_active_ddp_module", None)
    return getattr(around, "process_group", None)


def is_initialized() -> bool:
    return distributed.is_available() and distributed.is_initialized()
