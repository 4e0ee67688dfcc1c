# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""A matcher's cost from its definition, in double, and how far boxloss may be from it.

With U = UNIT of the compute dtype, at least two unit roundoffs; errors are absolute, and products
of two of them are covered by factors of 1.01:

    loss            running.py carries its error; loss - 1 rounds once: U of it
    l1              four differences and three sums: 2 U of it
    a logit x       rounds to the compute dtype: U |x|
    log-sum-exp     of C logits of at most m: the exponents are wrong by 2 m U + 2 m U, each exp by
                    2 U, the sum by C U, its logarithm by U log(C), and the last sum rounds:
                    (5 m + C + 2 + 2 log(C)) U
    softmax         relative: what log-sum-exp and x are wrong by, U for their difference of at most
                    2 m + log(C), and 2 U for exp
    sigmoid, 1 - p  relative: exp(-|x|) by U |x| + 2 U; then a sum, a reciprocal of 2 U and a
                    product: (|x| + 6) U =: r
    log(p + 1e-8)   r + 2 U, and the logarithm itself by 4 U of it or of 1 (a GPU's rough one)
    p^g             by gamma = 2 twice r and U; else exp(g log(p)), relative: g (r + 2 U |log(p)|)
                    and 3 U
    the entry       each weight rounds, as each product and sum does: 2 U of each term's size for
                    the first two, 2 U of all for the two sums

The result is stored as float32: see assert_within.
"""

import math
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


@dataclass
class Term:
    """What an entry is made of: values of the pairs, and how far boxloss' may be from them."""

    value: Tensor
    error: Tensor

    def times(self, weight: float, u: float) -> "Term":
        return Term(
            weight * self.value, abs(weight) * (self.error + 2 * u * self.value.abs()) * 1.01
        )


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
    assert actual.dtype == torch.float32
    assert actual.device == pred.device
    assert actual.shape == shape
    assert not actual.requires_grad
    entries = entries_of(values)
    expected, error = torch.zeros(2, math.prod(shape)).double()
    is_own = torch.zeros(math.prod(shape), dtype=torch.bool)
    if len(entries.places):
        term = term_of_entries(values, entries)
        expected[entries.places], error[entries.places] = term.value, term.error
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


def term_of_entries(values: Problem, at: Entries) -> Term:
    is_double = torch.float64 in (values["pred"].dtype, values["target"].dtype)
    compute = torch.float64 if is_double else torch.float32
    u = UNIT[compute]
    raw = [
        values[name].detach().cpu().reshape(-1, 4)[rows].to(compute).double()
        for name, rows in (("pred", at.queries), ("target", at.columns))
    ]
    terms = []
    if (weight := values.get("iou_weight", 2.0)) != 0:
        terms.append(loss_less_one(values, *raw, compute).times(weight, u))
    if (weight := values.get("l1_weight", 5.0)) != 0:
        distance = (raw[0] - raw[1]).abs().sum(-1)
        terms.append(Term(distance, 2 * u * distance).times(weight, u))
    weight = values.get("class_weight", 1.0)
    if weight != 0 and ("logits" in values or "class_cost" in values):
        terms.append(class_term(values, at, compute).times(weight, u))
    zero = torch.zeros(len(at.places)).double()
    sizes = sum((term.value.abs() + term.error for term in terms), zero)
    return Term(
        sum((term.value for term in terms), zero),
        sum((term.error for term in terms), zero) + 2 * u * sizes,
    )


def loss_less_one(values: Problem, raw_p: Tensor, raw_t: Tensor, compute: torch.dtype) -> Term:
    p = corners(raw_p, values.get("pred_format", "cxcywh"), compute)
    t = corners(raw_t, values.get("target_format", "cxcywh"), compute)
    eps = torch.tensor(values.get("eps", 0.0), dtype=compute).double()
    pair = Pair(numbers(p, compute), numbers(t, compute), eps, values.get("eps_mode", "add"))
    loss = FORMULAS[values.get("loss", "giou")](pair).primal
    value = loss.value - 1
    return Term(value, loss.error + UNIT[compute] * value.abs())


def numbers(box: Tensor, compute: torch.dtype) -> list[Dual]:
    """Four exact numbers, without derivatives."""
    constant = Bounded.of(torch.zeros(1, len(box)).double(), compute)
    return [Dual(Bounded.of(value, compute), constant) for value in box.unbind(-1)]


def class_term(values: Problem, at: Entries, compute: torch.dtype) -> Term:
    u = UNIT[compute]
    if "class_cost" in values:
        *leading, _, queries, _ = values["pred"].shape
        shape = (*leading, queries, len(values["target"]))
        given = values["class_cost"].cpu().double().expand(shape).reshape(-1)[at.places]
        return Term(given, u * given.abs())
    count = values["logits"].shape[-1]
    logits = values["logits"].detach().cpu().double().reshape(-1, count)[at.queries]
    labels = values["labels"].cpu().long()[at.columns]
    is_class = (labels >= 0) & (labels < count)
    x = logits.gather(1, labels.where(is_class, 0)[:, None])[:, 0]
    mode = values.get("class_mode", "softmax")
    if mode == "focal":
        alpha, gamma = values.get("focal_alpha", 0.25), values.get("focal_gamma", 2.0)
        term = focal_term(x, alpha, gamma, u)
    elif mode == "sigmoid":
        p = torch.sigmoid(x)
        term = Term(-p, 1.01 * p * sigmoid_error(x, u))
    else:
        p = logits.softmax(-1).gather(1, labels.where(is_class, 0)[:, None])[:, 0]
        m, log_count = float(logits.abs().max()), math.log(count)
        relative = (5 * m + count + 2 + 2 * log_count) + m + (2 * m + log_count) + 2
        term = Term(-p, 1.01 * p * relative * u)
    return Term(term.value.where(is_class, 0.0), term.error.where(is_class, 0.0))


def sigmoid_error(x: Tensor, u: float) -> Tensor:
    """Relative, of p and of 1 - p."""
    return (x.abs() + 6) * u


def focal_term(x: Tensor, alpha: float, gamma: float, u: float) -> Term:
    """Deformable DETR's, from its formula."""
    p, rest = torch.sigmoid(x), torch.sigmoid(-x)
    value = alpha * rest**gamma * -torch.log(p + 1e-8)
    value -= (1 - alpha) * p**gamma * -torch.log(rest + 1e-8)
    r = sigmoid_error(x, u)
    error = torch.zeros_like(value)
    for factor, focus, other in ((alpha, rest, p), (1 - alpha, p, rest)):
        log = torch.log(other + 1e-8).abs()
        of_log = r + 2 * u + 4 * u * log.clamp(min=1.0)
        of_power = 2 * r + u if gamma == 2 else gamma * (r + 2 * u * focus.log().abs()) + 3 * u
        power = focus**gamma
        # Besides: alpha or 1 - alpha, and two products.
        error += abs(factor) * power * (of_log + log * (of_power + 4 * u))
    return Term(value, 1.01 * (error + u * value.abs()))
