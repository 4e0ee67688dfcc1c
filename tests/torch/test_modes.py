# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Gradient modes, inference mode and autocast."""

import pytest
import torch
from boxloss.torch import box_losses, giou_loss
from called import Called
from comparison import run
from problems import PAIRINGS, problem


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_no_node_where_no_gradient_is_wanted(device: torch.device, pairing: str) -> None:
    values = problem(pairing, device)
    assert giou_loss(**values).grad_fn is None
    values["pred"].requires_grad_()
    wanted = giou_loss(**values)
    assert wanted.requires_grad
    with torch.no_grad():
        for output in (giou_loss(**values), *box_losses(**values)):
            assert output.grad_fn is None
    with torch.inference_mode():
        loss = giou_loss(**values)
    assert loss.is_inference()
    assert torch.equal(loss, wanted)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_autocast_casts_nothing(device: torch.device, dtype: torch.dtype) -> None:
    values = problem("mask", device, dtype, torch.uint8)
    expected = run(values)
    with torch.autocast(device.type, dtype=torch.bfloat16):
        actual = run(values)
    assert actual["loss"].dtype == torch.float32
    for name, result in expected.items():
        assert torch.equal(actual[name], result)

    pred = values["pred"].requires_grad_()
    with torch.autocast(device.type, dtype=torch.bfloat16), Called() as called:
        giou_loss(**values)
    assert called.names == ["_box_loss_forward"]
    assert pred.dtype == dtype


def test_backward_is_one_operator(device: torch.device) -> None:
    values = problem("offsets", device, torch.bfloat16, torch.uint8, torch.float32)
    leaves = [values[name].requires_grad_() for name in ("pred", "weight")]
    loss = giou_loss(**values)
    with Called() as called:
        torch.autograd.grad(loss, leaves, torch.ones_like(loss.detach()))
    assert [name for name in called.names if "box_loss" in name] == ["_box_loss_backward"]
    assert not [name for name in called.names if "copy" in name or "_to" in name]
