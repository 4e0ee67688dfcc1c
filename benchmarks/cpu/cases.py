# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Few boxes among many anchors."""

from __future__ import annotations

import torch

from ..common.cases import Case, near, true_boxes


def retinanet_case(images: int, anchors: int, foreground: float, seed: int = 0) -> Case:
    """Decoded boxes and the true box of each anchor, where the mask says that it has one."""
    generator = torch.Generator().manual_seed(seed)
    count = round(images * anchors * foreground)
    mask = torch.zeros(images * anchors, dtype=torch.bool)
    mask[torch.randperm(len(mask), generator=generator)[:count]] = True
    mask = mask.view(images, anchors)
    truths = true_boxes(count, generator)
    # What leaks out of an anchor without a true box is found out by the agreement check.
    pred, target = torch.full((2, images, anchors, 4), torch.nan)
    pred[mask] = near(truths, generator)
    target[mask] = truths
    read = mask.nbytes + 2 * truths.nbytes
    return Case(
        "retinanet",
        "f32/f32",
        pred.clone().requires_grad_(),
        {"mask": (target.clone(), mask)},
        mask,
        count,
        read,
        read + pred.nbytes,
    )
