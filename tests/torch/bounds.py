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
    l1                              four differences and three sums: 2 U of it; its derivatives,
                                    1 or -1, as above
    a row in m > 1 pairs            each addition rounds to the gradient's dtype: m of its unit
                                    roundoffs of the terms' sizes

    the sum of float32 losses       promised to 1e-6 of the sum of their sizes; one in double rounds
                                    once for each term
    the divisor                     its reciprocal and the product: U of the result

What is stored in a narrower dtype rounds once more, to that dtype.
"""

from dataclasses import dataclass

import torch
from comparison import (
    UNIT_ROUNDOFF,
    assert_within,
    compute_dtype,
    divisor_of,
    run,
    run_formula,
    upstreams_for,
)
from formula import corners
from formulas import FORMULAS, Pair
from problems import Problem, on_cpu, pairs_of, sets_of
from running import SMALLEST, UNIT, coordinates
from torch import Tensor


@dataclass
class OutputBounds:
    """Of one output of the counted pairs: (pairs); its derivatives: (pairs, 4), by box."""

    error: Tensor
    size: Tensor
    boxes: dict[str, Tensor]
    box_sizes: dict[str, Tensor]


@dataclass
class PairBounds:
    """Of all outputs, and where the pairs lie."""

    loss: OutputBounds
    l1: OutputBounds
    iou: Tensor
    rows: dict[str, Tensor]
    places: Tensor


def pair_bounds(values: Problem) -> PairBounds:
    """How far each counted pair's outputs and derivatives may be from the formula's."""
    compute = compute_dtype(values)
    exact = on_cpu(values)
    pairs = torch.tensor(pairs_of(values), dtype=torch.int64).reshape(-1, 3)
    slots, rows, places = pairs.unbind(-1)
    formats = {name: values.get(f"{name}_format", "xyxy") for name in ("pred", "target")}
    raw_p, raw_t = (
        exact[name].to(compute).double().reshape(-1, 4)[where]
        for name, where in (("pred", slots), ("target", rows))
    )
    p = corners(raw_p, formats["pred"], compute)
    t = corners(raw_t, formats["target"], compute)
    eps = torch.tensor(values.get("eps", 1e-7), dtype=compute).double()
    pair = Pair(*coordinates(p, t, compute), eps, values.get("eps_mode", "add"))
    result = FORMULAS[values.get("loss", "giou")](pair)
    longest = 1 + 2 * torch.cat((p, t), -1).abs().amax(-1)
    each = result.tangent.error + 5 * UNIT[compute] * result.tangent.size
    each = each + 2 * SMALLEST[compute] * longest
    sizes = result.tangent.size
    loss = OutputBounds(
        result.primal.error,
        result.primal.value.abs(),
        {
            "pred": of_format(each[:4], formats["pred"]),
            "target": of_format(each[4:], formats["target"]),
        },
        {
            "pred": of_format(sizes[:4], formats["pred"]),
            "target": of_format(sizes[4:], formats["target"]),
        },
    )
    distance = (raw_p - raw_t).abs().sum(-1)
    ones = dict.fromkeys(("pred", "target"), torch.ones_like(raw_p))
    signs = {name: 5 * UNIT[compute] * one for name, one in ones.items()}
    l1 = OutputBounds(2 * UNIT[compute] * distance, distance, signs, ones)
    return PairBounds(loss, l1, pair.iou.primal.error, {"pred": slots, "target": rows}, places)


def of_format(errors: Tensor, box_format: str) -> Tensor:
    """From the derivatives by the corners, (4, pairs), to those by the box's own numbers."""
    first, second = errors[:2], errors[2:]
    if box_format == "xyxy":
        return errors.T
    sizes = second if box_format == "xywh" else 0.5 * (first + second)
    return torch.cat((first + second, sizes)).T


def check(
    values: Problem, upstream: Tensor | None = None, by: tuple[str, ...] = ()
) -> dict[str, Tensor]:
    """Loss and gradients, which are as near to the formula's as rounding allows.

    With `by`, the outputs of box_losses, and the gradients by those that it names.
    """
    actual, expected = run(values, upstream, by), run_formula(values, upstream, by)
    compute = compute_dtype(values)
    u = UNIT[compute]
    bounds = pair_bounds(values)
    places = bounds.places
    is_reduced = values.get("reduction", "mean") != "none"
    divisor = divisor_of(values)
    into = sets_of(values) if is_reduced else places
    weight = torch.ones(len(places)).double()
    if "weight" in values:
        weight = values["weight"].cpu().double().reshape(-1)[places].abs()

    outputs = [name for name in ("loss", "l1") if name in actual]
    for name in outputs:
        assert actual[name].dtype == compute
        assert actual[name].shape == expected[name].shape
        of_output = getattr(bounds, name)
        each = weight * (of_output.error + u * of_output.size)
        error = added(each, into, expected[name])
        if is_reduced:
            adding = len(places) * u if compute == torch.float64 else 1e-6
            sizes = added(weight * (of_output.size + each), into, expected[name])
            error = (error + adding * sizes) / divisor + u * expected[name].abs()
        assert_within(actual[name], expected[name], error, name)
    if by:
        assert actual["iou"].dtype == compute
        error = added(bounds.iou, places, expected["iou"])
        assert_within(actual["iou"], expected["iou"], error, "iou")

    upstreams = upstreams_for({name: actual[name] for name in outputs}, upstream, by)
    factors = {}
    for name, each in upstreams.items():
        size = each.cpu().double().abs()
        factors[name] = (size / divisor if is_reduced else size).reshape(-1)[into]
    for name in ("pred", "target"):
        if name in actual:
            assert actual[name].dtype == values[name].dtype
            assert actual[name].shape == values[name].shape
            each, sizes = torch.zeros(2, len(places), 4).double()
            for output, factor in factors.items():
                of_output = getattr(bounds, output)
                by_pair = (weight * factor)[:, None]
                each += of_output.boxes[name] * by_pair
                sizes += (of_output.boxes[name] + of_output.box_sizes[name]) * by_pair
            if len(factors) > 1:
                each += u * sizes
            errors = in_rows(each, sizes, bounds.rows[name], actual[name], u)
            assert_within(actual[name], expected[name], errors, f"gradient of {name}")
    if "weight" in actual:
        each = torch.zeros(len(places)).double()
        for output, factor in factors.items():
            of_output = getattr(bounds, output)
            each += (of_output.error + (3 + len(factors)) * u * of_output.size) * factor
        errors = added(each, places, expected["weight"])
        assert_within(actual["weight"], expected["weight"], errors, "gradient of weight")
    return actual


def added(each: Tensor, into: Tensor, like: Tensor) -> Tensor:
    """The pairs' numbers, added up where they go."""
    return torch.zeros(like.numel()).double().index_add(0, into, each).reshape(like.shape)


def in_rows(each: Tensor, sizes: Tensor, rows: Tensor, gradient: Tensor, u: float) -> Tensor:
    """The pairs' errors, added up in a gradient's rows, with what the adding itself may cost."""
    count = gradient.numel() // 4
    unit = max(UNIT_ROUNDOFF[gradient.dtype], u)
    zeros = torch.zeros(count, 4).double()
    error = zeros.index_add(0, rows, each)
    pairs = torch.bincount(rows, minlength=count).double()[:, None]
    steps = pairs * unit
    by_adding = steps / (1 - steps) * zeros.index_add(0, rows, sizes)
    by_adding += pairs * torch.finfo(gradient.dtype).smallest_normal * unit
    error += torch.where(pairs > 1, by_adding, 0.0)
    return error.reshape(gradient.shape)
