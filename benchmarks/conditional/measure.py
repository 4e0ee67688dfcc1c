# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Times the variants side by side: one cell for each number of repetitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from ..common.spread import tenths
from ..common.timing import Calls, Effort, gpu_samples
from .agreement import check
from .cases import WARP, Batch, Case
from .kernels import Launch

Cell = dict[str, Any]


def measure(
    launches: Mapping[str, Launch],
    batch: Batch,
    case: Case,
    repetitions: Sequence[int],
    effort: Effort,
) -> Iterator[Cell]:
    """GPU time, once all variants agree."""
    check(launches, batch, case, repetitions)
    losses = torch.empty(len(case.valid), device=case.valid.device)
    for times in repetitions:
        calls: Calls = {
            name: partial(launch, batch.pred, case.target, losses, times)
            for name, launch in launches.items()
        }
        yield {
            "images": batch.images,
            "layout": case.layout,
            "share": case.share,
            "active_warps": case.active_warps,
            "times": times,
            "microseconds": _timed(calls, effort),
        }


def one_warp(
    launch: Launch, batch: Batch, repetitions: Sequence[int], effort: Effort
) -> list[dict[str, float]]:
    """What the batch's first warp takes alone, by the number of repetitions."""
    losses = torch.empty(WARP, device=batch.pred.device)
    calls: Calls = {
        str(times): partial(launch, batch.pred, batch.truths, losses, times)
        for times in repetitions
    }
    return [*_timed(calls, effort).values()]


def _timed(calls: Calls, effort: Effort) -> dict[str, dict[str, float]]:
    """In microseconds."""
    samples, refused = gpu_samples(calls, effort)
    if refused:
        raise RuntimeError(f"{refused}")
    return {name: tenths(each, 1e6) for name, each in samples.items()}
