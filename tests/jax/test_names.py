# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What boxloss.jax has is what boxloss.torch has, but for what is torch's alone."""

import inspect
import re
from typing import Any

import boxloss.jax
import boxloss.torch
import pytest

# Modules; collating; checks of values; torchvision's names; what chooses or gathers for torch; a
# composite.
TORCHS = {
    *("BoxLoss", "RotatedBoxLoss"),
    *("IoULoss", "GIoULoss", "DIoULoss", "CIoULoss", "EIoULoss", "SIoULoss"),
    *("collate_matches", "collate_padded", "collate_ragged"),
    *("check_boxes", "check_indices", "debug"),
    *("complete_box_iou_loss", "distance_box_iou_loss", "generalized_box_iou_loss"),
    *("cpu_capability", "global_normalizer", "implementations"),
    *("QueryLayers", "SetLosses", "set_criterion"),
}


def test_the_names_are_torchs() -> None:
    assert {*boxloss.jax.__all__} == {*boxloss.torch.__all__} - TORCHS


def parameters(function: Any) -> list[tuple[str, Any, Any]]:
    return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]


FUNCTIONS = [name for name in boxloss.jax.__all__ if inspect.isfunction(getattr(boxloss.jax, name))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_parameters_are_torchs(name: str) -> None:
    """The same names and defaults, in one order."""
    assert parameters(getattr(boxloss.jax, name)) == parameters(getattr(boxloss.torch, name))


@pytest.mark.parametrize(
    "name",
    [
        *("box_loss", "rotated_box_loss", "class_loss", "distribution_loss", "matching_cost"),
        *("hungarian_match", "linear_sum_assignment", "max_iou_match", "task_aligned_match"),
    ],
)
def test_a_docstring_tells_every_parameter(name: str) -> None:
    function = getattr(boxloss.jax, name)
    told = re.findall(r"\w+", function.__doc__)
    missing = [each for each, *_ in parameters(function) if each not in told]
    assert not missing, f"parameters that {name}'s docstring does not tell: {missing}"
