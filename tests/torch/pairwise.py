# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Few cases in which any two values of two parameters meet, in place of all combinations."""

from collections.abc import Iterable
from itertools import combinations
from typing import Any

import pytest

Choice = tuple[str, int]
Pairs = dict[frozenset[Choice], None]  # a dict, for its order


def pairwise(**parameters: Iterable[Any]) -> list[Any]:
    """Cases, dicts by the parameters' names, that say what they are in the test's name."""
    values = {name: tuple(each) for name, each in parameters.items()}
    wanted: Pairs = {}
    for a, b in combinations(values, 2):
        for i in range(len(values[a])):
            wanted |= {frozenset(((a, i), (b, j))): None for j in range(len(values[b]))}

    cases = []
    while wanted:
        case = dict(next(iter(wanted)))
        for name in (name for name in values if name not in case):
            case[name] = _best(name, len(values[name]), case, wanted)
        for pair in combinations(case.items(), 2):
            wanted.pop(frozenset(pair), None)
        chosen = {name: values[name][case[name]] for name in values}
        cases.append(pytest.param(chosen, id=",".join(map(_word, chosen.values()))))
    return cases


def _best(
    name: str, count: int, case: dict[str, int], wanted: dict[frozenset[Choice], None]
) -> int:
    """The choice that meets most of the others for the first time."""
    return max(
        range(count),
        key=lambda i: sum(frozenset(((name, i), other)) in wanted for other in case.items()),
    )


def _word(value: Any) -> str:
    return getattr(value, "__name__", str(value)).removeprefix("torch.")
