# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The examples of detectors show eight steps, and an end for each way but the original."""

import runpy
import sys
from unittest.mock import patch

import pytest

WAYS = {"detr": 2} | dict.fromkeys(
    ("rt_detr", "rt_detr_compiled", "yolo", "fcos", "retinanet", "faster_rcnn", "mask2former"), 1
)


@pytest.mark.parametrize("example", WAYS)
def test_example_runs(example: str, capsys: pytest.CaptureFixture[str]) -> None:
    with patch.object(sys, "argv", [example]):
        runpy.run_module(f"examples.{example}", run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 8 + WAYS[example]
    assert all("weights of" in line for line in lines[-WAYS[example] :])
