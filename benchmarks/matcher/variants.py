# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Who computes the cost of all layers, on the device.

All tensors lie on the device beforehand, the true boxes as each wants them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from boxloss.torch import matching_cost, pairwise_iou
from torch import Tensor

from ..common.losses import UnavailableError
from ..common.timing import Call
from .cases import ASSIGNER, WRITING, Case
from .formulas import FOCAL_ALPHA, padded_cost, padded_overlaps
from .originals import load_original

ORIGINAL = "original"
# What transformers puts in the place of NaN and infinity.
NONFINITE = torch.finfo(torch.float32).max


@dataclass(frozen=True)
class Costs:
    """What computes the cost, and how its result is read."""

    call: Callable[[], Any]
    block: Callable[[Any, int, int], Tensor]  # of layer and image: (queries, true boxes)


@dataclass(frozen=True)
class Variant:
    load: Callable[[Case], Costs]  # raises UnavailableError
    slow_to_start: bool = False  # left out by --quick


def load_boxloss(case: Case) -> Costs:
    cost = case.cost
    columns = [case.columns(image) for image in range(len(case.counts))]

    def call() -> Tensor:
        formats: dict[str, Any] = {
            "pred_format": cost.box_format,
            "target_format": cost.box_format,
            "eps": cost.eps,
        }
        if case.kind == ASSIGNER:
            return pairwise_iou(case.pred, case.target, case.offsets, cost.loss, **formats)
        return matching_cost(
            case.pred,
            case.target,
            case.offsets,
            logits=case.logits,
            labels=case.labels,
            loss=cost.loss,
            iou_weight=cost.iou_weight,
            l1_weight=cost.l1_weight,
            class_weight=cost.class_weight,
            class_mode=cost.class_mode,
            focal_alpha=FOCAL_ALPHA,
            nonfinite=NONFINITE,
            **formats,
        )

    return Costs(call, lambda costs, layer, image: costs[layer, :, columns[image]])


def load_padded(case: Case, fused: bool = False) -> Costs:
    call: Callable[[], Tensor] = partial(
        padded_cost,
        case.pred,
        case.logits,
        case.padded_target,
        case.padded_labels,
        case.cost,
        fused,
    )
    if case.kind == ASSIGNER:
        call = partial(padded_overlaps, case.pred, case.padded_target, case.cost.eps)
    return Costs(call, lambda costs, layer, image: costs[layer, image, :, : case.counts[image]])


def load_compiled(case: Case) -> Costs:
    padded = load_padded(case, fused=True)
    assert isinstance(padded.call, partial)
    # A function of its own: what is compiled for one case is not looked through in another.
    function = padded.call.func
    compiled = torch.compile(lambda *values: function(*values), dynamic=False)
    call = partial(compiled, *padded.call.args)
    try:
        call()
    except RuntimeError as error:
        raise UnavailableError(f"cannot be compiled: {str(error).splitlines()[0]}") from error
    return Costs(call, padded.block)


def load_original_costs(case: Case) -> Costs:
    columns = [case.columns(image) for image in range(len(case.counts))]
    by_image = (len(case.counts), case.shape.queries, -1)
    return Costs(
        load_original(case).costs,
        lambda layers, layer, image: layers[layer].view(by_image)[image, :, columns[image]],
    )


def variants(kind: str) -> dict[str, Variant]:
    """Those of a kind of case; the first is what ratios are taken to."""
    either = {
        "boxloss": Variant(load_boxloss),
        "torch.compile": Variant(load_compiled, slow_to_start=True),
        "padded": Variant(load_padded),
    }
    # Nobody's own code has these shapes: all queries by all true boxes would hardly fit.
    return either if kind in WRITING else {**either, ORIGINAL: Variant(load_original_costs)}


# What the hardware allows

FILL = "fill"


def limits(case: Case) -> dict[str, Call]:
    """Writing as much, and nothing else."""
    if case.kind not in WRITING:
        return {}
    written = case.target.new_empty(case.entries)
    return {FILL: partial(written.fill_, 1.0)}
