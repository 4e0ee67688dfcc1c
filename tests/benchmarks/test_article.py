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

from benchmarks.common.losses import giou
from benchmarks.common.nvcc import compile_library
from benchmarks.runner.agreement import DisagreementError
from benchmarks.runner.counts import operators
from benchmarks.studies.article import check_mean, exercises
from benchmarks.studies.article import losses as its
from benchmarks.studies.face_detector import padded, probe, truth
from benchmarks.studies.face_detector.data import RandomPictures

SLOTS = 32


@pytest.fixture(scope="module")
def boxes() -> list[Tensor]:
    pictures = RandomPictures("train", 0, SLOTS)
    return [pictures[index][1] for index in range(64)]


def finite(boxes: list[Tensor], dtype: torch.dtype) -> Tensor:
    return probe(boxes, SLOTS, dtype).nan_to_num(nan=7.0)


def values(pred: Tensor, boxes: list[Tensor]) -> dict[str, Tensor]:
    return {
        "loop": its.loop(pred, *boxes),
        "concat": its.concat(pred, *boxes),
        "mask": its.mask(pred, *padded(boxes, SLOTS)),
    }


def test_on_float_boxes_they_are_right(boxes: list[Tensor]) -> None:
    boxes = [each.float() for each in boxes]
    pred = finite(boxes, torch.float32)
    expected = truth(pred, boxes)
    for name, value in values(pred, boxes).items():
        check_mean(name, value.item(), expected, "float32")
    leaking = its.mask(probe(boxes, SLOTS, torch.float32), *padded(boxes, SLOTS)).item()
    with pytest.raises(DisagreementError, match=r"^mask: a mean GIoU of nan, but .* gives 0\.\d"):
        check_mean("mask", leaking, expected, "float32")


def test_areas_of_uint8_boxes_wrap(boxes: list[Tensor]) -> None:
    pred = finite(boxes, torch.bfloat16)
    expected = truth(pred, boxes)
    for name, value in values(pred, boxes).items():
        assert value.item() > 1000
        with pytest.raises(DisagreementError, match=f"^{name}: "):
            check_mean(name, value.item(), expected, "uint8")


def test_the_printed_code_has_as_many_operators_as_it_says(boxes: list[Tensor]) -> None:
    pred, (target,) = finite(boxes, torch.bfloat16), padded(boxes, SLOTS)
    assert operators(lambda: its.printed_giou(target, pred)) == 24
    assert operators(lambda: its.mask(pred, target)) == 31


def test_a_branch_may_change_no_bit() -> None:
    front, scattered = (
        exercises.valid_slots(4, layout, 0.1, torch.device("cpu")).view(4, -1)
        for layout in exercises.LAYOUTS
    )
    assert torch.equal(front.sum(1), scattered.sum(1))
    assert not (front[:, 1:] > front[:, :-1]).any()
    valid = scattered.flatten()
    truths = torch.tensor([10.0, 20, 30, 40]).expand(len(valid), 4)
    pred, target = truths + 1, truths * valid[:, None]
    right = torch.where(valid, 1 - giou(pred, target), 0.0).expand(2, -1)
    exercises.check_branch(right, pred, target, valid, times=1)
    with pytest.raises(DisagreementError, match="changes a loss"):
        exercises.check_branch(torch.stack((right[0], right[0] + valid)), pred, target, valid, 16)
    with pytest.raises(DisagreementError, match="not the formula's"):
        exercises.check_branch(1.01 * right, pred, target, valid, times=1)


def test_its_kernels_compile(tmp_path: Path) -> None:
    if shutil.which(os.environ.get("CUDACXX", "nvcc")) is None:
        pytest.skip("needs nvcc")
    library = compile_library(its.SOURCE, "sm_90", tmp_path).read_bytes()
    assert b"giou_kernel" in library
    assert b"repeated_kernel" in library
