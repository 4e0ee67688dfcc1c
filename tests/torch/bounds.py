# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Any loss, of any boxes, against the formula, each value within the bound of its own boxes.

running.py bounds a pair's loss and its derivatives by the corners. What comes after is bounded
here, with U = UNIT of the compute dtype, at least two unit roundoffs:

    loss * weight                   weight rounds once, the product once: U of it
    derivative * weight, scale      weight, scale and upstream round once, with three products;
      and upstream                  signs, halves and two sums make the four coordinates of a format
                                    of the corners', at most 4 additions: 5 U of the terms' sizes
    a product that underflows       the smallest number, times the side that it is multiplied with
      before its last factor        afterwards

Sums are bounded as in comparison.py.
"""

from dataclasses import dataclass

import torch
from comparison import assert_within, compute_dtype, run, run_formula, upstream_for
from formula import corners
from formulas import FORMULAS, Pair
from problems import Problem, on_cpu, pairs_of
from running import SMALLEST, UNIT, coordinates
from torch import Tensor


@dataclass
class PairBounds:
    """Of the counted pairs: (pairs), and (pairs, 4) in the boxes' own formats."""

    loss: Tensor
    loss_size: Tensor
    boxes: dict[str, Tensor]
    slots: Tensor
    rows: Tensor


def pair_bounds(values: Problem) -> PairBounds:
    """How far each counted pair's loss and derivatives may be from the formula's."""
    compute = compute_dtype(values)
    exact = on_cpu(values)
    slots, rows = torch.tensor(pairs_of(values), dtype=torch.int64).reshape(-1, 2).unbind(-1)
    formats = {name: values.get(f"{name}_format", "xyxy") for name in ("pred", "target")}
    p, t = (
        corners(exact[name].to(compute).double().reshape(-1, 4)[where], formats[name], compute)
        for name, where in (("pred", slots), ("target", rows))
    )
    eps = torch.tensor(values.get("eps", 1e-7), dtype=compute).double()
    pair = Pair(*coordinates(p, t, compute), eps, values.get("eps_mode", "add"))
    result = FORMULAS[values.get("loss", "giou")](pair)
    longest = 1 + 2 * torch.cat((p, t), -1).abs().amax(-1)
    each = result.tangent.error + 5 * UNIT[compute] * result.tangent.size
    each = each + 2 * SMALLEST[compute] * longest
    boxes = {
        "pred": of_format(each[:4], formats["pred"]),
        "target": of_format(each[4:], formats["target"]),
    }
    return PairBounds(result.primal.error, result.primal.value.abs(), boxes, slots, rows)


def of_format(errors: Tensor, box_format: str) -> Tensor:
    """From the derivatives by the corners, (4, pairs), to those by the box's own numbers."""
    first, second = errors[:2], errors[2:]
    if box_format == "xyxy":
        return errors.T
    sizes = second if box_format == "xywh" else 0.5 * (first + second)
    return torch.cat((first + second, sizes)).T


def check_bounded(values: Problem, upstream: Tensor | None = None) -> None:
    """Loss and gradients are as near to the formula's as rounding allows."""
    actual, expected = run(values, upstream), run_formula(values, upstream)
    compute = compute_dtype(values)
    u = UNIT[compute]
    bounds = pair_bounds(values)
    rows = bounds.rows
    reduction = values.get("reduction", "mean")
    upstream = upstream_for(actual["loss"]) if upstream is None else upstream
    upstream = upstream.cpu().double().abs().reshape(-1)
    assert actual["loss"].dtype == compute
    assert actual["loss"].shape == expected["loss"].shape

    weight = torch.ones(len(rows)).double()
    if "weight" in values:
        weight = values["weight"].cpu().double().reshape(-1)[rows].abs()
    divisor = 1.0
    if reduction == "mean":
        divisor = float(values["normalizer"]) if "normalizer" in values else max(len(rows), 1)
    each = weight * (bounds.loss + u * bounds.loss_size)
    factor = (upstream[rows] if reduction == "none" else upstream) / divisor
    if reduction == "none":
        loss_error = torch.zeros(expected["loss"].numel()).double().index_put((rows,), each)
        loss_error = loss_error.reshape(expected["loss"].shape)
    else:
        adding = len(rows) * u if compute == torch.float64 else 1e-6
        loss_error = (each.sum() + adding * (weight * (bounds.loss_size + each)).sum()) / divisor
        loss_error = loss_error + u * expected["loss"].abs()
    assert_within(actual["loss"], expected["loss"], loss_error, "loss")

    for name, places in (("pred", bounds.slots), ("target", rows)):
        if name in actual:
            errors = torch.zeros(actual[name].numel() // 4, 4).double()
            errors[places] = bounds.boxes[name] * (weight * factor)[:, None]
            assert actual[name].shape == values[name].shape
            errors = errors.reshape(actual[name].shape)
            assert_within(actual[name], expected[name], errors, f"gradient of {name}")
    if "weight" in actual:
        errors = torch.zeros(actual["weight"].numel()).double()
        errors[rows] = (bounds.loss + 4 * u * bounds.loss_size) * factor
        errors = errors.reshape(actual["weight"].shape)
        assert_within(actual["weight"], expected["weight"], errors, "gradient of weight")
