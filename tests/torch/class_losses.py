# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Problems of class losses."""

from typing import get_args

import torch
from boxloss._options import ClassLossMode
from problems import Problem
from torch import Tensor

MODES: tuple[str, ...] = get_args(ClassLossMode)
OF_QUALITY = ("varifocal", "mal", "ia_bce", "bce")
OF_NUMBERS = ("focal", "varifocal", "mal", "ia_bce")  # alpha and gamma
TARGETS = 6


def class_problem(
    mode: str,
    device: torch.device,
    dtype: torch.dtype = torch.float32,
    shape: tuple[int, ...] = (2, 3, 5, 7),
    **options: object,
) -> Problem:
    """Logits of at most 4, queries without a box or left out, and rows and labels there are not."""
    random = torch.Generator().manual_seed(3)

    def numbers(*size: int) -> Tensor:
        return torch.rand(size, generator=random, dtype=torch.float64)

    values: Problem = {
        "logits": (8 * numbers(*shape) - 4).to(device, dtype),
        "target_index": torch.randint(-3, TARGETS + 1, shape[:-1], generator=random).to(device),
        "labels": torch.tensor([3, 0, shape[-1], -1, shape[-1] - 1, 2], device=device),
        "mode": mode,
        "weight": (0.5 + numbers(shape[-1])).to(device, torch.float32),
    }
    if mode in OF_QUALITY:
        values["quality"] = numbers(TARGETS).to(device, torch.float16)
    if mode == "softmax":
        values["no_object_weight"] = 0.25
    return {**values, **options}


def by_query(values: Problem) -> Problem:
    """The same qualities, a query's own; of queries without a box NaN, which nobody reads."""
    quality, index = values["quality"], values["target_index"]
    own = quality[index.clip(0, TARGETS - 1)]
    of_query = own.where((index >= 0) & (index < TARGETS), torch.nan)
    return {**{n: v for n, v in values.items() if n != "quality"}, "query_quality": of_query}
