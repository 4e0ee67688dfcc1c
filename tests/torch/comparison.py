# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""boxloss against the plain formula: the loss and the gradients of pred, target and weight.

How far two correct results can be apart
----------------------------------------
Both start from the same corners, rounded to the compute dtype. The formula goes on in double,
boxloss in the compute dtype, whose unit roundoff is u; where that is double too, both round, so u
is counted twice. For boxes that are not inverted, to first order, in units of u (a step's result
has the sum of its operands' errors and one rounding of its own):

    a side 1                  area 3 A, intersection 3 I, enclosure 3 C, C' = C + eps 4 C'
    A_p + A_t                 4 (A_p + A_t) <= 8 U, as A_p + A_t = U + I <= 2 U
    U, then U' = U + eps      8 + 3 + 1 = 12 U, then 13 U'
    I / U' <= 1               3 + 13 + 1 = 17
    (C' - U') / C' <= 1       4 + 13 + 1 = 18, then 18 + 4 + 1 = 23
    giou, loss <= 2           17 + 23 + 1 = 41, then 41 + 2 = 43
    loss * weight             43 + 2 * 2 (weight rounds once, the product once) = 47 |weight|

    1 / U'                    14 / U'
    by union                  (3 + 14 + 14 + 2) / U' + 5 / C' + 1 / U' <= 39 / U', at most 1 / U'
    by intersection           14 + 39 + 2 = 55 / U', at most 2 / U'
    by enclosure              13 + 5 + 5 + 2 = 25 / C', at most 1 / C'
    times the other side h    (39 + 2) h_p / U', (55 + 4) h_i / U', (25 + 2) h_c / C'
    the three, added          (41 + 59 + 3 + 3) h_p / U' + 28 h_c / C' <= 134 / side, and at most
                              4 / side, as U' >= side h_p and C' >= side h_c
    times scale, upstream     134 + 5 * 4 = 154 / side: scale and weight round once, and three
      and weight              products do
    sum of two, for formats   2 * 154 + 8 = 316 / side

The sum of float32 losses is promised to 1e-6 of the sum of their sizes; one in double rounds once
for each term. A result that is stored in a narrower dtype rounds once more, to that dtype.
"""

from collections import Counter

import boxloss.torch
import formula
import torch
from problems import Problem, counts_of, on_cpu, pairs_of
from torch import Tensor

LOSS = 48
WEIGHT_GRADIENT = 2 * 43  # as the loss, times the upstream gradient and scale: at most 43 + 5 * 2
BOX_GRADIENT = 316

UNIT_ROUNDOFF = {
    torch.float64: 2.0**-53,
    torch.float32: 2.0**-24,
    torch.float16: 2.0**-11,
    torch.bfloat16: 2.0**-8,
}


def compute_dtype(values: Problem) -> torch.dtype:
    """float64 when either box tensor is, else float32."""
    return (
        torch.float64
        if torch.float64 in (values["pred"].dtype, values["target"].dtype)
        else torch.float32
    )


def roundoff(compute: torch.dtype) -> float:
    """u, for both computations together."""
    return UNIT_ROUNDOFF[compute] * (2 if compute == torch.float64 else 1)


def differentiable(values: Problem) -> dict[str, Tensor]:
    """Leaves for those of pred, target and weight that can have a gradient; strides stay."""
    names = [name for name in ("pred", "target", "weight") if name in values]
    return {
        name: values[name].detach().requires_grad_()
        for name in names
        if values[name].is_floating_point()
    }


def upstream_for(loss: Tensor, seed: int = 5) -> Tensor:
    """A gradient for the loss, in [-1, 1]."""
    random = torch.Generator().manual_seed(seed)
    return (2 * torch.rand(loss.shape, generator=random) - 1).to(loss.device, loss.dtype)


def run(
    values: Problem, upstream: Tensor | None = None, by: tuple[str, ...] = ()
) -> dict[str, Tensor]:
    """boxloss' loss, and the gradients by name; or box_losses' outputs, and gradients by some."""
    leaves = differentiable(values)
    if by:
        outputs = boxloss.torch.box_losses(**{**values, **leaves})._asdict()
    else:
        function = boxloss.torch.box_loss if "loss" in values else boxloss.torch.giou_loss
        outputs = {"loss": function(**{**values, **leaves})}
    return with_gradients(outputs, leaves, upstream, by)


def run_formula(
    values: Problem, upstream: Tensor | None = None, by: tuple[str, ...] = ()
) -> dict[str, Tensor]:
    """The same by the plain formula, in double, on the CPU."""
    compute = compute_dtype(values)
    exact = on_cpu(values)
    exact["pred"] = exact["pred"].to(compute).double()
    exact["target"] = exact["target"].to(compute).double()
    for name in ("weight", "normalizer"):
        if name in exact:
            exact[name] = exact[name].double()
    names = differentiable(values)
    leaves = {name: exact[name].detach().requires_grad_() for name in names}
    outputs = formula.box_losses(**{**exact, **leaves}, compute=compute)
    if not by:
        outputs = {"loss": outputs["loss"]}
    return with_gradients(outputs, leaves, upstream, by, compute)


def with_gradients(
    outputs: dict[str, Tensor],
    leaves: dict[str, Tensor],
    upstream: Tensor | None,
    by: tuple[str, ...],
    compute: torch.dtype | None = None,
) -> dict[str, Tensor]:
    """The outputs, and the leaves' gradients by the named ones, with a gradient for each."""
    upstreams = upstreams_for(outputs, upstream, by, compute)
    gradients = torch.autograd.grad(
        [outputs[name] for name in upstreams], tuple(leaves.values()), tuple(upstreams.values())
    )
    results = {name: output.detach() for name, output in outputs.items()}
    return {**results, **dict(zip(leaves, gradients, strict=True))}


def upstreams_for(
    outputs: dict[str, Tensor],
    upstream: Tensor | None,
    by: tuple[str, ...],
    compute: torch.dtype | None = None,
) -> dict[str, Tensor]:
    """`upstream`, or random numbers of the compute dtype, which is the outputs' own or given."""
    results = {}
    for seed, name in enumerate(by or ("loss",), start=5):
        own = outputs[name].to(compute or outputs[name].dtype)
        chosen = upstream_for(own, seed) if upstream is None else upstream
        results[name] = chosen.to(outputs[name].device, outputs[name].dtype)
    return results


def assert_within(actual: Tensor, expected: Tensor, error: Tensor | float, what: str) -> None:
    """|actual - expected| <= error, and one rounding to actual's dtype."""
    stored = torch.finfo(actual.dtype).smallest_normal * UNIT_ROUNDOFF[actual.dtype]
    stored = stored + UNIT_ROUNDOFF[actual.dtype] * (expected.abs() + error)
    distance = (actual.detach().cpu().double() - expected).abs()
    excess = distance - (error + stored)
    assert torch.all(excess <= 0), (
        f"{what}: {int((excess > 0).sum())} of {excess.numel()} values are too far from the "
        f"formula's, by up to {float(excess.max()):.3g}; got {actual}, expected {expected}"
    )


def shortest_side(values: Problem) -> float:
    """Of all boxes in counted pairs."""
    on_host = on_cpu(values)
    pairs = pairs_of(values)
    if not pairs:
        return 1.0
    sides = []
    for name, indices in zip(("pred", "target"), zip(*pairs, strict=True), strict=False):
        used = on_host[name].reshape(-1, 4)[list(indices)].double()
        box_format = values.get(f"{name}_format", "xyxy")
        corners = formula.corners(used, box_format, compute_dtype(values))
        sides.append(float((corners[:, 2:] - corners[:, :2]).min()))
    return min(sides)


def check(values: Problem, upstream: Tensor | None = None) -> None:
    """Loss and gradients of boxloss are as near to the formula's as rounding allows."""
    actual = run(values, upstream)
    expected = run_formula(values, upstream)
    compute = compute_dtype(values)
    assert actual["loss"].dtype == compute
    assert actual["loss"].shape == expected["loss"].shape
    for name in set(actual) - {"loss"}:
        assert actual[name].dtype == values[name].dtype
        assert actual[name].shape == values[name].shape

    u = roundoff(compute)
    pairs = pairs_of(values)
    count = counts_of(values)
    weight = values["weight"].abs().max().item() if "weight" in values else 1.0
    reduction = values.get("reduction", "mean")
    divisor = divisor_of(values)

    if reduction == "none":
        loss_error = torch.tensor(LOSS * u * weight)
    else:
        adding = count * u if compute == torch.float64 else 1e-6
        loss_error = count * weight * (LOSS * u + 2 * adding) / divisor
        loss_error += 2 * u * expected["loss"].abs()  # the divisor's reciprocal, the product
    assert_within(actual["loss"], expected["loss"], loss_error, "loss")

    factor = u * float((upstream_for(actual["loss"]) if upstream is None else upstream).abs().max())
    factor /= float(divisor.min()) if divisor.numel() else 1.0
    box_error = BOX_GRADIENT * factor * weight / shortest_side(values)
    for i, name in enumerate(("pred", "target")):
        if name in actual:
            # Of a row in several pairs: what they add up to rounds with each.
            most = max(Counter(pair[i] for pair in pairs).values(), default=1)
            error = most * box_error * (1 + 8 * (most - 1) / BOX_GRADIENT)
            assert_within(actual[name], expected[name], error, f"gradient of {name}")
    if "weight" in actual:
        error = WEIGHT_GRADIENT * factor
        assert_within(actual["weight"], expected["weight"], error, "gradient of weight")


def divisor_of(values: Problem) -> Tensor:
    """What each reduced loss is divided by, in double on the CPU."""
    counts = counts_of(values)
    if values.get("reduction", "mean") != "mean":
        return torch.ones_like(counts)
    divisor = values["normalizer"].cpu().double() if "normalizer" in values else counts
    return torch.where(counts > 0, divisor, 1)
