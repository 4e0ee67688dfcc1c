# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Few cases of many options: an error of two options that meet is seen, as of their product."""

from collections.abc import Collection, Iterable, Mapping
from itertools import combinations
from typing import Any

import pytest

Pairs = dict[frozenset[tuple[str, int]], None]  # a dict, for its order


def pairwise(**options: Iterable[Any]) -> list[Any]:
    """pairwise_cases for parametrize, named after their values."""
    cases = pairwise_cases(options)
    return [pytest.param(case, id=",".join(map(_word, case.values()))) for case in cases]


def pairwise_cases(options: Mapping[str, Iterable[Any]]) -> list[dict[str, Any]]:
    """Each two values of different options are together in some case. Always the same cases."""
    values = {name: tuple(each) for name, each in options.items()}
    missing: Pairs = {}
    for a, b in combinations(values, 2):
        for i in range(len(values[a])):
            missing |= {frozenset(((a, i), (b, j))): None for j in range(len(values[b]))}
    cases = []
    while missing:
        case = dict(next(iter(missing)))
        for name in (name for name in values if name not in case):
            case[name] = _best(name, len(values[name]), case, missing)
        for pair in combinations(case.items(), 2):
            missing.pop(frozenset(pair), None)
        cases.append({name: values[name][case[name]] for name in values})
    return cases


def long_but(values: Iterable[Any], daily: Collection[Any]) -> list[Any]:
    """For parametrize: all but the daily ones are long."""
    return [
        each if each in daily else pytest.param(each, marks=pytest.mark.long) for each in values
    ]


def every_other_long(cases: list[Any]) -> list[Any]:
    """Of those that pairwise gives."""
    return [
        pytest.param(*case.values, id=case.id, marks=[pytest.mark.long] * (i % 2))
        for i, case in enumerate(cases)
    ]


def _best(name: str, count: int, case: dict[str, int], missing: Pairs) -> int:
    """The choice that meets most of the others for the first time."""
    return max(
        range(count),
        key=lambda i: sum(frozenset(((name, i), other)) in missing for other in case.items()),
    )


def _word(value: Any) -> str:
    return getattr(value, "__name__", str(value)).removeprefix("torch.")
