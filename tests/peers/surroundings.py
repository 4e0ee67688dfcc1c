# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""On which devices, in which dtype, and how often a GPU is waited for."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch._subclasses import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
HALVES = [torch.float16, torch.bfloat16]


@contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """Also of x.float(), which D-FINE's criterion could not do in double with otherwise."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with patch.object(Tensor, "float", lambda self: self.to(torch.get_default_dtype())):
            yield
    finally:
        torch.set_default_dtype(before)


def computed(dtype: torch.dtype) -> torch.dtype:
    """What boxloss computes in, and ground truth has, where predictions are of this dtype."""
    return torch.float32 if dtype in HALVES else dtype


def rounded(values: dict[str, Tensor], dtype: torch.dtype) -> dict[str, Tensor]:
    """Numbers in double that this dtype has, too."""
    return {name: each.to(dtype).double() for name, each in values.items()}


def autocast(device: str, dtype: torch.dtype) -> AbstractContextManager[Any]:
    """To a half; else none."""
    return torch.autocast(device, dtype) if dtype in HALVES else nullcontext()


def moved(values: Any, device: str, dtype: torch.dtype | None = None) -> Any:
    """Copies of all tensors of lists and dictionaries, numbers of `dtype`; leaves stay leaves."""
    if isinstance(values, Tensor):
        to = dtype if values.is_floating_point() else None
        return values.detach().to(device, to, copy=True).requires_grad_(values.requires_grad)
    if isinstance(values, dict):
        return {name: moved(each, device, dtype) for name, each in values.items()}
    if isinstance(values, (list, tuple)):
        return type(values)(moved(each, device, dtype) for each in values)
    return values


def assert_as_near(
    replaced: Sequence[dict[str, Tensor]],
    original: Sequence[dict[str, Tensor]],
    exact: Sequence[dict[str, Tensor]],
) -> None:
    """Losses and gradients, as vectors. Where both ways compute the same in float32, they are some
    tens of 6e-8 apart, of which 1e-6 is the room; and what that makes a half round the other way
    lies in the middle between two, as far from the one as from the other."""
    for ours, theirs, right in zip(replaced, original, exact, strict=True):
        for name, value in right.items():
            error, their_error = ((each[name] - value).norm() for each in (ours, theirs))
            assert error <= their_error + 1e-6 * value.norm(), name


def waits(function: Callable[[], Any]) -> int:
    """How often the host waits for the GPU in the second call."""
    function()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            function()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return sum("synchronizing CUDA operation" in str(each.message) for each in caught)


class NoCopies(TorchDispatchMode):
    """Between host and device; one waits, unless it is told not to."""

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        if function is torch.ops.aten._to_copy.default and not kwargs.get("non_blocking"):
            assert result.device == args[0].device, "a copy waits"
        elif function is torch.ops.aten.copy_.default and True not in args[2:]:
            assert result.device == args[1].device, "a copy waits"
        return result


def assert_reads_nothing(function: Callable[..., Any], on: str = "cpu", **arguments: Any) -> None:
    """On tensors that have no numbers it would raise: what it reads, a GPU would be waited for.
    Those "on" a GPU need none."""
    with FakeTensorMode() as fake:
        arguments = tree_map_only(Tensor, lambda each: fake.from_tensor(each).to(on), arguments)
        with NoCopies():
            function(**arguments)
