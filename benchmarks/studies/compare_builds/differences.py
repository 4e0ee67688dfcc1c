# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""How the results of two builds differ, bit by bit, and by how many units in the last place.

NaN is NaN, of whatever sign and payload. What the old build itself gives in other bits from run to
run, as a GPU's sums by atomic additions, is held against its own runs instead: the new build's
numbers may lie outside of theirs by what those are apart at most anywhere in that result. Each run
of a crowded problem holds several (see results.py), and of some hundred numbers each: of two alone,
one in six was wider the next time, on an H200.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from .problems import RUNS, Record, Records

BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class Difference(NamedTuple):
    problem: str
    result: str
    words: str
    excused: bool = False  # the old build differs from itself as much


def differences(old: Records, again: Records, new: Records) -> Iterator[Difference]:
    """Of new from old, which ran twice."""
    for problem in old:
        for difference in of_records(old[problem], again[problem], new[problem]):
            yield Difference(problem, *difference)


def of_records(old: Record, again: Record, new: Record) -> Iterator[tuple[str, str, bool]]:
    if isinstance(old, str) or isinstance(again, str) or isinstance(new, str):
        before, once_more, after = map(said, (old, again, new))
        if before != once_more:
            yield "", f"old {before}; old again {once_more}", False
        elif before != after:
            yield "", f"old {before}; new {after}", False
        return
    for name in {**old, **again, **new}:
        if not (name in old and name in again and name in new):
            have = [who for who, each in (("old", old), ("new", new)) if name in each]
            yield name, f"in the {' and the '.join(have)} build only", False
            continue
        words = difference(old[name], new[name])
        itself = difference(old[name], again[name])
        if itself:
            yield (
                name,
                f"{words or 'the same bits'}; old from itself: {itself}",
                within(old[name], again[name], new[name], name.endswith(RUNS)),
            )
        elif words:
            yield name, words, False


def said(record: Record) -> str:
    return f"says '{record}'" if isinstance(record, str) else "gives a result"


def difference(old: Tensor, new: Tensor) -> str | None:
    """None: the same bits, of the same shape and strides."""
    before, after = (f"{each.dtype}{list(each.shape)}{each.stride()}" for each in (old, new))
    if before != after:
        return f"dtype, shape and strides are {after}, not {before}"
    unequal = different(old, new)
    count = int(unequal.sum())
    if not count:
        return None
    of = f"{count} of {old.numel()} numbers"
    if not old.is_floating_point():
        return of
    finite = old.isfinite() & new.isfinite()
    strange = int((unequal & ~finite).sum())
    parts = [f"NaN or infinity in one only, or another: {strange} numbers"] if strange else []
    both = unequal & finite
    if both.any():
        parts.append(f"{ulps(old[both], new[both]):.6g} ulps")
    return f"{', '.join(parts)}; {of}"


def different(old: Tensor, new: Tensor) -> Tensor:
    same_bits = bits(old) == bits(new)
    return ~(same_bits | (old.isnan() & new.isnan()))


def bits(values: Tensor) -> Tensor:
    return values.contiguous().view(BITS[values.element_size()])


def ulps(old: Tensor, new: Tensor) -> float:
    """The largest distance, in numbers of their dtype that lie between; of 0 from -0 it is 0."""
    places = []
    for values in (old, new):
        signed = bits(values).long()
        sign = -1 << 8 * values.element_size() - 1
        places.append(torch.where(signed < 0, sign - signed, signed))
    one, other = places
    apart = (one.double() - other.double()).abs()  # which does not overflow, but rounds
    return float(apart.where(apart > 2**52, (one - other).double().abs()).max())


def within(old: Tensor, again: Tensor, new: Tensor, has_runs: bool) -> bool:
    """Is new as near to old's runs as the module says?"""
    if (old.dtype, old.shape) != (new.dtype, new.shape) or not old.is_floating_point():
        return False
    if not has_runs:
        old, again, new = old[None], again[None], new[None]
    every = torch.cat([old, again, new])
    odd = ~every.isfinite().all(0)
    if different(every, every[:1].expand_as(every))[:, odd].any():
        return False
    runs = torch.cat([old, again]).double().masked_fill(odd, 0)
    low, high = runs.amin(0), runs.amax(0)
    allowed = (high - low).max()
    numbers = new.double().masked_fill(odd, 0)
    return bool(((low - allowed <= numbers) & (numbers <= high + allowed)).all())
