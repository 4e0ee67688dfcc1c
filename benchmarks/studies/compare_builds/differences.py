# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""How the results of two builds differ, bit by bit. NaN is NaN, of whatever sign and payload."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from .problems import Record, Records

BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class Difference(NamedTuple):
    problem: str
    result: str
    words: str


def differences(old: Records, new: Records) -> Iterator[Difference]:
    for problem, before in old.items():
        after = new[problem]
        if isinstance(before, str) or isinstance(after, str):
            if said(before) != said(after):
                yield Difference(problem, "", f"old {said(before)}; new {said(after)}")
            continue
        for name in {**before, **after}:
            if name not in before or name not in after:
                words = f"in the {'old' if name in before else 'new'} build only"
            else:
                words = difference(before[name], after[name])
            if words:
                yield Difference(problem, name, words)


def said(record: Record) -> str:
    return f"says '{record}'" if isinstance(record, str) else "gives a result"


def difference(old: Tensor, new: Tensor) -> str:
    """Empty: the same bits, of the same shape and strides."""
    before, after = (f"{each.dtype}{list(each.shape)}{each.stride()}" for each in (old, new))
    if before != after:
        return f"dtype, shape and strides are {after}, not {before}"
    unequal = ~((bits(old) == bits(new)) | (old.isnan() & new.isnan()))
    if not unequal.any():
        return ""
    old, new = old[unequal], new[unequal]
    return f"{len(old)} of {unequal.numel()} numbers; the first is {new[0]}, not {old[0]}"


def bits(values: Tensor) -> Tensor:
    return values.contiguous().view(BITS[values.element_size()])
