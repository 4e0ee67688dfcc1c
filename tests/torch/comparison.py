# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""boxloss and the plain formula run alike: outputs, and gradients of pred, target and weight."""

import boxloss.torch
import formula
import torch
from devices import by_reference
from problems import Problem, on_cpu
from torch import Tensor

# How far giou, and its derivatives times the shortest side, may be off, in units of roundoff. Of
# boxes as in problems.py an area is off by 3, as is I, so that U = A + B - I, with eps, is off by
# 3 (U + I) + 3 I + (U + I) + 2 U <= 13, I / U by 3 + 13 + 1 = 17, and (C - U) / C by 16 at most;
# 3 more are the subtractions' from 1: 36.
# The derivative by one coordinate is -i / U + I a / U^2 - a / C + U c / C^2 with a = A' - i, where
# i is I' and c is C', of which one is 0. Times the side the terms are at most 1, and off by 16 (or
# 25 with c in place of i), 35 and 8; 9 are the sums'.
LOSS = 40
BOX_GRADIENT = 80

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


def outputs_of(values: Problem, by: tuple[str, ...] = ()) -> dict[str, Tensor]:
    """boxloss' loss, or where some of them are differentiated box_losses' outputs."""
    if "angle_unit" in values:
        return {"loss": boxloss.torch.rotated_box_loss(**values)}
    if by:
        return boxloss.torch.box_losses(**values)._asdict()
    return {"loss": boxloss.torch.box_loss(**values)}


def run(
    values: Problem, upstream: Tensor | None = None, by: tuple[str, ...] = ()
) -> dict[str, Tensor]:
    """The outputs, and the gradients by name."""
    leaves = differentiable(values)
    return with_gradients(outputs_of({**values, **leaves}, by), leaves, upstream, by)


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
    with by_reference():
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
    """The outputs, and the leaves' gradients by the named ones, with `upstream` for each, or random
    numbers of the compute dtype, which is the outputs' own or given."""
    names, upstreams = by or ("loss",), []
    for seed, name in enumerate(names, start=5):
        own = outputs[name].to(compute or outputs[name].dtype)
        chosen = upstream_for(own, seed) if upstream is None else upstream
        upstreams.append(chosen.to(outputs[name].device, outputs[name].dtype))
    gradients = torch.autograd.grad(
        [outputs[name] for name in names], tuple(leaves.values()), upstreams
    )
    results = {name: output.detach() for name, output in outputs.items()}
    return {**results, **dict(zip(leaves, gradients, strict=True))}


def assert_same_in_double(
    actual: Tensor, expected: Tensor, largest: Tensor | None = None, roundings: float = 64
) -> None:
    """Two ways in double to the same number.

    Each has some 30 roundings between the corners and a result, of numbers that are no larger than
    the largest of the results that they are computed with: 64 for both. Seen are 5.
    """
    expected = expected.to(actual.device)
    assert (actual.dtype, actual.shape) == (torch.float64, expected.shape)
    if largest is None:
        largest = expected.abs().amax() if expected.numel() else torch.tensor(0.0)
    error = roundings * UNIT_ROUNDOFF[torch.float64] * largest.clamp(min=1.0)
    assert_within(actual, expected.cpu(), error.cpu(), "in double")


def check_formula(
    values: Problem, upstream: Tensor | None = None, by: tuple[str, ...] = (), roundings: float = 64
) -> dict[str, Tensor]:
    """Loss and gradients in float64, which are the plain formula's."""
    actual, expected = run(values, upstream, by), run_formula(values, upstream, by)
    assert actual.keys() == expected.keys()
    for name, result in actual.items():
        assert_same_in_double(result, expected[name], roundings=roundings)
    return actual


def plain(values: Problem) -> Problem:
    """The same numbers in contiguous tensors of the compute dtype, and of int64."""
    compute = compute_dtype(values)

    def plain_tensor(name: str, each: Tensor) -> Tensor:
        if name in ("pred", "target", "weight"):
            return each.to(compute).contiguous()
        return (each if each.dtype == torch.bool else each.to(OF_OTHERS[name])).contiguous()

    return {
        name: plain_tensor(name, each) if isinstance(each, Tensor) else each
        for name, each in values.items()
    }


OF_OTHERS = {
    "normalizer": torch.float64,
    **dict.fromkeys(("lengths", "offsets", "pred_index", "target_index"), torch.int64),
}


def check_handed_over(
    values: Problem, upstream: Tensor | None = None, by: tuple[str, ...] = ()
) -> dict[str, Tensor]:
    """giou's results are those of plain tensors with the same numbers, which other loops compute.

    On the host the same bits, but for the gradient's own rounding, if no row is in two pairs. A GPU
    may contract products and sums: twice what giou may be off, of values as large as 1 / side.
    """
    actual = run(values, upstream, by)
    expected = run(plain(values), None if upstream is None else upstream.contiguous(), by)
    u = UNIT_ROUNDOFF[compute_dtype(values)]
    for name, result in actual.items():
        if result.device.type == "cpu":
            assert torch.equal(result, expected[name].to(result.dtype)), name
        else:
            wanted = expected[name].cpu().double()
            largest = wanted.abs().amax() if wanted.numel() else 0.0
            bound = BOX_GRADIENT if name in ("pred", "target") else LOSS
            assert_within(result, wanted, 2 * bound * u * largest, name)
    return actual


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
