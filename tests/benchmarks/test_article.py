# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The article's losses are what they say: its later text is right on float boxes, its sums of
bfloat16 and its areas of uint8 are not."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

pytest.importorskip("boxloss.torch")
pytest.importorskip("rich")
pytest.importorskip("skimage")

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


@pytest.mark.parametrize("clamps", [True, False], ids=["later", "earlier"])
def test_boxes_apart(clamps: bool) -> None:
    """A pair in each image. Without clamps 100 / 100 - 800 / 900, and a sum of bfloat16 stands
    still at 256, from where on numbers are 2 apart."""
    pair = torch.tensor([[0, 0, 10, 10], [20, 20, 30, 30]], dtype=torch.uint8)
    right = -7 / 9 if clamps else 1 / 9
    pred, boxes = pair[0].expand(1024, 1, 4), [pair[1:]] * 1024
    as_float = pred.float(), *(each.float() for each in boxes)
    for loss in (its.loop, its.concat):
        value = loss(*as_float, clamps=clamps).item()
        assert value == pytest.approx(right, rel=1024 * 2**-24)  # a rounding for each addition
    concat = its.concat(pred.bfloat16(), *boxes, clamps=clamps).item()
    assert concat == pytest.approx(right, rel=2**-6)
    loop = its.loop(pred.bfloat16(), *boxes, clamps=clamps).item()
    assert loop == (-256 / 1024 if clamps else 32 / 1024)
