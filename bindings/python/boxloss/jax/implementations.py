# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The choice between the library's custom calls and the formula in jax.numpy."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

NAMES = ("boxloss", "jnp")
_chosen = ContextVar("boxloss.jax", default=NAMES[0])


@contextmanager
def use_implementation(name: str) -> Iterator[None]:
    """Chooses for the losses that JAX traces in the block, in this thread.

    "jnp": the same formula in jax.numpy, for what custom calls do not have, such as forward mode.
    "boxloss": the library's, as without a choice. What was jitted before keeps the implementation
    that it was traced with. Matcher and assigners go on as before.

    Raises:
        RuntimeError: no such implementation.
    """
    if name not in NAMES:
        words = " or ".join(map(repr, NAMES))
        raise RuntimeError(f"there is no implementation {name!r}; it is {words}")
    token = _chosen.set(name)
    try:
        yield
    finally:
        _chosen.reset(token)


def formula_is_chosen() -> bool:
    return _chosen.get() == "jnp"
