# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""How the results of two builds differ, bit by bit, and by how many units in the last place.

NaN is NaN, of whatever sign and payload.
"""

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
    of = f"{int(unequal.sum())} of {old.numel()} numbers"
    if not old.is_floating_point():
        return of
    both = unequal & old.isfinite() & new.isfinite()
    strange = int((unequal & ~both).sum())
    parts = [f"NaN or infinity in one only, or another: {strange} numbers"] if strange else []
    if both.any():
        parts.append(f"{ulps(old[both], new[both]):.6g} ulps")
    return f"{', '.join(parts)}; {of}"


def bits(values: Tensor) -> Tensor:
    return values.contiguous().view(BITS[values.element_size()])


def ulps(old: Tensor, new: Tensor) -> float:
    """The largest distance, in numbers of their dtype that lie between; of 0 from -0 it is 0."""
    sign = -1 << 8 * old.element_size() - 1
    signed = (bits(each).long() for each in (old, new))
    one, other = (torch.where(each < 0, sign - each, each) for each in signed)
    apart = (one.double() - other.double()).abs()  # which does not overflow, but rounds
    return float(apart.where(apart > 2**52, (one - other).double().abs()).max())
