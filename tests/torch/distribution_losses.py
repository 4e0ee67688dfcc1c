# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Problems of losses of distributions."""

from types import SimpleNamespace

import torch
from boxloss.torch.compat.families.d_fine import bin_edges
from problems import Problem
from torch import Tensor

BOXES = 5


def distribution_problem(
    mode: str,
    dtype: torch.dtype = torch.float64,
    rows: tuple[int, ...] = (3, 2, 9),
    bins: int = 33,
    **options: object,
) -> Problem:
    """Numbers that every dtype holds, and queries as in class_problem."""
    random = torch.Generator().manual_seed(3)

    def uniform(*shape: int) -> Tensor:
        return torch.randint(1, 64, shape, generator=random, dtype=torch.float64) / 64

    given: Problem = {
        "logits": (16 * uniform(*rows, 4 * bins) - 8).to(dtype),
        "target_index": torch.randint(-3, BOXES + 1, rows, generator=random),
        "quality": uniform(*rows),
        "mode": mode,
    }
    if mode == "fgl":
        given["reference"], given["target"] = uniform(*rows, 4), uniform(BOXES, 4)
        config = SimpleNamespace(up=0.5, reg_scale=4.0, max_num_bins=bins - 1)
        given["edges"] = bin_edges(config, given["quality"])
    else:
        layer = rows[-2:]
        given["teacher"] = (16 * uniform(*layer, 4 * bins) - 8).to(dtype)
        given["confidence"] = uniform(*layer)
    return {**given, **options}


def moved(given: Problem, device: torch.device) -> Problem:
    return {k: v.to(device) if isinstance(v, Tensor) else v for k, v in given.items()}
