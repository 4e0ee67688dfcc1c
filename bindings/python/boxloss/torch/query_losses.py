# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Losses, (layers), by each query's row of the ground truth: (layers, images, queries)."""

from typing import Any

from torch import Tensor

from .._options import BoxFormat, ClassLossMode, EpsMode, Loss
from .class_loss import class_loss
from .losses import BoxLosses, box_losses

BY_QUALITY = ("varifocal", "mal", "ia_bce")


def losses_of_scores(
    logits: Tensor,
    target_of_query: Tensor,
    labels: Tensor,
    iou: Tensor,
    normalizer: Tensor,
    mode: ClassLossMode,
    **options: Any,
) -> Tensor:
    """What asks for a quality is given the IoU; "softmax" divides by weights of its own."""
    given: dict[str, Any] = {"query_quality": iou} if mode in BY_QUALITY else {}
    if mode != "softmax":
        given["normalizer"] = normalizer
    return class_loss(logits, target_of_query, labels, mode=mode, **given | options)


def losses_of_pairs(
    pred: Tensor,
    target: Tensor,
    target_of_query: Tensor,
    normalizer: Tensor,
    loss: Loss = "giou",
    *,
    box_format: BoxFormat = "cxcywh",
    eps: float = 0.0,
    eps_mode: EpsMode = "add",
) -> BoxLosses:
    """Of pred (layers, images, queries, 4); and each query's IoU, 0 without a box."""
    total, l1, iou = box_losses(
        pred.flatten(1, 2),
        target,
        loss,
        eps=eps,
        eps_mode=eps_mode,
        pred_format=box_format,
        target_format=box_format,
        target_index=target_of_query.flatten(1),
        normalizer=normalizer,
    )
    # torch 2.11 compiles no _replace.
    return BoxLosses(total, l1, iou.view_as(target_of_query))
