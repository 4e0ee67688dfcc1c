# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""boxloss and the plain formula run alike: outputs, and the gradients of pred, target and weight.

How far the two can be apart bounds.py says for each pair of boxes.
"""

import boxloss.torch
import formula
import torch
from problems import Problem, counts_of, on_cpu
from torch import Tensor

# How far giou, and its derivatives times the shortest side, may be off in float32 for boxes of
# problems.py, in units of roundoff: test_bounds.py shows it.
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


def outputs_of(values: Problem, by: tuple[str, ...] = ()) -> dict[str, Tensor]:
    """boxloss' loss, or where some of them are differentiated box_losses' outputs."""
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


def divisor_of(values: Problem) -> Tensor:
    """What each reduced loss is divided by, in double on the CPU."""
    counts = counts_of(values)
    if values.get("reduction", "mean") != "mean":
        return torch.ones_like(counts)
    divisor = values["normalizer"].cpu().double() if "normalizer" in values else counts
    return torch.where(counts > 0, divisor, 1)
