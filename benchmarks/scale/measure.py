# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Times one point of a sweep by every clock that the device has."""

from __future__ import annotations

from functools import partial

import torch

from ..common.groups import BOTH, FORWARD
from ..common.spread import tenths
from ..common.timing import (
    Calls,
    backward,
    gpu_samples,
    gradient,
    host_samples,
    wall_samples,
)
from .agreement import check_dense, check_ragged
from .cases import Job, Row, Subject, dense_pairs, dense_subject, ragged_subject
from .settings import Settings


def measure(job: Job, device: torch.device, settings: Settings) -> list[Row]:
    """DisagreementError, unless every loss is right."""
    if job.case is None:
        pair = job.where["pair"]
        pred, target = dense_pairs(pair, job.where["size"], device)
        subject = dense_subject(pred, target, pair)
        differences = check_dense(subject, target)
    else:
        case = job.case(device)
        subject = ragged_subject(case)
        differences = check_ragged(subject, case)
    found: Row = {"boxes": subject.boxes, "longest": subject.longest}
    return [
        job.where | found | row | {"difference": differences[row["variant"]]}
        for row in _timed(subject, device, settings)
    ]


def _timed(subject: Subject, device: torch.device, settings: Settings) -> list[Row]:
    losses: Calls = dict(subject.losses)
    with torch.no_grad():
        rows = _rows(subject, FORWARD, losses, losses, device, settings)
    # A graph returns the gradient: it cannot give it to a leaf anew at each call.
    both: Calls = {k: partial(backward, v, subject.pred) for k, v in subject.losses.items()}
    captured: Calls = {k: partial(gradient, v, subject.pred) for k, v in subject.losses.items()}
    rows += _rows(subject, BOTH, both, captured, device, settings)
    return rows


def _rows(
    subject: Subject,
    measured: str,
    calls: Calls,
    captured: Calls,
    device: torch.device,
    settings: Settings,
) -> list[Row]:
    """`captured` is what a graph can hold."""
    clocks = {"wall": wall_samples(calls, device, settings.effort)}
    refused: dict[str, str] = {}
    if device.type == "cuda":
        clocks["host"] = host_samples(calls, device, settings.effort)
        subject.pred.grad = None  # of the largest sizes the memory is needed
        torch.cuda.empty_cache()
        clocks["gpu"], refused = gpu_samples(captured, settings.effort)
        torch.cuda.empty_cache()
    return [
        {
            "variant": name,
            "measured": measured,
            "bytes": _bytes(subject, name, measured),
            "microseconds": {
                clock: tenths(samples[name], 1e6)
                for clock, samples in clocks.items()
                if name in samples
            },
            "note": refused.get(name, ""),
        }
        for name in calls
    ]


def _bytes(subject: Subject, name: str, measured: str) -> int:
    forward, backward_too = subject.bytes[name]
    return forward if measured == FORWARD else forward + backward_too
