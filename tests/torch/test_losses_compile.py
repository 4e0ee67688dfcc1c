# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Every loss is the same operator to the compiler and the dispatcher."""

import pytest
import torch
from boxloss.torch import BoxLoss, box_loss
from formulas import LOSSES
from problems import Problem, problem, with_overlaps
from torch import Tensor

OPERATORS = torch.ops.boxloss
# One with an angle, one with exponentials.
TWO = ("ciou", "siou")


pytestmark = pytest.mark.usefixtures("fresh_compiler")


def step(raw: Tensor, values: Problem) -> Tensor:
    """Exact but for the loss, so that compiled code may not change a bit."""
    return box_loss(**{**values, "pred": 2 * raw})


@pytest.mark.parametrize("loss", LOSSES)
def test_a_step_compiles_whole(device: torch.device, loss: str) -> None:
    values = with_overlaps(problem("mask", device, weight=torch.float32, loss=loss))
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    results = []
    for function in (compiled, step):
        leaf = (values["pred"] / 2).detach().requires_grad_()
        value = function(leaf, values)
        results.append((value.detach(), *torch.autograd.grad(value, leaf)))
    for actual, expected in zip(*results, strict=True):
        assert torch.equal(actual, expected)


@pytest.mark.parametrize("loss", TWO)
def test_a_module_compiles_whole(device: torch.device, loss: str) -> None:
    values = problem("dense", device)
    module = BoxLoss(loss)
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(**values), module(**values))


@pytest.mark.parametrize("pairing", ["dense", "offsets", "sets"])
@pytest.mark.parametrize("loss", TWO)
def test_opcheck(device: torch.device, loss: str, pairing: str) -> None:
    values = problem(pairing, device, weight=torch.float32, reduction="none")
    pred, target = values.pop("pred"), values.pop("target")
    for each in (pred, pred.detach().requires_grad_()):
        for operator in (OPERATORS.box_loss, OPERATORS.box_losses):
            torch.library.opcheck(operator.default, (each, target, loss), values)


@pytest.mark.parametrize("loss", TWO)
def test_opcheck_of_the_private_operators(device: torch.device, loss: str) -> None:
    values = problem("dense", device)
    tensors = (None,) * 5  # weight, normalizer, lengths, mask, offsets
    options = (False, "xyxy", "xyxy", "mean", 1e-7, "add")
    arguments = (values["pred"], values["target"], loss, *tensors, *options, None, None)
    torch.library.opcheck(OPERATORS._box_loss_forward.default, (*arguments, True))
    value, scale, l1, _ = OPERATORS._box_loss_forward(*arguments, True)
    gradient = (torch.ones_like(value), l1, scale, *arguments, [True, True, False])
    torch.library.opcheck(OPERATORS._box_loss_backward.default, gradient)
