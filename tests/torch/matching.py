# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""A matcher's cost from its definition, in double, entry by entry."""

from itertools import pairwise
from typing import Any

import torch
from boxloss._options import LOSS_PARAMETERS
from comparison import UNIT_ROUNDOFF, assert_within
from formula import corners, of_pairs
from problems import PARAMETERS, boxes
from torch import Tensor

Problem = dict[str, Any]


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
    return {
        "pred": pred.to(pred_dtype),
        "target": target,
        "offsets": offsets.to(device),
        **options,
    }


def classes(values: Problem, count: int = 5, dtype: torch.dtype = torch.float32) -> Problem:
    """Logits of at most 6, and labels, two of which are no class."""
    random = torch.Generator().manual_seed(6)
    shape = (*values["pred"].shape[:-1], count)
    logits = (2 * torch.randn(shape, generator=random)).clamp(-6, 6)
    labels = torch.randint(count, (len(values["target"]),), generator=random)
    labels[2:3], labels[4:5] = -1, count
    device = values["pred"].device
    return {**values, "logits": logits.to(device, dtype), "labels": labels.to(device)}


def check_cost(actual: Tensor, values: Problem) -> None:
    """Everything that is promised of the result's values, computed in float64 from finite terms.

    Some 100 roundings lie between them and an entry, of which a logarithm has four; the result is
    stored in float32.
    """
    expected = plain_cost(values)
    assert (actual.dtype, actual.device) == (torch.float32, values["pred"].device)
    assert actual.shape == expected.shape
    assert not actual.requires_grad
    is_own = torch.zeros(actual.shape[-1], dtype=torch.bool)
    first, *_, last = bounds_of(values)
    is_own[first:last] = True
    assert (actual[..., ~is_own] == 0).all(), "a column of no image is not 0"
    assert expected.isfinite().all()
    largest = expected.abs().amax() if expected.numel() else 0.0
    assert_within(actual, expected, 100 * UNIT_ROUNDOFF[torch.float64] * largest, "cost")


def bounds_of(values: Problem) -> list[int]:
    columns = len(values["target"])
    return [min(max(offset, 0), columns) for offset in values["offsets"].tolist()]


def plain_cost(values: Problem) -> Tensor:
    """One image after the other."""
    pred = values["pred"].detach().cpu().double()
    target = values["target"].detach().cpu().double()
    cost = torch.zeros(*pred.shape[:-3], pred.shape[-2], len(target)).double()
    for image, own in enumerate(map(slice, *zip(*pairwise(bounds_of(values)), strict=True))):
        p, t = pred[..., image, :, None, :], target[own]
        entry = cost[..., own]
        if weight := values.get("iou_weight", 2.0):
            entry += weight * (loss_of(values, p, t) - 1)
        if weight := values.get("l1_weight", 5.0):
            entry += weight * (p - t).abs().sum(-1)
        if weight := values.get("class_weight", 1.0):
            entry += weight * class_term(values, image, own)
    return cost


def loss_of(values: Problem, p: Tensor, t: Tensor) -> Tensor:
    of_pred, of_target = (
        corners(each, values.get(f"{name}_format", "cxcywh"), torch.float64)
        for name, each in (("pred", p), ("target", t))
    )
    loss = values.get("loss", "giou")
    options = {n: values[n] for n in ("eps_mode", *LOSS_PARAMETERS.get(loss, ())) if n in values}
    both = torch.broadcast_tensors(of_pred, of_target)
    return of_pairs(*both, loss, eps=values.get("eps", 0.0), **options).loss


def class_term(values: Problem, image: int, own: slice) -> Tensor | float:
    if "class_cost" in values:
        return values["class_cost"].cpu().double()[..., own]
    if "logits" not in values:
        return 0.0
    logits = values["logits"].detach().cpu().double()[..., image, :, :]
    labels = values["labels"].cpu().long()[own]
    is_class = (labels >= 0) & (labels < logits.shape[-1])
    mode = values.get("class_mode", "softmax")
    if mode == "focal":
        terms = focal(logits, values.get("focal_alpha", 0.25), values.get("focal_gamma", 2.0))
    else:
        terms = -logits.sigmoid() if mode == "sigmoid" else -logits.softmax(-1)
    return torch.where(is_class, terms[..., labels.where(is_class, 0)], 0.0)


def focal(logits: Tensor, alpha: float, gamma: float) -> Tensor:
    """Deformable DETR's, from its formula."""
    p, rest = logits.sigmoid(), (-logits).sigmoid()
    of_others = (1 - alpha) * p**gamma * -(rest + 1e-8).log()
    return alpha * rest**gamma * -(p + 1e-8).log() - of_others
