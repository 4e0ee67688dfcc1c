# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What autograd calls the losses, as the profiler and anomaly mode tell it."""

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


def a_loss(loss: str, device: torch.device) -> Tensor:
    rotated = {"loss": "giou", "angle_unit": "radians"}
    values, leaf = {
        "BoxLoss": (problem("dense", device), "pred"),
        "RotatedBoxLoss": (problem("dense", device, **rotated), "pred"),
        "ClassLoss": (class_problem("mal", device), "logits"),
        "DistributionLoss": (moved(distribution_problem("fgl"), device), "logits"),
    }[loss]
    values[leaf].requires_grad_()
    result: Tensor = getattr(boxloss.torch, LOSSES[loss])(**values)
    return result.sum()


@pytest.mark.parametrize("loss", LOSSES)
def test_the_profiler(device: torch.device, loss: str) -> None:
    with torch.profiler.profile() as profile:
        a_loss(loss, device).backward()
    names = {event.name for event in profile.events()}
    forward = f"_{LOSSES[loss]}{'_forward' if 'Box' in loss else ''}"
    assert {f"boxloss::{forward}", f"boxloss::_{LOSSES[loss]}_backward"} <= names
    assert f"torch::autograd::CppNode<boxloss::torch_binding::{loss}>" in names
    assert not [name for name in names if "boxloss" in name and "anonymous" in name]
