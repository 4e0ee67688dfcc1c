# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Ultralytics' RT-DETR: a small model, its criterion, and what the model gives it."""

import copy
from typing import Any

import detr_cases as cases
import torch
from boxloss.torch.compat.families.ultralytics_rt_detr import DetectionLoss, check_parts
from boxloss.torch.compat.ultralytics_models import replace_heads
from criteria import Case, Criterion, Leaves, Modules, by_modules, denoising_of
from detr_cases import CLASSES, LAYERS, QUERIES
from ultralytics.models.utils.loss import RTDETRDetectionLoss
from ultralytics.nn.tasks import RTDETRDetectionModel

from examples import yolo

SMALL = {**yolo.SMALL, "head": [[[2, 3], 1, "RTDETRDecoder", ["nc", 32, QUERIES, 4, 4, 2, 32]]]}
MODES: tuple[dict[str, Any], ...] = (
    {"use_vfl": True},
    {},  # focal
    {"use_fl": False},  # cross entropy
    {"use_vfl": True, "aux_loss": False},
)


def small_model() -> RTDETRDetectionModel:
    model = RTDETRDetectionModel(SMALL, verbose=False)
    model.nc = SMALL["nc"]  # as a trainer sets it
    return model.to(torch.get_default_dtype())  # its attention has some of float32


def both(**mode: Any) -> Modules:
    original = RTDETRDetectionLoss(nc=CLASSES, **mode)
    replaced = copy.deepcopy(original)
    replace_heads(replaced, DetectionLoss, check_parts)
    return Modules(original, replaced)


def leaves(counts: tuple[int, ...], noisy: int, seed: int) -> Leaves:
    random = cases.generator(seed)
    made = {}
    for name, queries in {"": QUERIES, "dn_": noisy}.items():
        shape = LAYERS, len(counts), queries
        if queries:
            made[f"{name}bboxes"] = cases.boxes(shape, random)
            made[f"{name}scores"] = cases.logits((*shape, CLASSES), random)
    return made


def arguments_of(case: Case) -> dict[str, Any]:
    counts, values = case.counts, dict(case.values)
    preds = values.pop("bboxes"), values.pop("scores")
    batch = {
        "bboxes": torch.cat([each["boxes"] for each in case.labels]),
        "cls": torch.cat([each["class_labels"] for each in case.labels]),
        "gt_groups": list(counts),
    }
    if case.denoising is None:
        return {"preds": preds, "batch": batch}
    # On the host, whatever device the rest is on.
    noise: Any = denoising_of(counts, case.denoising["dn_num_group"])
    meta = {
        "dn_pos_idx": noise["dn_positive_idx"],
        "dn_gt_idx": list(torch.arange(sum(counts)).split(counts)),
        "dn_num_group": noise["dn_num_group"],
    }
    return {"preds": preds, "batch": batch, **values, "dn_meta": meta}


ULTRALYTICS_RT_DETR = Criterion(
    *by_modules(lambda _, losses: torch.stack([*losses.values()]).sum()),
    both,
    MODES,
    leaves,
    arguments=arguments_of,
)
