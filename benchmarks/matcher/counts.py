# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What a call asks of torch and of memory, also where there is no GPU."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode

from ..common import counts as common
from ..common.timing import Call


class _Operators(TorchDispatchMode):
    count = 0

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.count += not function.is_view
        return function(*args, **(kwargs or {}))


def counts(call: Call, device: torch.device, is_compiled: bool) -> dict[str, float]:
    """For one call. Of compiled code there are no operators to count."""
    call()
    found = common.counts(call) if device.type == "cuda" else {"peak_bytes": host_peak_bytes(call)}
    return found if is_compiled else {"operators": operators(call), **found}


def operators(call: Call) -> int:
    """Those that reach a device or allocate: without views."""
    with _Operators() as mode:
        call()
    return mode.count


def host_peak_bytes(call: Call) -> int:
    """Beyond what was there before."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        call()
    events = common.events_of(profiler)
    changes = [event for event in events if event.get("name") == "[memory]"]
    changes.sort(key=lambda event: event["ts"])
    return max(accumulate((int(each["args"]["Bytes"]) for each in changes), initial=0))
