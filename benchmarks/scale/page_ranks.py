# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What several GPUs cost, and a cluster would, in words."""

from __future__ import annotations

import math
from statistics import median
from typing import Any

from ..common.bars import number
from ..common.page import details, table
from .cases import Row
from .findings import CLUSTER_BOXES, chosen, seconds
from .model import Line
from .ranks import LOSS, NORMALIZED, STEP, gradient_of, millions
from .words import cell, mostly_calls, rounded, time


def rank_words(part: Row, found: dict[str, Any]) -> str:
    collective = Line(**found["collective"])
    steps = chosen(part["rows"], part="step")
    names = list(dict.fromkeys(row["step"] for row in steps))
    lines = [
        [
            f"{boxes:,}",
            *(cell(chosen(steps, boxes=boxes, step=name), "wall") for name in names),
        ]
        for boxes in dict.fromkeys(row["boxes"] for row in steps)
    ]
    longer = _longer(part["settings"]["parameters"], found["boxes_like"])
    words = (
        f"**{part['ranks']} GPUs, {part['backend']}.** An all-reduce takes "
        f"{time(collective.fixed)} plus the bytes at {number(collective.rate / 1e9)} GB/s. "
        f"{_normalizer(steps, found['shares'])} {longer} Parts run one after "
        f"the other here, and their sum is within {found['parts_off']:.0%} of the step; "
        "DistributedDataParallel lets gradients travel during the network's backward."
    )
    hidden = table(["boxes on each GPU", *names], lines)
    return f"{words}\n\n{details('Wall time, µs, of the slowest GPU, by boxes', hidden)}"


def _normalizer(steps: list[Row], shares: list[Row]) -> str:
    few, last = mostly_calls(shares), shares[-1]
    costs = [_in_step(steps, each["boxes"]) for each in few]
    words = (
        f"One normalizer for all makes the loss alone take about "
        f"{median(each['normalizer'] for each in few):.0%} ({time(median(costs))}) longer with up "
        f"to {few[-1]['boxes']:,} boxes on each"
    )
    if last is few[-1]:
        return f"{words}."
    return f"{words}, {last['normalizer']:.0%} with {last['boxes']:,}."


def _in_step(steps: list[Row], boxes: int) -> float:
    """What the normalizer costs beside the loss."""
    times = {row["step"]: seconds(row, "wall") for row in chosen(steps, boxes=boxes)}
    return times[NORMALIZED] - times[LOSS]


def _longer(parameters: list[int], boxes_like: dict[str, float]) -> str:
    """Than which all-reduces loss and backward take, by the model."""

    def where(boxes: float) -> str:
        if math.isinf(boxes):
            return "at no number of boxes"
        return f"from {rounded(boxes)} boxes a GPU on" if boxes else "at any number of boxes"

    networks = (f"{millions(n)} parameters {where(boxes_like[gradient_of(n)])}" for n in parameters)
    words = "By the model, loss and backward take longer than the all-reduce of"
    return f"{words} {', of '.join(networks)}."


def cluster_words(part: Row, found: dict[str, Any]) -> str:
    parameters = part["settings"]["parameters"]
    names = [gradient_of(n) for n in parameters]
    collectives = chosen(part["rows"], part="collective")
    steps = chosen(part["rows"], part="step", boxes=CLUSTER_BOXES)
    lines = []
    inside = ""
    if steps:
        (step,) = chosen(steps, step=STEP)
        cost, took = _in_step(steps, CLUSTER_BOXES), seconds(step, "wall")
        gradients = (seconds(chosen(collectives, step=name)[0], "wall") for name in names)
        lines.append(
            [f"{part['ranks']}, measured", time(took), f"{cost / took:.0%}", *map(time, gradients)]
        )
        inside = (
            f" Inside the measured step the count costs {time(cost)}, alone "
            f"{time(found['collective']['fixed'])}."
        )
    lines += [
        [
            f"{row['gpus']:,}, modelled",
            time(row["step"]),
            f"{row['count'] / row['step']:.0%}",
            *(time(row["gradients"][name]) for name in names),
        ]
        for row in found["cluster"]
    ]
    most = found["cluster"][-1]
    times = [most["gradients"][name] / most["step"] for name in names]
    costs = ", ".join(
        f"one of {millions(n)} parameters {each:.1f} times"
        for n, each in zip(parameters, times, strict=True)
    )
    worst = found["step"]["worst"]
    words = (
        f"**For a cluster**, modelled from {part['ranks']} GPUs, with {CLUSTER_BOXES:,} boxes on "
        "each: latency grows like log2 of their number, as in a tree, traffic as in a ring, and "
        "every link is taken to be as fast as theirs, which it is not between hosts. Boxes stay "
        "where they are, so the loss' own work does not grow; of the count, four bytes, only the "
        "latency does. It is a rough model: its line through the measured steps is up to "
        f"{worst:.0%} off.{inside} On "
        f"{most['gpus']:,} GPUs the gradients of a network take so many times as long as the loss "
        f"with its normalizer and backward: {costs}. DistributedDataParallel can hide most of that "
        "behind the network's backward (not measured)."
    )
    head = ["GPUs", STEP, "of it the count", *names]
    return f"{words}\n\n{table(head, lines)}"
