# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What criteria compute anew in each step though it is the same in all: made once for a device."""

from collections.abc import Callable, Hashable, Sequence

import torch
from torch import Tensor

from .faults import has_values, is_traced

MOST = 64  # are kept; a weight that changes in each step would be one more each time
_cache: dict[tuple[Hashable, ...], Tensor] = {}


def cached(key: Hashable, like: Tensor, make: Callable[[], Tensor]) -> Tensor:
    """What `make` gives on like's device, made once for each key.

    The first call waits for the device, so that any stream may read the result. What is traced, and
    what is captured before, makes its own.
    """
    if is_traced(like):
        return make()
    whole_key = key, like.device
    if whole_key in _cache:
        return _cache[whole_key]
    if len(_cache) == MOST or not has_values(like):
        return make()
    with torch.inference_mode(False):
        value = make()
    # Not of a mode or a transform that somebody is in.
    if type(value) is Tensor and not torch._C._functorch.is_functorch_wrapped_tensor(value):
        value.cpu()
        _cache[whole_key] = value
    return value


def apart(values: Tensor) -> Sequence[Tensor]:
    """Its elements, in one launch: a loop may change one in place, as the views of a list not."""
    return torch._foreach_add(list(values), 0.0)  # which needs none in backward


def weighted(losses: Sequence[tuple[float, Tensor]]) -> Tensor:
    """All losses, each (n) with a weight, in one list, times their weights."""
    joined = torch.cat([values for _, values in losses])
    runs = tuple((weight, len(values)) for weight, values in losses)

    def make() -> Tensor:
        return torch.cat([joined.new_full((count,), weight) for weight, count in runs])

    return joined * cached(("weights", joined.dtype, *runs), joined, make)
