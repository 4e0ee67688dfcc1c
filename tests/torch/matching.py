# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""A matcher's cost from its definition, on numbers with the bounds of running.py.

Bounded takes exp and log to be right to U = UNIT; focal's own logarithm may be a GPU's rough one,
which is within 4 U of itself or of 1. The result is stored as float32: see assert_within.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from comparison import assert_within
from formula import corners
from formulas import FORMULAS, Pair
from problems import boxes
from running import UNIT, Bounded, Dual
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
    """Everything that is promised of the result's values, with finite terms."""
    pred, target = values["pred"], values["target"]
    shape = (*pred.shape[:-3], pred.shape[-2], len(target))
    assert (actual.dtype, actual.device, actual.shape) == (torch.float32, pred.device, shape)
    assert not actual.requires_grad
    entries = entries_of(values)
    expected, error = torch.zeros(2, math.prod(shape)).double()
    is_own = torch.zeros(math.prod(shape), dtype=torch.bool)
    if len(entries.places):
        entry = entry_of(values, entries)
        expected[entries.places], error[entries.places] = entry.value, entry.error
        is_own[entries.places] = True
    assert bool((actual.cpu().reshape(-1)[~is_own] == 0).all()), "a column of no image is not 0"
    assert torch.all(error.isfinite())
    assert_within(actual, expected.reshape(shape), error.reshape(shape), "cost")


@dataclass
class Entries:
    """Rows of the flattened pred (and logits), of target, and of the flattened result."""

    queries: Tensor
    columns: Tensor
    places: Tensor


def entries_of(values: Problem) -> Entries:
    """One by one in Python."""
    *leading, images, queries, _ = values["pred"].shape
    columns = len(values["target"])
    bounds = [min(max(offset, 0), columns) for offset in values["offsets"].tolist()]
    found = [
        ((layer * images + image) * queries + q, t, (layer * queries + q) * columns + t)
        for layer in range(math.prod(leading))
        for image, (first, last) in enumerate(pairwise(bounds))
        for q in range(queries)
        for t in range(first, last)
    ]
    return Entries(*torch.tensor(found, dtype=torch.int64).reshape(-1, 3).T)


def entry_of(values: Problem, at: Entries) -> Bounded:
    """Of what its weights leave of the three terms."""
    is_double = torch.float64 in (values["pred"].dtype, values["target"].dtype)
    compute = torch.float64 if is_double else torch.float32
    raw = [
        values[name].detach().cpu().reshape(-1, 4)[rows].to(compute).double()
        for name, rows in (("pred", at.queries), ("target", at.columns))
    ]
    terms: list[tuple[str, float, Callable[[], Bounded]]] = [
        ("iou_weight", 2.0, lambda: loss_less_one(values, *raw, compute)),
        ("l1_weight", 5.0, lambda: l1_of(*raw, compute)),
    ]
    if "logits" in values or "class_cost" in values:
        terms.append(("class_weight", 1.0, lambda: class_term(values, at, compute)))
    entry = Bounded.of(torch.zeros(len(at.places)).double(), compute)
    for name, default, term in terms:
        if (weight := values.get(name, default)) != 0:
            entry = entry.plus(term().times(rounded(weight, compute)), in_any_order=True)
    return entry


def rounded(values: Any, compute: torch.dtype) -> Bounded:
    """What is given in another dtype, maybe."""
    exact = torch.as_tensor(values, dtype=torch.float64)
    return Bounded.of(exact, compute, (exact - exact.to(compute).double()).abs())


def loss_less_one(values: Problem, raw_p: Tensor, raw_t: Tensor, compute: torch.dtype) -> Bounded:
    p = corners(raw_p, values.get("pred_format", "cxcywh"), compute)
    t = corners(raw_t, values.get("target_format", "cxcywh"), compute)
    eps = torch.tensor(values.get("eps", 0.0), dtype=compute).double()
    pair = Pair(numbers(p, compute), numbers(t, compute), eps, values.get("eps_mode", "add"))
    return FORMULAS[values.get("loss", "giou")](pair).primal.plus(rounded(-1.0, compute))


