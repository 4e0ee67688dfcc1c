# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What criteria compute anew in each step though it is the same in all: made once for a device."""

from collections.abc import Callable, Hashable, Sequence

import torch
from torch import Tensor

from .faults import has_values

_made: dict[tuple[Hashable, ...], Tensor] = {}


def constant(key: Hashable, like: Tensor, make: Callable[[], Tensor]) -> Tensor:
    """What `make` gives on like's device: made once for each key, in compiled and captured graphs
    in each run, since their memory is theirs. The first call waits for the device, so that any
    stream can read it."""
    if not has_values(like):
        return make()
    whole_key = key, like.device
    if whole_key not in _made:
        with torch.inference_mode(False):
            made = make()
        made.cpu()
        if type(made) is not Tensor:  # of a mode that somebody is in
            return made
        _made[whole_key] = made
    return _made[whole_key]


def weighted(losses: Sequence[tuple[float, Tensor]]) -> Tensor:
    """All losses, each (n) with a weight, in one list, times their weights."""
    joined = torch.cat([values for _, values in losses])
    runs = tuple((weight, len(values)) for weight, values in losses)

    def make() -> Tensor:
        return torch.cat([joined.new_full((count,), weight) for weight, count in runs])

    return joined * constant(("weights", joined.dtype, *runs), joined, make)
