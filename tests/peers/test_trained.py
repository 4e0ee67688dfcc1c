# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The study of trainings judges by pycocotools."""

import pytest
import torch

pytest.importorskip("pycocotools")
pytest.importorskip("transformers")

from benchmarks.studies.trained.scenes import Scenes
from benchmarks.studies.trained.training import judged

BOXES = [torch.tensor([[10.0, 20, 30, 50], [40, 40, 300, 200]]), torch.zeros(0, 4)]
LABELS = [torch.tensor([3, 10]), torch.zeros(0, dtype=torch.long)]


def precisions(all_boxes: float, small: float) -> object:
    return pytest.approx({"mAP50-95": all_boxes, "mAP50-95, small": small})


def test_the_truth_has_a_precision_of_1_and_less_if_it_is_moved_or_incomplete() -> None:
    scenes = Scenes(torch.zeros(2, 3, 320, 320, dtype=torch.uint8), BOXES, LABELS)
    truth = torch.cat((BOXES[0], torch.ones(2, 1), LABELS[0][:, None]), 1)
    none = torch.zeros(0, 6)
    moved = truth + torch.tensor([4.0, 0, 4, 0, 0, 0])
    assert judged([truth, none], scenes) == precisions(1, 1)
    assert judged([truth[1:], none], scenes) == precisions(0.5, 0)
    # IoUs of 16 / 24 and 256 / 264 pass 4 and 10 of the thresholds 0.5, 0.55 ... 0.95.
    assert judged([moved, none], scenes) == precisions(0.7, 0.4)
    assert judged([none, none], scenes) == precisions(0, 0)
