# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""task_aligned_match beside Ultralytics' TaskAlignedAssigner with settings that no YOLO has: in
their criterion, whose losses and gradients are others where one anchor has another box."""

from typing import Any

import pytest
import torch
from boxloss.torch.compat import use_boxloss
from surroundings import DEVICES, default_dtype
from test_yolo import COUNTS, assert_same, run, without_eps  # noqa: F401
from torch import nn

from examples.training import Replace, keep

SETTINGS: tuple[dict[str, Any], ...] = (
    {"topk": 13, "alpha": 1.0},
    {"topk": 1},
    {"topk": 10, "topk2": 1, "beta": 4.0},
)


def with_settings(replace: Replace, settings: dict[str, Any]) -> Replace:
    """In each criterion that the model makes; YOLO26's has two heads."""

    def change(model: nn.Module) -> None:
        replace(model)
        make = model.init_criterion

        def made() -> Any:
            criterion = make()
            for name in ("one2many", "one2one"):
                vars(getattr(criterion, name, criterion).assigner).update(settings)
            return criterion

        model.init_criterion = made

    return change


@pytest.mark.usefixtures("without_eps")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("counts", COUNTS, ids=str)
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("kind", ["11", "26"])
def test_is_theirs(
    kind: str, settings: dict[str, Any], counts: tuple[int, ...], device: str
) -> None:
    with default_dtype(torch.float64):
        ways = (with_settings(each, settings) for each in (keep, use_boxloss))
        assert_same(*(run(each, kind, counts, 0, device) for each in ways), counts)
