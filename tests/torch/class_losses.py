# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Class losses as their sources write them, in double on the CPU, and problems for them."""

from typing import Any, get_args

import torch
from boxloss._options import ClassLossMode
from problems import Problem
from torch import Tensor
from torch.nn import functional

MODES: tuple[str, ...] = get_args(ClassLossMode)
OF_QUALITY = ("varifocal", "mal", "ia_bce", "bce")
# By mode: the sources' alpha and gamma, which are the defaults.
NUMBERS = {"focal": (0.25, 2.0), "varifocal": (0.75, 2.0), "mal": (1.0, 1.5), "ia_bce": (0.25, 2.0)}
TARGETS = 6


def class_problem(
    mode: str,
    device: torch.device,
    dtype: torch.dtype = torch.float32,
    shape: tuple[int, ...] = (2, 3, 5, 7),
    **options: Any,
) -> Problem:
    """Logits of at most 4, queries without a box or left out, and rows and labels there are not."""
    random = torch.Generator().manual_seed(3)

    def numbers(*size: int) -> Tensor:
        return torch.rand(size, generator=random, dtype=torch.float64)

    values: Problem = {
        "logits": (8 * numbers(*shape) - 4).to(device, dtype),
        "target_index": torch.randint(-3, TARGETS + 1, shape[:-1], generator=random).to(device),
        "labels": torch.tensor([3, 0, shape[-1], -1, shape[-1] - 1, 2], device=device),
        "mode": mode,
        "weight": (0.5 + numbers(shape[-1])).to(device, torch.float32),
    }
    if mode in OF_QUALITY:
        values["quality"] = numbers(TARGETS).to(device, torch.float16)
    if mode == "softmax":
        values["no_object_weight"] = 0.25
    return {**values, **options}


def by_query(values: Problem) -> Problem:
    """The same qualities, a query's own; of queries without a box NaN, which nobody reads."""
    quality, index = values["quality"], values["target_index"]
    own = quality[index.clip(0, TARGETS - 1)]
    of_query = own.where((index >= 0) & (index < TARGETS), torch.nan)
    return {**{n: v for n, v in values.items() if n != "quality"}, "query_quality": of_query}


def own_classes(values: Problem) -> Tensor:
    """Each query's, found one by one: -1 for none."""
    labels, classes = values["labels"].tolist(), values["logits"].shape[-1]
    labels = [label if 0 <= label < classes else -1 for label in labels]
    rows = values["target_index"].flatten().tolist()
    own = [labels[row] if 0 <= row < len(labels) else -1 for row in rows]
    return torch.tensor(own, dtype=torch.int64).view(values["target_index"].shape)


def plain_class_loss(values: Problem) -> Tensor:
    """Differentiable. What is left out is not in the graph."""
    kept = values["target_index"].cpu() != -2
    own, x = own_classes(values)[kept], values["logits"].cpu().double()[kept]
    weight = torch.ones(x.shape[-1]).double()
    if values.get("weight") is not None:
        weight = values["weight"].detach().cpu().double()
    if values["mode"] == "softmax":
        wanted = own.where(own >= 0, x.shape[-1] - 1)
        shares = weight[wanted] * torch.where(own >= 0, 1.0, values.get("no_object_weight", 1.0))
        losses = shares * functional.cross_entropy(x, wanted, reduction="none")
    else:
        shares = (own >= 0).double()
        losses = (weight * of_classes(values, x, own, _qualities(values)[kept])).sum(-1)
    by_row = torch.zeros(kept.shape).double().index_put((kept,), losses)
    reduction = values.get("reduction", "mean")
    if reduction == "none":
        return by_row
    total, divisor = (
        each.flatten(1).sum(-1) if each.dim() == 3 else each.sum()
        for each in (by_row, torch.zeros(kept.shape).double().index_put((kept,), shares))
    )
    if reduction == "sum":
        return total
    if values.get("normalizer") is not None:
        return total / torch.as_tensor(values["normalizer"]).cpu().double()
    is_softmax = values["mode"] == "softmax"
    return total / (divisor.where(divisor != 0, 1) if is_softmax else divisor.clamp(min=1))


def _qualities(values: Problem) -> Tensor:
    index = values["target_index"].cpu().long()
    if values.get("query_quality") is not None:
        return values["query_quality"].detach().cpu().double()
    if values.get("quality") is not None and len(values["quality"]):
        quality = values["quality"].detach().cpu().double()
        return quality[index.clip(0, len(quality) - 1)]
    return torch.ones(index.shape).double()


def of_classes(values: Problem, x: Tensor, own: Tensor, quality: Tensor) -> Tensor:
    """Of each class of rows of logits."""
    mode, numbers = values["mode"], NUMBERS.get(values["mode"], (0.0, 0.0))
    alpha, gamma = (
        standard if values.get(name) is None else values[name]
        for name, standard in zip(("alpha", "gamma"), numbers, strict=True)
    )
    target = functional.one_hot(own + 1, x.shape[-1] + 1)[..., 1:].double()
    score = target * quality.where(own >= 0, 0)[..., None]
    p, towards = x.sigmoid(), functional.binary_cross_entropy_with_logits
    if mode == "focal":  # torchvision
        p_t = p * target + (1 - p) * (1 - target)
        losses = towards(x, target, reduction="none") * (1 - p_t) ** gamma
        return (alpha * target + (1 - alpha) * (1 - target)) * losses if alpha >= 0 else losses
    if mode == "varifocal":  # transformers, RT-DETR
        factor = alpha * p.detach() ** gamma * (1 - target) + score
        return towards(x, score, weight=factor, reduction="none")
    if mode == "mal":  # DEIM
        factor = alpha * p.detach() ** gamma * (1 - target) + target
        return towards(x, score**gamma * target, weight=factor, reduction="none")
    if mode == "ia_bce":  # RF-DETR
        t = (p**alpha * score ** (1 - alpha)).clamp(min=0.01).detach() * target
        negative = (1 - t) * target + p**gamma * (1 - target)
        return negative * x - functional.logsigmoid(x) * (t + negative)
    return towards(x, score, reduction="none")  # Ultralytics
