# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What autograd, the profiler and anomaly mode call the loss."""

import pytest
import torch
from boxloss.torch import box_loss
from problems import problem
from torch import Tensor

NODE = "boxloss::torch_binding::BoxLoss"


def a_loss(device: torch.device, factor: float = 1.0) -> Tensor:
    values = problem("dense", device)
    values["pred"] = (factor * values["pred"]).requires_grad_()
    return box_loss(**values)


def test_the_node(device: torch.device) -> None:
    assert a_loss(device).grad_fn.name() == f"torch::autograd::CppNode<{NODE}>"


def test_the_profiler(device: torch.device) -> None:
    with torch.profiler.profile() as profile:
        a_loss(device).backward()
    names = {event.name for event in profile.events()}
    assert {"boxloss::box_loss", "boxloss::_box_loss_forward"} <= names
    assert f"torch::autograd::CppNode<{NODE}>" in names
    assert not [name for name in names if "boxloss" in name and "anonymous" in name]


def test_anomaly_mode(device: torch.device) -> None:
    with (
        torch.autograd.set_detect_anomaly(True),
        pytest.warns(UserWarning, match=f"Error detected in .*{NODE}"),
        pytest.raises(RuntimeError, match=f"{NODE}>' returned nan values"),
    ):
        a_loss(device, factor=torch.nan).backward()
