# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What computes, and how to choose it."""

from types import TracebackType

import torch


def implementations() -> list[str]:
    """The names of all implementations in this build, best first for each device. Never raises."""
    return list(torch.ops.boxloss.implementations())


def cpu_capability() -> str:
    """What cpu/native uses of the processor: "avx512", "avx2", or "baseline".

    It is the widest that the processor has, or what the environment variable
    BOXLOSS_CPU_CAPABILITY said at the first use.

    Raises:
        ValueError: the variable said something else, or what this processor does not have.
    """
    return str(torch.ops.boxloss.cpu_capability())


class use_implementation:  # noqa: N801  (used like a function)
    """Chooses what computes, for the whole process, from this call on.

    A name such as "cuda/kokkos" chooses exactly that; a device such as "cpu" gives its best one
    back. Backward uses the choice at its own time. As a context manager it restores, at the end of
    the block, what was chosen before the call::

        with use_implementation("cpu/reference"):
            ...

    Raises:
        RuntimeError: no such implementation in this build; names those that are, and what would
            add the wanted one.
    """

    def __init__(self, name: str) -> None:
        self._before: str = torch.ops.boxloss.use_implementation(name)

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        torch.ops.boxloss.use_implementation(self._before)
