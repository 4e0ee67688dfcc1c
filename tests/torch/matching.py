# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Problems of a matcher's cost."""

from typing import Any

import torch
from problems import PARAMETERS, Problem, boxes


def cost_problem(
    device: torch.device,
    pred_dtype: torch.dtype = torch.float32,
    target_dtype: torch.dtype = torch.float32,
    layers: tuple[int, ...] = (2,),
    **options: Any,
) -> Problem:
    """Four images of three queries with 2, 0, 3 and 1 boxes; the first and last two are nobody's.

    Boxes of several pixels a side; every third query of an image is nearly one of its boxes.
    """
    options |= PARAMETERS.get(options.get("loss", ""), {})
    offsets = torch.tensor([1, 3, 3, 6, 7])
    pred_format = options.get("pred_format", "cxcywh")
    target_format = options.get("target_format", "cxcywh")
    target = boxes((9,), device, target_dtype, target_format, seed=2)
    pred = boxes((*layers, 4, 3), device, torch.float64, pred_format, seed=1)
    if pred_format == target_format:
        larger = torch.tensor([1.03, 0.99, 1.05, 1.02], device=device)
        pred[..., 0, :] = larger * target[offsets[:-1]].to(torch.float64)
    return {"pred": pred.to(pred_dtype), "target": target, "offsets": offsets.to(device), **options}


def classes(values: Problem, count: int = 5, dtype: torch.dtype = torch.float32) -> Problem:
    """Logits of at most 6, and labels, two of which are no class."""
    random = torch.Generator().manual_seed(6)
    shape = (*values["pred"].shape[:-1], count)
    logits = (2 * torch.randn(shape, generator=random)).clamp(-6, 6)
    labels = torch.randint(count, (len(values["target"]),), generator=random)
    labels[2:3], labels[4:5] = -1, count
    device = values["pred"].device
    return {**values, "logits": logits.to(device, dtype), "labels": labels.to(device)}
