# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The implementations of the losses, and how to choose one."""

from collections import defaultdict
from threading import Lock
from types import TracebackType
from weakref import ref

import torch


def implementations() -> list[str]:
    """The names of all implementations, best first for each device. Never raises.

    They are those of this build, and what boxloss.load_backend has loaded.

    The last is "aten", torch's own operators, which is used only if chosen.
    """
    return list(torch.ops.boxloss.implementations())


def cpu_capability() -> str:
    """The vector instructions of cpu/native: "avx512", "avx2", or "baseline".

    They are the widest that the processor supports, or the value of the environment variable
    BOXLOSS_CPU_CAPABILITY at the first use.

    Raises:
        ValueError: the variable is unknown, or not supported by this processor.
    """
    return str(torch.ops.boxloss.cpu_capability())


# Those who chose, in the order of their calls, apart for each device. Weak: who chose without a
# block is soon gone, and its choice lasts.
_lock = Lock()
_chosen: defaultdict[str, list[ref["use_implementation"]]] = defaultdict(list)


class use_implementation:  # noqa: N801  (used like a function)
    """Chooses the implementation, for the whole process, from this call on.

    A name such as "cuda/kokkos" chooses exactly that; a device such as "cpu" returns to its best
    one. The choice is for all threads, since backward runs in autograd's own. Backward uses the
    choice at the time when it runs. As a context manager it restores the previous choice at the end
    of the block::

        with use_implementation("cpu/reference"):
            ...

    If blocks of several threads overlap, the newest that has not ended is in effect. When all have
    ended, in any order, the choice before them is restored.

    "aten" lets torch's own operators compute the losses, forward and backward, matching_cost and
    pairwise_iou on every device that torch has (MPS, XPU, ...), CPU and GPU included, in many
    kernels and with their intermediate results. It takes precedence over choices for one kind of
    memory; hungarian_match and the assigners go on as before; "boxloss" undoes it. Compiled
    graphs keep the operators whole, so they also use the choice at the time when they run.

    Raises:
        RuntimeError: no such implementation; the message lists those that there are, and the build
            option; or a second block of one object within its first. TypeError: no string.
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            given = type(name).__name__
            raise TypeError(f"use_implementation: name is {given}; it must be a string")
        self._name = name
        self._is_in_block = False
        with _lock:
            self._choose()

    def __enter__(self) -> None:
        with _lock:
            if self._is_in_block:
                raise RuntimeError(
                    f"use_implementation({self._name!r}) is in its block already; call it again "
                    "for another"
                )
            if self not in self._alive():  # its block has ended, and this is another
                self._choose()
            self._is_in_block = True
            # Since the call a block of another thread may have ended, and restored.
            if not self._covering():
                torch.ops.boxloss.use_implementation(self._name)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with _lock:
            self._is_in_block = False
            if not self._covering():
                torch.ops.boxloss.use_implementation(self._before)
            # The next in order restores in its turn what this one found.
            for newer in self._newer()[:1]:
                newer._before = self._before
            _chosen[self._device].remove(ref(self))

    def _choose(self) -> None:
        self._before: str = torch.ops.boxloss.use_implementation(self._name)
        _chosen[self._device] = [*map(ref, self._alive()), ref(self)]

    def _alive(self) -> list["use_implementation"]:
        """Who chose for the same device, in order."""
        return [chosen for each in _chosen[self._device] if (chosen := each()) is not None]

    def _newer(self) -> list["use_implementation"]:
        alive = self._alive()
        return alive[alive.index(self) + 1 :]

    def _covering(self) -> list["use_implementation"]:
        """The blocks that began later and have not ended: their choice holds."""
        return [each for each in self._newer() if each._is_in_block]

    @property
    def _device(self) -> str:
        word = self._name.partition("/")[0]
        return "aten" if word == "boxloss" else word  # the two ends of one switch
