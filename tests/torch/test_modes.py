# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Gradient modes, inference mode and autocast."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from boxloss.torch import giou_loss
from comparison import run
from problems import PAIRINGS, problem
from torch.utils._python_dispatch import TorchDispatchMode


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_no_node_where_no_gradient_is_wanted(device: torch.device, pairing: str) -> None:
    values = problem(pairing, device)
    assert giou_loss(**values).grad_fn is None
    values["pred"].requires_grad_()
    wanted = giou_loss(**values)
    assert wanted.requires_grad
    with torch.no_grad():
        assert giou_loss(**values).grad_fn is None
    with torch.inference_mode():
        loss = giou_loss(**values)
    assert loss.is_inference()
    assert torch.equal(loss, wanted)


class Calls(TorchDispatchMode):
    """Names of the operators below autograd."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(
        self,
        function: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        self.names.append(str(function))
        return function(*args, **(kwargs or {}))


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
    with torch.autocast(device.type, dtype=torch.bfloat16), Calls() as calls:
        giou_loss(**values)
    assert calls.names == ["boxloss._box_loss_forward.default"]
    assert pred.dtype == dtype


def test_backward_is_one_operator(device: torch.device) -> None:
    values = problem("offsets", device, torch.bfloat16, torch.uint8, torch.float32)
    leaves = [values[name].requires_grad_() for name in ("pred", "weight")]
    loss = giou_loss(**values)
    with Calls() as calls:
        torch.autograd.grad(loss, leaves, torch.ones_like(loss.detach()))
    ours = [name for name in calls.names if name.startswith("boxloss")]
    assert ours == ["boxloss._box_loss_backward.default"]
    assert not [name for name in calls.names if "copy" in name or "_to" in name]
