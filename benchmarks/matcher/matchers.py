# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Whole matchers, whose end is SciPy's assignment on the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from boxloss.torch import collate_matches, hungarian_match
from torch import Tensor

from ..common.losses import scipy_assignment
from ..common.timing import Calls
from .cases import Case
from .originals import Match, Original

Matches = list[list[Match]]  # [layer][image]
HUNGARIAN, LOOP, COLLATED = "hungarian_match", "loop", "loop + collate_matches"


def hungarian(case: Case, costs: Tensor) -> tuple[Tensor, Tensor]:
    return hungarian_match(costs, case.offsets, groups=case.shape.groups)


def load_loop(case: Case) -> Callable[[Tensor], Matches]:
    """One copy, then SciPy block by block, and the result as the originals leave it."""
    assign = scipy_assignment()
    columns = [case.columns(image) for image in range(len(case.counts))]
    groups = case.shape.groups
    size = case.shape.queries // groups

    def match(block: np.ndarray[Any, Any]) -> Match:
        found = [assign(block[group * size : (group + 1) * size]) for group in range(groups)]
        src = np.concatenate([rows + group * size for group, (rows, _) in enumerate(found)])
        tgt = np.concatenate([each for _, each in found])
        return torch.from_numpy(src), torch.from_numpy(tgt)

    def loop(costs: Tensor) -> Matches:
        return [[match(layer[:, own]) for own in columns] for layer in costs.cpu().numpy()]

    return loop


def collated(case: Case, matches: Matches) -> tuple[Tensor, Tensor]:
    """As `hungarian_match` gives it."""
    return collate_matches(matches, case.counts, case.shape.queries, device=case.pred.device)


def assignments(case: Case, costs: Tensor) -> Calls:
    """Of one cost that is there."""
    loop = load_loop(case)
    return {
        HUNGARIAN: lambda: hungarian(case, costs),
        LOOP: lambda: loop(costs),
        COLLATED: lambda: collated(case, loop(costs)),
    }


def matchers(case: Case, cost: Callable[[], Tensor], original: Original | None) -> Calls:
    calls: Calls = {"boxloss": lambda: hungarian(case, cost())}
    return calls if original is None else {**calls, "original": original.matches}
