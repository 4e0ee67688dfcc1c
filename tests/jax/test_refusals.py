# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What is refused, while JAX traces, too: in torch's words, but for what frameworks convert."""

from typing import Any

import boxloss.jax
import boxloss.torch
import jax
import pytest
from both import for_jax
from problems import Problem
from test_arguments import EVERY_TENSOR, REFUSED, Refused, of_each


def refusals_of(name: str, values: Problem) -> list[tuple[type[Exception], str]]:
    """Of torch, of JAX, and of JAX while it traces."""
    given = for_jax(values)
    static = {key: each for key, each in given.items() if not isinstance(each, jax.Array)}
    arrays = {key: each for key, each in given.items() if isinstance(each, jax.Array)}

    def ours(arrays: dict[str, jax.Array]) -> Any:
        return getattr(boxloss.jax, name)(**arrays, **static)

    found = []
    for call in (lambda _: getattr(boxloss.torch, name)(**values), ours, jax.jit(ours)):
        with pytest.raises((ValueError, TypeError)) as error:
            call(arrays)
        found.append((error.type, str(error.value)))
    return found


@pytest.mark.parametrize(("name", "refused"), of_each(REFUSED))
def test_both_refuse_the_same_in_the_same_words(name: str, refused: Refused) -> None:
    theirs, *ours = refusals_of(name, refused.values(name))
    assert theirs[0] is refused.error
    assert theirs[1].startswith(f"{name}: {refused.text}")
    assert ours == [theirs] * 2


@pytest.mark.parametrize(("name", "values", "argument"), EVERY_TENSOR)
def test_what_is_no_array(name: str, values: Problem, argument: str) -> None:
    given = {**for_jax(values), argument: [1.0]}
    with pytest.raises(TypeError, match=f"^{name}: {argument} is list; it must be an array of JAX"):
        getattr(boxloss.jax, name)(**given)
