# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Which operators of torch's are called, each a launch on a GPU."""

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Called(TorchDispatchMode):
    """Names, and what was given by name, but of what computes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.ours: set[str] = set()

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if function is not torch.ops.aten.lift_fresh.default:
            self.calls.append((function.overloadpacket.__name__, kwargs or {}))
        if function.namespace == "boxloss":
            self.ours.add(function.name())
        return function(*args, **(kwargs or {}))

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.calls]
