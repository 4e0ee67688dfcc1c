# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""No time is worth printing for a kernel that is wrong: each is held against the eager formula in
fp64, repeated as often, and all must give the same bits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import torch
from torch import Tensor

from ..common.agreement import LOSS_ROUNDINGS, UNIT, DisagreementError, steepness
from ..common.losses import giou
from .cases import Batch, Case
from .kernels import STEP, Launch

# A loss' derivative by a coordinate is a sum of terms of at most 5 side / U together (see
# common.agreement), and 4 coordinates move. Twice that, because the boxes for which side / U is
# taken are not quite those of the kernel.
SLOPES = 2 * 4 * 5


def repeated(pred: Tensor, target: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """The losses (n) after each repetition, and how far float32 may be from them: a coordinate
    that is moved by a loss is as wrong as that loss, times STEP, and is rounded."""
    p, t = (boxes.to(torch.float64, copy=True) for boxes in (pred, target))
    astray = torch.zeros(len(p), dtype=p.dtype, device=p.device)
    while True:
        losses = 1 - giou(p, t)
        # A loss is at most 2.
        allowed = 2 * LOSS_ROUNDINGS * UNIT + SLOPES * steepness(p, t) * astray
        yield losses, allowed
        shift = STEP * losses
        p[:, 0] += shift
        p[:, 3] += shift
        t[:, 1] += shift
        t[:, 2] += shift
        furthest = torch.maximum(p.abs(), t.abs()).amax(dim=1)
        astray = astray + STEP * allowed + UNIT * furthest


def check(
    launches: Mapping[str, Launch], batch: Batch, case: Case, repetitions: Sequence[int]
) -> None:
    """DisagreementError, unless all variants are right after each number of repetitions."""
    results = torch.empty((len(launches), len(case.valid)), device=case.valid.device)
    references = repeated(batch.pred[case.valid], case.target[case.valid])
    for times, (expected, allowed) in enumerate(islice(references, max(repetitions)), start=1):
        if times not in repetitions:
            continue
        where = f"{batch.name}, {case.share:.1%} valid, {case.layout}, {times} times"
        results.fill_(torch.nan)
        for launch, losses in zip(launches.values(), results, strict=True):
            launch(batch.pred, case.target, losses, times)
        for name, losses in zip(launches, results, strict=True):
            if not bool((losses[~case.valid] == 0).all()):
                raise DisagreementError(f"{name}: not 0 in a slot without a true box; {where}")
            error = (losses[case.valid].double() - expected).abs()
            if not bool((error <= allowed).all()):  # NaN must fail
                worst = error.nan_to_num(nan=torch.inf).max().item()
                raise DisagreementError(
                    f"{name}: up to {worst:.2g} from the formula in fp64, beyond what float32 "
                    f"explains; {where}"
                )
            if not torch.equal(losses, results[0]):
                first = next(iter(launches))
                raise DisagreementError(f"{name}: not the same bits as '{first}'; {where}")
