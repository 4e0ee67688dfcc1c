# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""RF-DETR's criterion, and what its model gives it."""

import copy
from typing import Any

import detr_cases as cases
import torch
from boxloss.torch.compat import use_boxloss
from criteria import Case, Criterion, Leaves, Modules, by_modules
from detr_cases import QUERIES, Targets
from rfdetr.models.criterion import SetCriterion
from rfdetr.models.matcher import HungarianMatcher
from torch import Tensor

CLASSES, GROUPS, LAYERS = 5, 13, ("", "_0", "_1", "_enc")
WEIGHTS = {"loss_ce": 1.0, "loss_bbox": 5.0, "loss_giou": 2.0}
MODES: tuple[dict[str, Any], ...] = (
    {"ia_bce_loss": True},
    {"ia_bce_loss": True, "sum_group_losses": True},
    {"use_position_supervised_loss": True},
    {"use_varifocal_loss": True},
    {},  # focal
)


def made(losses: tuple[str, ...] = ("labels", "boxes", "cardinality"), **mode: Any) -> SetCriterion:
    weights = {f"{name}{layer}": each for layer in LAYERS for name, each in WEIGHTS.items()}
    matcher = HungarianMatcher(cost_class=2, cost_bbox=5, cost_giou=2)
    return SetCriterion(CLASSES, matcher, weights, 0.25, [*losses], GROUPS, **mode)


def both(in_training: bool = True, **mode: Any) -> Modules:
    original = made(**mode).train(in_training)
    replaced = copy.deepcopy(original)
    use_boxloss(replaced)
    return Modules(original, replaced)


def leaves(counts: tuple[int, ...], _: int = 0, seed: int = 0) -> Leaves:
    """Scores and boxes of each layer, by name."""
    random = cases.generator(seed)
    shape = len(counts), QUERIES * GROUPS
    made = {f"scores{layer}": cases.logits((*shape, CLASSES), random) for layer in LAYERS}
    return made | {f"boxes{layer}": cases.boxes(shape, random) for layer in LAYERS}


def outputs_of(values: Leaves) -> dict[str, Any]:
    last, *others, encoder = (
        {"pred_logits": values[f"scores{layer}"], "pred_boxes": values[f"boxes{layer}"]}
        for layer in LAYERS
    )
    return {**last, "aux_outputs": others, "enc_outputs": encoder}


def truth_of(labels: Targets) -> Targets:
    return [{"boxes": each["boxes"], "labels": each["class_labels"] % CLASSES} for each in labels]


def arguments_of(case: Case) -> dict[str, Any]:
    return {"outputs": outputs_of(case.values), "targets": truth_of(case.labels)}


def total_of(criterion: SetCriterion, losses: Leaves) -> Tensor:
    return torch.stack(
        [weight * losses[name] for name, weight in criterion.weight_dict.items()]
    ).sum()


RF_DETR = Criterion(
    *by_modules(total_of),
    both,
    tuple({**mode, "in_training": is_so} for mode in MODES for is_so in (True, False)),
    leaves,
    groups=(0,),
    arguments=arguments_of,
)
