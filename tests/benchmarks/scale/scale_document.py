# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""A report as a machine with two GPUs would write it, from a model whose parameters are known."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from benchmarks.scale.cases import DISTRIBUTIONS, bytes_of_pair
from benchmarks.scale.findings import findings
from benchmarks.scale.measure import BOTH, FORWARD
from benchmarks.scale.ranks import COUNT, LOSS, NORMALIZED, STEP, gradient_of, step_with
from benchmarks.scale.settings import GPU

LAUNCH = {"gpu": {FORWARD: 3e-6, BOTH: 6e-6}, "wall": {FORWARD: 35e-6, BOTH: 250e-6}}
RATE = 4e12
LATENCY, LINK = 30e-6, 300e9
MACHINE = {
    "cpu": "a processor, 32 cores",
    "gpu": "A GPU, 140 GiB, CUDA 13.0",
    "python": "3.12.3",
    "boxloss": "0.1.0",
    "torch": "2.11.0",
}


def times(**seconds: float) -> dict[str, dict[str, float]]:
    return {
        clock: {"p10": 0.98e6 * each, "median": 1e6 * each, "p90": 1.05e6 * each}
        for clock, each in seconds.items()
    }


def passes(read: int, written: int, slower: float = 1) -> list[dict[str, Any]]:
    return [
        {
            "measured": measured,
            "bytes": moved,
            "microseconds": times(
                **{clock: slower * (LAUNCH[clock][measured] + moved / RATE) for clock in LAUNCH},
                host=12e-6,
            ),
            "difference": 1e-9,
            "note": "",
        }
        for measured, moved in ((FORWARD, read), (BOTH, 2 * read + written))
    ]


def dense_rows() -> list[dict[str, Any]]:
    found = []
    for pair in GPU.pairs:
        forward, backward = bytes_of_pair(pair)
        for boxes in GPU.sizes:
            where = {"sweep": "pairs", "pair": pair, "size": boxes, "boxes": boxes, "longest": 0}
            for name, slower in (("boxloss", 1), ("eager", 25)):
                if name == "boxloss" or boxes <= 10**7:
                    each = passes(boxes * forward, boxes * (backward - forward), slower)
                    found += [where | {"variant": name} | row for row in each]
    return found


def ragged_rows(where: dict[str, Any], images: int, slots: int, boxes: int, longest: int) -> Any:
    where = where | {"boxes": boxes, "longest": longest}
    written = images * slots * 8
    read = {"padded": images * slots * 4 + boxes * 8, "lengths": 12 * boxes, "offsets": 12 * boxes}
    found = [
        where | {"variant": name} | row for name in read for row in passes(read[name], written, 1.2)
    ]
    eager = passes(read["padded"], written, 30)
    return [*found, *(where | {"variant": "eager"} | row for row in eager)]


def one_rows() -> list[dict[str, Any]]:
    images, slots = GPU.article
    found = dense_rows()
    for size in GPU.batches:
        found += ragged_rows({"sweep": "images", "size": size}, size, slots, 2 * size, 10)
    for size in GPU.slots:
        found += ragged_rows({"sweep": "slots", "size": size}, images, size, 2 * images, 10)
    for mean in GPU.means:
        for longest, name in enumerate(DISTRIBUTIONS, 10):
            where = {"sweep": "distributions", "distribution": name, "mean": mean}
            found += ragged_rows(where, *GPU.crowd, round(GPU.crowd[0] * mean), longest)
    return found


def rank_rows() -> list[dict[str, Any]]:
    forward, backward = bytes_of_pair("f32/f32")
    added = {COUNT: 4} | {gradient_of(n): 4 * n for n in GPU.parameters}
    cost = {name: LATENCY + moved / LINK for name, moved in added.items()}
    found: list[dict[str, Any]] = [
        {
            "part": "collective",
            "step": name,
            "bytes": added[name],
            "microseconds": times(wall=cost[name], stream=cost[name]),
        }
        for name in added
    ]
    for boxes in GPU.rank_sizes:
        loss = LAUNCH["wall"][FORWARD] + boxes * forward / RATE
        step = LAUNCH["wall"][BOTH] + boxes * (forward + backward) / RATE + cost[COUNT]
        parts = {LOSS: loss, NORMALIZED: loss + cost[COUNT], STEP: step}
        parts |= {step_with(n): step + cost[gradient_of(n)] for n in GPU.parameters}
        found += [
            {
                "part": "step",
                "step": name,
                "boxes": boxes,
                "bytes": boxes * (forward + backward * (name not in (LOSS, NORMALIZED))),
                "microseconds": times(wall=each, stream=each),
                "difference": 1e-9,
            }
            for name, each in parts.items()
        ]
    return found


def report(several: bool = True) -> dict[str, Any]:
    """As it is read from a file."""
    settings = asdict(GPU)
    command = "python -m benchmarks.scale --gpus 2 --json scale.json"
    common = {"machine": MACHINE, "settings": settings, "command": command}
    found = common | {"skipped": {}, "one": common | {"rows": one_rows(), "skipped": {}}}
    if several:
        found["several"] = common | {"rows": rank_rows(), "ranks": 2, "backend": "NCCL"}
    found["findings"] = findings(found)
    read: dict[str, Any] = json.loads(json.dumps(found))
    return read
