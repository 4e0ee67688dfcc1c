# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What studies hold others against is right, and their pictures are what they say."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

pytest.importorskip("boxloss.torch")
pytest.importorskip("rich")
pytest.importorskip("skimage")

from benchmarks.common.cases import seed_case
from benchmarks.common.exact import check, truth
from benchmarks.common.losses import giou
from benchmarks.runner.agreement import DisagreementError
from benchmarks.studies.face_detector.data import FacePictures
from benchmarks.studies.rotated import exact, peers
from benchmarks.studies.rotated.pairs import JITTER, draw

CPU = torch.device("cpu")
KNOWN = Path(__file__).parents[1] / "core/rotated_pairs.csv"
NUMBERS = ("cx", "cy", "w", "h", "angle")

# --- Losses ---


def test_what_leaks_out_of_an_unused_slot_is_found_out() -> None:
    case = seed_case("f32/f32", CPU, shape=(17, 12))

    def leaky(pred: Tensor, target: Tensor) -> Tensor:
        counted = (target != 0).any(dim=-1)
        return torch.where(counted, 1 - giou(pred, target), 0).sum() / counted.sum()

    with pytest.raises(DisagreementError, match="wrong: gradient nan"):
        check("wrong", case.on(leaky, "padded"), case, truth(case))


def test_areas_are_those_of_the_known_rotated_pairs() -> None:
    with KNOWN.open() as file:
        rows = list(csv.DictReader(file))

    def column(*names: str) -> Tensor:
        cells = [[float(row[name]) for name in names] for row in rows]
        return torch.tensor(cells, dtype=torch.float64)

    pred, target = (column(*(f"{box}_{each}" for each in NUMBERS)) for box in ("pred", "target"))
    for loss, known in ((exact.iou, "iou"), (exact.giou, "giou_hull")):
        found = 1 - loss(pred, target)
        torch.testing.assert_close(found, column(known)[:, 0], rtol=0, atol=1e-14)


@pytest.mark.parametrize("family", ["pixel, random", JITTER, "contained"])
@pytest.mark.parametrize("name", ["clipped_iou", "clipped_giou", "kld", "gwd"])
def test_in_float64_others_formulas_of_rotated_boxes_are_the_same(name: str, family: str) -> None:
    """Clipping, and the papers' matrices."""
    pairs = [each.double() for each in draw(family, 1000, CPU)]
    wanted = exact.LOSSES[name.removeprefix("clipped_")](*pairs)
    torch.testing.assert_close(getattr(peers, name)(*pairs), wanted, rtol=0, atol=1e-5)


# --- Pictures ---


def test_face_pixels_are_exactly_those_in_the_boxes() -> None:
    white = np.full((3, 25, 25), 255, dtype=np.uint8)
    black = np.zeros((300, 280), dtype=np.uint8)
    data = FacePictures("train", 0, 31, faces=white, photographs=[black])
    seen = 0
    for index in range(60):
        picture, boxes = data[index]
        expected = torch.zeros(256, 256, dtype=torch.uint8)
        for x1, y1, x2, y2 in boxes.tolist():
            expected[y1:y2, x1:x2] = 255
        assert torch.equal(picture, expected)
        seen += len(boxes)
    assert seen > 60