def numbers(box: Tensor, compute: torch.dtype) -> list[Dual]:
    """Four exact numbers, without derivatives."""
    constant = Bounded.of(torch.zeros(1, len(box)).double(), compute)
    return [Dual(Bounded.of(value, compute), constant) for value in box.unbind(-1)]


def l1_of(raw_p: Tensor, raw_t: Tensor, compute: torch.dtype) -> Bounded:
    differences = [
        Bounded.of(p, compute).plus(Bounded.of(-t, compute))
        for p, t in zip(raw_p.unbind(-1), raw_t.unbind(-1), strict=True)
    ]
    return total([Bounded.of(each.value.abs(), compute, each.error) for each in differences])


def total(values: list[Bounded]) -> Bounded:
    result = values[0]
    for each in values[1:]:
        result = result.plus(each, in_any_order=True)
    return result


def class_term(values: Problem, at: Entries, compute: torch.dtype) -> Bounded:
    if "class_cost" in values:
        *leading, _, queries, _ = values["pred"].shape
        shape = (*leading, queries, len(values["target"]))
        given = values["class_cost"].cpu().double().expand(shape).reshape(-1)[at.places]
        return rounded(given, compute)
    count = values["logits"].shape[-1]
    logits = values["logits"].detach().cpu().double().reshape(-1, count)[at.queries]
    labels = values["labels"].cpu().long()[at.columns]
    is_class = (labels >= 0) & (labels < count)
    x = logits.gather(1, labels.where(is_class, 0)[:, None])[:, 0]
    mode = values.get("class_mode", "softmax")
    if mode == "focal":
        alpha, gamma = values.get("focal_alpha", 0.25), values.get("focal_gamma", 2.0)
        term = focal(rounded(x, compute), alpha, gamma)
    elif mode == "sigmoid":
        term = -sigmoid(rounded(x, compute))
    else:
        term = -softmax(rounded(x, compute), rounded(logits, compute))
    return Bounded.of(term.value.where(is_class, 0.0), compute, term.error.where(is_class, 0.0))


def softmax(x: Bounded, logits: Bounded) -> Bounded:
    """By the logarithm of the sum of all, less the largest, as torch has it."""
    largest = rounded(logits.value.max(1).values, x.compute)
    parts = zip(logits.value.unbind(1), logits.error.unbind(1), strict=True)
    each = [Bounded.of(value, x.compute, error).plus(-largest) for value, error in parts]
    sum_of_all = total([one.exp() for one in each])
    return x.plus(-largest).plus(-sum_of_all.log()).exp()


def sigmoid(x: Bounded) -> Bounded:
    e = Bounded.of(-x.value.abs(), x.compute, x.error).exp()
    larger = e.plus(rounded(1.0, x.compute)).reciprocal()
    smaller, is_negative = e.times(larger), x.value < 0
    value, error = (
        torch.where(is_negative, getattr(smaller, name), getattr(larger, name))
        for name in ("value", "error")
    )
    return Bounded.of(value, x.compute, error)


def focal(x: Bounded, alpha: float, gamma: float) -> Bounded:
    """Deformable DETR's, from its formula."""

    def charged(factor: Bounded, focus: Bounded, other: Bounded) -> Bounded:
        log = other.plus(rounded(1e-8, x.compute)).log()
        rough = 4 * UNIT[x.compute] * log.value.abs().clamp(min=1.0)
        log = Bounded.of(log.value, x.compute, log.error + rough)
        power = focus.times(focus)
        if gamma != 2:
            power = focus.log().times(rounded(gamma, x.compute)).exp()
        return power.times(log).times(factor)

    p, rest, of_this = sigmoid(x), sigmoid(-x), rounded(alpha, x.compute)
    of_others = rounded(1.0, x.compute).plus(-of_this)
    return charged(of_others, p, rest).plus(-charged(of_this, rest, p), in_any_order=True)
