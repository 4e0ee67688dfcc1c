# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Many incoming gradients at once, as vectorized Jacobians have them, against a loop over them."""

import pytest
import torch
from boxloss.torch import box_loss, box_losses
from comparison import UNIT_ROUNDOFF
from problems import PAIRINGS, REDUCTIONS, problem
from torch import Tensor
from torch.autograd.functional import jacobian

DOUBLE = torch.float64
# Values and derivatives here are below 4; some 200 roundings lie between two ways to get them.
TOLERANCE = 4 * 200 * UNIT_ROUNDOFF[DOUBLE]
OUTPUTS = (("loss",), ("l1",), ("loss", "l1"))


def assert_same(actual: Tensor, expected: Tensor) -> None:
    assert actual.dtype == expected.dtype
    assert torch.allclose(actual, expected, rtol=0, atol=TOLERANCE)


def upstreams(outputs: list[Tensor], rows: int = 3) -> list[Tensor]:
    random = torch.Generator().manual_seed(6)
    return [
        (2 * torch.rand(rows, *output.shape, generator=random, dtype=output.dtype) - 1).to(
            output.device
        )
        for output in outputs
    ]


@pytest.mark.parametrize("creates_graph", [False, True])
@pytest.mark.parametrize("by", OUTPUTS)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("pairing", PAIRINGS)
def test_as_one_by_one(
    device: torch.device, pairing: str, reduction: str, by: tuple[str, ...], creates_graph: bool
) -> None:
    values = problem(pairing, device, DOUBLE, DOUBLE, DOUBLE, reduction=reduction)
    leaves = [values[name].requires_grad_() for name in ("pred", "target", "weight")]
    results = box_losses(**values)._asdict()
    outputs = [results[name] for name in by]
    rows = upstreams(outputs)
    batched = torch.autograd.grad(
        outputs, leaves, rows, is_grads_batched=True, retain_graph=True, create_graph=creates_graph
    )
    one_by_one = [
        torch.autograd.grad(outputs, leaves, each, retain_graph=True)
        for each in zip(*rows, strict=True)
    ]
    for actual, expected in zip(batched, zip(*one_by_one, strict=True), strict=True):
        assert_same(actual, torch.stack(expected))
    # Through the weight a gradient of l1 can be differentiated, too.
    if creates_graph:
        second = torch.autograd.grad(batched[0].square().sum(), leaves[2])[0]
        assert second.any()


def test_a_gradient_in_a_narrow_dtype(device: torch.device) -> None:
    values = problem("offsets", device, torch.bfloat16, torch.uint8, reduction="none")
    pred = values["pred"].requires_grad_()
    loss = box_loss(**values)
    (rows,) = upstreams([loss])
    (batched,) = torch.autograd.grad(loss, pred, rows, is_grads_batched=True, retain_graph=True)
    assert batched.dtype == pred.dtype
    for actual, row in zip(batched, rows, strict=True):
        (expected,) = torch.autograd.grad(loss, pred, row, retain_graph=True)
        # A rounding to bfloat16 may fall to either side.
        assert torch.allclose(actual, expected, rtol=2 * UNIT_ROUNDOFF[torch.bfloat16], atol=1e-7)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_jacobian(device: torch.device, reduction: str) -> None:
    values = problem("sets", device, DOUBLE, DOUBLE, reduction=reduction)

    def function(pred: Tensor) -> Tensor:
        return box_loss(**{**values, "pred": pred})

    assert_same(
        jacobian(function, values["pred"], vectorize=True), jacobian(function, values["pred"])
    )


def test_vmap_of_autograd_grad(device: torch.device) -> None:
    values = problem("mask", device, DOUBLE, DOUBLE, DOUBLE, reduction="none")
    pred = values["pred"].requires_grad_()
    loss = box_loss(**values)
    (rows,) = upstreams([loss])

    def gradient(row: Tensor) -> Tensor:
        return torch.autograd.grad(loss, pred, row, retain_graph=True)[0]

    assert_same(torch.vmap(gradient)(rows), torch.stack([gradient(row) for row in rows]))
