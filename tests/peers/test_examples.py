# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The examples of detectors show eight steps, and an end for each way but the original."""

import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import pytest
import torch
from boxloss.torch.compat import use_boxloss
from PIL import Image

from examples import mask2former
from examples.rectangles import COLOURS, SIDE

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


def test_masks_are_painted(tmp_path: Path) -> None:
    """The left half, by the second of two queries; the first one is sure of no class."""
    logits = torch.tensor([[[0.0, 0, 0, 9], [0, 0, 9, 0]]])
    masks = torch.full((1, 2, 4, 4), 9.0)
    masks[0, 1, :, 2:] = -9
    _, model = mask2former.train(use_boxloss, steps=0)
    mask2former.picture(model, str(tmp_path / "masks.png"), steps=1)
    found = SimpleNamespace(class_queries_logits=logits, masks_queries_logits=masks)
    with patch.object(model, "forward", lambda _: found):
        (image,) = mask2former.painted(model, torch.zeros(1, 3, SIDE, SIDE))
    assert (image[:, : SIDE // 2] == COLOURS[2]).all()
    assert (image[:, SIDE // 2 :] == 0).all()
    with Image.open(tmp_path / "masks.png") as shown:
        assert shown.size == (4 * 8 * SIDE, 4 * 3 * SIDE)
