# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What matches share: results are indices, and nothing has a gradient."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import jax

from ._library import Operation, index_dtype
from .arguments import arguments_of
from .batching import Merge, Split, by_size, never, solve
from .partitioning import in_auto_axes

Result = TypeVar("Result")


def match(
    target: str,
    result: Callable[..., Result],
    function: Callable[..., Any],
    values: dict[str, Any],
    merge: Merge = never,
    split: Split = by_size,
) -> Result:
    """What a function gives with these arguments; `merge` and `split` are for vmap (`solve`)."""
    arrays, options = arguments_of(function, values)
    arrays = {name: jax.lax.stop_gradient(each) for name, each in arrays.items()}
    options["index"] = index_dtype()
    operation = Operation(f"boxloss_jax_{target}", function.__name__, options)
    return result(**in_auto_axes(partial(solve, operation, merge=merge, split=split), arrays))
