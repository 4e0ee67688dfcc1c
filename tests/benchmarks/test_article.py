# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The article's losses are what they say: right on float boxes, wrapped on uint8 ones."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import torch
from torch import Tensor

pytest.importorskip("boxloss.torch")
pytest.importorskip("rich")
pytest.importorskip("skimage")

from benchmarks.common.nvcc import compile_operators
from benchmarks.runner.agreement import DisagreementError
from benchmarks.studies.article import check_mean
from benchmarks.studies.article import losses as its
from benchmarks.studies.face_detector import padded, probe, truth
from benchmarks.studies.face_detector.data import RandomPictures

SLOTS = 32
PICTURES = RandomPictures("train", 0, SLOTS)
BOXES = [PICTURES[index][1] for index in range(64)]


def values(pred: Tensor, boxes: list[Tensor]) -> dict[str, Tensor]:
    return {
        "loop": its.loop(pred, *boxes),
        "concat": its.concat(pred, *boxes),
        "mask": its.mask(pred, *padded(boxes, SLOTS)),
    }


def test_on_float_boxes_they_are_right() -> None:
    boxes = [each.float() for each in BOXES]
    pred = probe(boxes, SLOTS, torch.float32)
    expected = truth(pred, boxes)
    for name, value in values(pred.nan_to_num(nan=7.0), boxes).items():
        check_mean(name, value.item(), expected, "float32")
    leaking = its.mask(pred, *padded(boxes, SLOTS)).item()
    with pytest.raises(DisagreementError, match=r"^mask: a mean GIoU of nan, but .* gives 0\.\d"):
        check_mean("mask", leaking, expected, "float32")


def test_areas_of_uint8_boxes_wrap() -> None:
    pred = probe(BOXES, SLOTS, torch.bfloat16).nan_to_num(nan=7.0)
    for value in values(pred, BOXES).values():
        assert value.item() > 1000


@pytest.mark.long
def test_its_kernels_compile(tmp_path: Path) -> None:
    if shutil.which(os.environ.get("CUDACXX", "nvcc")) is None:
        pytest.skip("needs nvcc")
    torch.ops.load_library(str(compile_operators(its.SOURCE, "sm_90", tmp_path)))
    boxes = torch.zeros(1, its.SLOTS, 4)
    with pytest.raises(NotImplementedError, match=r"article::loss.*'CPU'"):
        torch.ops.article.loss(boxes, boxes, clamps=True, branch=False)
