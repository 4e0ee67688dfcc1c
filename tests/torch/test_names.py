# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What autograd, the profiler and anomaly mode call the losses."""

import pytest
import torch
from boxloss.torch import box_loss, class_loss, distribution_loss, rotated_box_loss
from losses_of_logits import class_problem, distribution_problem, moved
from problems import problem
from torch import Tensor

# The nodes, and what their forward and backward call.
LOSSES = {
    "BoxLoss": ("box_loss", "_box_loss_forward", "_box_loss_backward"),
    "RotatedBoxLoss": (
        *("rotated_box_loss", "_rotated_box_loss_forward", "_rotated_box_loss_backward"),
    ),
    "ClassLoss": ("class_loss", "_class_loss", "_class_loss_backward"),
    "DistributionLoss": (
        *("distribution_loss", "_distribution_loss", "_distribution_loss_backward"),
    ),
}
each_loss = pytest.mark.parametrize("loss", LOSSES)


def a_loss(loss: str, device: torch.device, factor: float = 1.0) -> Tensor:
    if not loss.endswith("BoxLoss"):
        is_of_classes = loss == "ClassLoss"
        values = (
            class_problem("mal", device)
            if is_of_classes
            else moved(distribution_problem("fgl"), device)
        )
        values["logits"] = (factor * values["logits"]).requires_grad_()
        return (class_loss if is_of_classes else distribution_loss)(**values).sum()
    is_rotated = loss == "RotatedBoxLoss"
    options = {"loss": "giou", "angle_unit": "radians"} if is_rotated else {}
    values = problem("dense", device, **options)
    values["pred"] = (factor * values["pred"]).requires_grad_()
    return (rotated_box_loss if is_rotated else box_loss)(**values)


def node(loss: str) -> str:
    return f"boxloss::torch_binding::{loss}"


@each_loss
def test_the_profiler(device: torch.device, loss: str) -> None:
    with torch.profiler.profile() as profile:
        a_loss(loss, device).backward()
    names = {event.name for event in profile.events()}
    assert {f"boxloss::{operator}" for operator in LOSSES[loss]} <= names
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
