# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What is timed in a build's process."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from functools import partial

import boxloss.torch
import torch
from torch import Tensor

from ...common.cases import SEED_PAIRS, Case, boxloss_giou, dense_case, seed_case
from ...runner.clocks import Calls, Effort, Samples, gpu_samples, host_samples, wall_samples
from ...runner.run import BOTH, FORWARD

SMALL = 2**12
LARGE = {"cuda": 2**25, "cpu": 2**20}
EFFORT = Effort(0.15, 5)

Times = dict[str, float]


def times_of(device: torch.device, rows: list[str] | None) -> Times:
    """Seconds by row; of those rows alone whose case is among the given ones."""
    found: Times = {}
    for case, calls in cases(device):
        if rows is not None and not any(row.startswith(f"{case}: ") for row in rows):
            continue
        found |= {f"{case}: {name}": seconds for name, seconds in clocks(calls(), device).items()}
        if device.type == "cuda":
            torch.cuda.empty_cache()
    return found


def clocks(calls: Calls, device: torch.device) -> Times:
    if device.type == "cpu":
        return medians(wall_samples(calls, device, EFFORT))
    gpu, refused = gpu_samples(calls, EFFORT)
    if refused:
        raise RuntimeError(f"cannot be captured: {refused}")
    host = host_samples(calls, device, EFFORT)
    return medians(gpu | {f"{name}, host": samples for name, samples in host.items()})


def medians(samples: Samples) -> Times:
    return {name: statistics.median(each) for name, each in samples.items()}


def cases(device: torch.device) -> Iterator[tuple[str, Callable[[], Calls]]]:
    """By name, and what makes the calls: not all of them would fit into memory at once."""
    for pair in SEED_PAIRS:
        for size, boxes in ("small", SMALL), ("large", LARGE[device.type]):
            yield (
                f"dense, {size}, {boxes:,} boxes, {pair}",
                partial(dense_calls, pair, boxes, device),
            )
        for name, layout in ("padded",) * 2, ("lengths",) * 2, ("ragged", "offsets"):
            yield f"seed batch, {name}, {pair}", partial(seed_calls, pair, layout, device)
    yield "DETR's layers, box_losses by index", partial(layers_calls, device)
    yield "DETR's layers, matching_cost", partial(cost_calls, device)


def dense_calls(pair: str, boxes: int, device: torch.device) -> Calls:
    return calls_of(dense_case(pair, boxes, device), "dense")


def seed_calls(pair: str, layout: str, device: torch.device) -> Calls:
    return calls_of(seed_case(pair, device), layout)


def calls_of(case: Case, layout: str) -> Calls:
    return passes(case.on(boxloss_giou(layout), layout), case.pred)


LAYERS, IMAGES, QUERIES, BOXES, CLASSES = 6, 8, 300, 7, 80


def layers_calls(device: torch.device) -> Calls:
    """Each ground-truth box meets one query of its image in each layer."""
    pred, target, generator = drawn_layers(device)
    matched = torch.rand(LAYERS, IMAGES, QUERIES, generator=generator).argsort(-1)[..., :BOXES]
    first = torch.arange(LAYERS * IMAGES).view(LAYERS, IMAGES, 1) * QUERIES
    rows = torch.arange(IMAGES * BOXES).expand(LAYERS, -1).contiguous()
    call = partial(
        boxloss.torch.box_losses,
        pred.requires_grad_(),
        target,
        pred_format="cxcywh",
        target_format="cxcywh",
        pred_index=(first + matched).flatten(1).to(device),
        target_index=rows.to(device),
    )
    return passes(lambda: call()[:2], pred)


def cost_calls(device: torch.device) -> Calls:
    pred, target, generator = drawn_layers(device)
    logits = torch.randn(LAYERS, IMAGES, QUERIES, CLASSES, generator=generator)
    labels = torch.randint(CLASSES, (IMAGES * BOXES,), generator=generator)
    offsets = torch.arange(IMAGES + 1) * BOXES
    logits, labels, offsets = (each.to(device) for each in (logits, labels, offsets))
    call = partial(boxloss.torch.matching_cost, pred, target, offsets, class_mode="focal")
    return {FORWARD: partial(call, logits=logits, labels=labels)}


def drawn_layers(device: torch.device) -> tuple[Tensor, Tensor, torch.Generator]:
    generator = torch.Generator().manual_seed(0)
    pred = torch.rand(LAYERS, IMAGES, QUERIES, 4, generator=generator)
    target = torch.rand(IMAGES * BOXES, 4, generator=generator)
    return pred.to(device), target.to(device), generator


def passes(call: Callable[[], Tensor | tuple[Tensor, ...]], leaf: Tensor) -> Calls:
    def forward() -> object:
        with torch.no_grad():
            return call()

    def both() -> object:
        result = call()
        losses = (result,) if isinstance(result, Tensor) else result
        return torch.autograd.grad(losses, leaf, [torch.ones_like(loss) for loss in losses])

    return {FORWARD: forward, BOTH: both}
