# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Pairs of every kind that a formula treats in its own way, in xyxy."""

import torch
from torch import Tensor

Box = list[float]

# Small integers: sides, areas and centres are exact, so that what ties here ties in any dtype.
PAIRS: dict[str, tuple[Box, Box]] = {
    "identical": ([0, 0, 4, 2], [0, 0, 4, 2]),
    "one edge in common": ([0, 0, 4, 4], [0, 1, 6, 3]),
    "two edges in common": ([0, 0, 4, 4], [0, 0, 6, 6]),
    "same centre and shape": ([2, 2, 6, 4], [0, 1, 8, 5]),
    "same centre and width": ([0, 2, 8, 4], [0, 0, 8, 6]),
    "nested, sharing x2": ([0, 0, 8, 8], [2, 2, 8, 6]),
    "nested": ([1, 2, 3, 7], [0, 0, 8, 8]),
    "nested, the other way": ([0, 0, 8, 8], [2, 1, 5, 6]),
    "touching in x": ([0, 0, 2, 2], [2, 0, 4, 2]),
    "touching in a corner": ([0, 0, 2, 2], [2, 2, 4, 4]),
    "touching, other order": ([2, 1, 4, 5], [0, 0, 2, 3]),
    "apart": ([0, 0, 2, 2], [5, 5, 7, 8]),
    "apart in x, overlapping in y": ([0, 0, 2, 4], [5, 1, 7, 3]),
    "overlapping": ([0, 0, 4, 3], [1, 1, 6, 9]),
}
WITHOUT_AREA: dict[str, tuple[Box, Box]] = {
    "flat": ([0, 0, 4, 0], [1, -1, 3, 5]),
    "thin": ([1, 0, 1, 5], [0, 1, 3, 4]),
    "a flat target": ([1, -1, 3, 5], [0, 0, 4, 0]),
    "flat and thin": ([0, 2, 4, 2], [2, 0, 2, 4]),
    "both flat": ([0, 0, 4, 0], [1, 0, 3, 0]),
    "both flat, the same": ([0, 3, 4, 3], [0, 3, 4, 3]),
    "a point": ([1, 1, 1, 1], [0, 0, 4, 4]),
    "two points": ([1, 1, 1, 1], [3, 2, 3, 2]),
    "the same point": ([1, 1, 1, 1], [1, 1, 1, 1]),
    "the origin": ([0, 0, 0, 0], [0, 0, 0, 0]),
}
INVERTED: dict[str, tuple[Box, Box]] = {
    "inverted in x": ([6, 0, 2, 4], [1, 1, 9, 3]),
    "inverted in y": ([1, 6, 5, 2], [0, 0, 7, 3]),
    "a target inverted in y": ([0, 0, 7, 3], [1, 6, 5, 2]),
    "inverted in both": ([6, 5, 2, 1], [0, 0, 8, 8]),
    "both inverted": ([6, 5, 2, 1], [7, 6, 2, 3]),
    "both inverted, the same": ([6, 5, 2, 1], [6, 5, 2, 1]),
    "mirror images": ([0, 0, 4, 2], [4, 2, 0, 0]),
    "inverted and without height": ([6, 3, 2, 3], [1, 1, 5, 4]),
}


OVERLAPPING = ("overlapping", "nearly equal", "equal", "nested", "sharing edges")
OTHERS = ("disjoint", "inverted", "thin")


def pairs_of_every_kind(is_without_area: bool = True) -> tuple[Tensor, Tensor]:
    """pred and target in double; or of those kinds alone that have a loss when eps is 0."""
    tables = [PAIRS, WITHOUT_AREA, INVERTED] if is_without_area else []
    kinds = (*OVERLAPPING, *OTHERS) if is_without_area else OVERLAPPING
    pairs = [torch.tensor([*table.values()]).double().unbind(1) for table in tables]
    pairs += [random_pairs(kind) for kind in kinds]
    pred, target = (torch.cat(each) for each in zip(*pairs, strict=True))
    return pred, target


def random_pairs(kind: str, count: int = 40) -> tuple[Tensor, Tensor]:
    """pred and target of one kind, anywhere within 100 pixels; no numbers are round."""
    random = torch.Generator().manual_seed(11)

    def uniform(low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(count, 2, generator=random, dtype=torch.float64)

    corner, size = uniform(-50, 50), uniform(1, 50)
    t1, t2 = corner, corner + size
    if kind == "overlapping":
        p1, p2 = t1 + size * uniform(-0.4, 0.4), t2 + size * uniform(-0.4, 0.4)
    elif kind == "nearly equal":
        p1, p2 = t1 + uniform(-1e-3, 1e-3), t2 + uniform(-1e-3, 1e-3)
    elif kind == "equal":
        p1, p2 = t1, t2
    elif kind == "nested":
        p1, p2 = t1 + size * uniform(0.05, 0.45), t2 - size * uniform(0.05, 0.45)
    elif kind == "disjoint":
        p1, p2 = t2 + uniform(1, 20), t2 + uniform(21, 50)
    elif kind == "inverted":
        p1, p2 = t2 + uniform(-5, 5), t1 + uniform(-5, 5)
    elif kind == "thin":
        p1, p2 = t1 + uniform(-1, 1), t2 + uniform(-1, 1)
        p2[:, 0] = p1[:, 0]
    elif kind == "sharing edges":
        p1, p2 = t1, t2 + uniform(-0.5, 20)
    else:
        raise ValueError(kind)
    return torch.cat((p1, p2), -1), torch.cat((t1, t2), -1)
