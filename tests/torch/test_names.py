# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What autograd, the profiler and anomaly mode call the losses."""

import boxloss.torch
import pytest
import torch
from losses_of_logits import class_problem, distribution_problem, moved
from problems import problem
from torch import Tensor

# The nodes, and their operators.
LOSSES = {
    "BoxLoss": "box_loss",
    "RotatedBoxLoss": "rotated_box_loss",
    "ClassLoss": "class_loss",
    "DistributionLoss": "distribution_loss",
}
each_loss = pytest.mark.parametrize("loss", LOSSES)


def a_loss(loss: str, device: torch.device, factor: float = 1.0) -> Tensor:
    rotated = {"loss": "giou", "angle_unit": "radians"}
    values, leaf = {
        "BoxLoss": (problem("dense", device), "pred"),
        "RotatedBoxLoss": (problem("dense", device, **rotated), "pred"),
        "ClassLoss": (class_problem("mal", device), "logits"),
        "DistributionLoss": (moved(distribution_problem("fgl"), device), "logits"),
    }[loss]
    values[leaf] = (factor * values[leaf]).requires_grad_()
    result: Tensor = getattr(boxloss.torch, LOSSES[loss])(**values)
    return result.sum()


def node(loss: str) -> str:
    return f"boxloss::torch_binding::{loss}"


@each_loss
def test_the_profiler(device: torch.device, loss: str) -> None:
    with torch.profiler.profile() as profile:
        a_loss(loss, device).backward()
    names = {event.name for event in profile.events()}
    forward = f"_{LOSSES[loss]}{'_forward' if 'Box' in loss else ''}"
    assert {f"boxloss::{forward}", f"boxloss::_{LOSSES[loss]}_backward"} <= names
    assert f"torch::autograd::CppNode<{node(loss)}>" in names
    assert not [name for name in names if "boxloss" in name and "anonymous" in name]


@each_loss
def test_anomaly_mode(device: torch.device, loss: str) -> None:
    with (
        torch.autograd.set_detect_anomaly(True),
        pytest.warns(UserWarning, match=f"Error detected in .*{node(loss)}"),
        pytest.raises(RuntimeError, match=f"{node(loss)}>' returned nan values"),
    ):
        a_loss(loss, device, factor=torch.nan).backward()
