# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What boxloss.jax has is what boxloss.torch has, but for what is torch's alone."""

import inspect
import re
from typing import Any, get_args

import boxloss.jax
import boxloss.torch
import pytest
from jax.typing import ArrayLike
from torch import Tensor

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


def kind(annotation: Any) -> Any:
    """An array, whatever a framework has for it; a word, flag or number as the package has it."""
    types = (annotation, *get_args(annotation))
    if annotation in (ArrayLike, ArrayLike | None) or Tensor in types:
        return "array", type(None) in types
    return re.sub(r"\b[a-z_.]+\.", "", str(annotation))


def parameters(function: Any) -> list[tuple[str, Any, Any, Any]]:
    given = inspect.signature(function).parameters.values()
    return [(each.name, each.kind, each.default, kind(each.annotation)) for each in given]


FUNCTIONS = [name for name in boxloss.jax.__all__ if inspect.isfunction(getattr(boxloss.jax, name))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_parameters_are_torchs(name: str) -> None:
    """The same names, defaults and types, in one order."""
    assert parameters(getattr(boxloss.jax, name)) == parameters(getattr(boxloss.torch, name))
