# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Who computes a detector's losses.

boxloss is what examples/ puts in place of a criterion. aligned is the same text with plain torch
where it calls boxloss, so that all else is equal; torch.compile has that to compile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import boxloss.torch
import torch
from torch import Tensor

from ..common.losses import UnavailableError, scipy_assignment
from ..matcher.formulas import FOCAL_ALPHA
from . import plain
from .cases import MATCHER_AND_BOXES, Case
from .criteria import Step, our_criterion, own_criterion, own_matcher_and_boxes
from .detr_cases import GIOU_WEIGHT, L1_WEIGHT, DetrCase


@dataclass(frozen=True)
class Variant:
    load: Callable[[Case], Step]  # raises UnavailableError
    slow_to_start: bool = False  # left out by --quick


def variants(measured: str) -> dict[str, Variant]:
    """The first is what ratios are taken to."""
    plain_compiled = partial(load_compiled, measured=measured, operators=plain.operators)
    fused_compiled = partial(load_compiled, measured=measured, operators=fused_operators)
    return {
        "boxloss": Variant(partial(load_boxloss, measured=measured)),
        "boxloss, compiled": Variant(fused_compiled, slow_to_start=True),
        "torch.compile": Variant(plain_compiled, slow_to_start=True),
        "aligned": Variant(partial(load_aligned, measured=measured)),
        "original": Variant(partial(load_original, measured=measured)),
    }


def fused_operators(counts: tuple[int, ...], compiled: bool = False) -> plain.Operators:
    """boxloss' own, to which `counts` are nothing new."""
    found = {name: getattr(boxloss.torch, name) for name in plain.operators(counts)}
    return plain.with_eager_host(found) if compiled else found


def load_boxloss(case: Case, measured: str) -> Step:
    return _step(case, measured, fused_operators(case.counts))


def load_aligned(case: Case, measured: str) -> Step:
    return _step(case, measured, plain.operators(case.counts))


def load_compiled(case: Case, measured: str, operators: Callable[..., plain.Operators]) -> Step:
    """For these very shapes. What is awaited, or is for the host, stands between the graphs."""
    step = _step(case, measured, operators(case.counts, compiled=True))
    compiled = torch.compile(step, dynamic=False)
    leaves = [case.leaves[name] for name in case.measured[measured]]
    try:
        torch.autograd.grad(compiled(), leaves)
    except RuntimeError as error:
        raise UnavailableError(f"cannot be compiled: {str(error).splitlines()[0]}") from error
    return compiled


def _step(case: Case, measured: str, operators: plain.Operators) -> Step:
    if isinstance(case, DetrCase):
        scipy_assignment()  # or UnavailableError
    if measured == MATCHER_AND_BOXES:
        assert isinstance(case, DetrCase)
        return lambda: matcher_and_boxes(case, operators)
    return our_criterion(case, operators)


def load_original(case: Case, measured: str) -> Step:
    if measured == MATCHER_AND_BOXES:
        assert isinstance(case, DetrCase)
        return own_matcher_and_boxes(case)
    return own_criterion(case)


def matched(case: DetrCase, operators: plain.Operators) -> tuple[Tensor, ...]:
    """Boxes of all layers, true boxes, and both sides' indices: as the examples begin."""
    scores, boxes = case.scores(case.leaves), case.boxes(case.leaves)
    labels, cost = case.inputs["labels"], case.cost
    true_boxes, offsets = operators["collate_ragged"]([each["boxes"] for each in labels])
    costs = operators["matching_cost"](
        boxes,
        true_boxes,
        offsets,
        logits=scores,
        labels=torch.cat([each["class_labels"] for each in labels]),
        iou_weight=cost.iou_weight,
        l1_weight=cost.l1_weight,
        class_weight=cost.class_weight,
        class_mode=cost.class_mode,
        focal_alpha=FOCAL_ALPHA,
        nonfinite=torch.finfo(torch.float32).max,
    )
    return boxes, true_boxes, *operators["hungarian_match"](costs, offsets)


def matcher_and_boxes(case: DetrCase, operators: plain.Operators) -> Tensor:
    boxes, true_boxes, pred_index, target_index = matched(case, operators)
    giou, l1, _ = operators["box_losses"](
        boxes,
        true_boxes,
        "giou",
        eps=0.0,
        pred_format="cxcywh",
        target_format="cxcywh",
        pred_index=pred_index,
        target_index=target_index,
        normalizer=torch.full((), float(len(true_boxes)), device=boxes.device),
    )
    return (GIOU_WEIGHT * giou + L1_WEIGHT * l1).sum()
