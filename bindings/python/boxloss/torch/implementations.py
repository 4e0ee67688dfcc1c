# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The implementations of the losses, and how to choose one."""

from threading import Lock, get_ident

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


_lock = Lock()
# The blocks that have not ended, and each thread's last call, which may begin one. Oldest first.
_calls: list["use_implementation"] = []


class use_implementation:  # noqa: N801  (used like a function)
    """Chooses the implementation, for the whole process, from this call on.

    A name such as "cuda/kokkos" chooses exactly that; a device such as "cpu" returns to its best
    one. The choice is for all threads, since backward runs in autograd's own. Backward uses the
    choice at the time when it runs. As a context manager it restores the previous choice at the end
    of the block::

        with use_implementation("cpu/reference"):
            ...

    If blocks of several threads overlap, the newest that has not ended is in effect. When all have
    ended, in any order, the choice before them is restored. A block should follow its call at once:
    after another call of the same thread it chooses anew, and restores what that one chose.

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
            found = type(name).__name__
            raise TypeError(f"use_implementation: name is {found}; it must be a string")
        self._name = name
        word = name.partition("/")[0]
        self._device = "aten" if word == "boxloss" else word  # the two ends of one switch
        self._is_in_block = False
        with _lock:
            self._choose()

    def _choose(self) -> None:
        self._before: str = torch.ops.boxloss.use_implementation(self._name)
        self._thread = get_ident()
        _calls[:] = [each for each in _calls if each._is_in_block or each._thread != self._thread]
        _calls.append(self)

    def _newer(self) -> list["use_implementation"]:
        later = _calls[_calls.index(self) + 1 :]
        return [each for each in later if each._device == self._device]

    def __enter__(self) -> None:
        with _lock:
            if self._is_in_block:
                raise RuntimeError(
                    f"use_implementation({self._name!r}) is in its block already; call it again "
                    "for another"
                )
            if self not in _calls:  # not its first block, or this thread has called again since
                self._choose()
            self._is_in_block = True
            # Since the call a block of another thread may have ended, and restored.
            if not any(each._is_in_block for each in self._newer()):
                torch.ops.boxloss.use_implementation(self._name)

    def __exit__(self, *error: object) -> None:
        with _lock:
            newer = self._newer()
            if not any(each._is_in_block for each in newer):
                torch.ops.boxloss.use_implementation(self._before)
            if newer:  # the next restores in its turn what this one found
                newer[0]._before = self._before
            self._is_in_block = False
            _calls.remove(self)
