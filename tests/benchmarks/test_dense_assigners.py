# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The study of dense assigners: another assignment than the originals' is refused."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("boxloss.torch")
pytest.importorskip("rich")

from torch import Tensor

from benchmarks.runner.agreement import DisagreementError
from benchmarks.studies.dense_assigners import (
    QUICK_SIZES,
    all_targets,
    check_max_iou,
    check_task_aligned,
    make_case,
    max_iou,
)

CPU = torch.device("cpu")
NAMES = "task-aligned, 100 boxes", "max-IoU, 50 boxes"
TASK_ALIGNED, MAX_IOU = (make_case(name, QUICK_SIZES[name], CPU) for name in NAMES)


def test_another_task_aligned_match_is_refused() -> None:
    row, score, overlap, *_, scores = all_targets(TASK_ALIGNED)
    assert (row >= 0).sum() > 20
    # What Ultralytics' assigner would have returned for it.
    row_in_image = (row - TASK_ALIGNED.offsets[:-1, None]).clamp(min=0)
    theirs = None, None, score[..., None], row >= 0, row_in_image

    def check(row: Tensor, score: Tensor, scores: Tensor) -> int:
        return check_task_aligned(TASK_ALIGNED, (row, score, overlap, scores), theirs)

    assert check(row, score, scores) == 0
    with pytest.raises(DisagreementError, match="anchors have another box"):
        check(row.roll(1, 1), score, scores)
    with pytest.raises(DisagreementError, match="beyond rounding"):
        check(row, 1.01 * score, scores)
    with pytest.raises(DisagreementError, match="scores of classes"):
        check(row, score, scores.roll(1, 1))


def test_another_max_iou_match_is_refused() -> None:
    row, _ = max_iou(MAX_IOU)
    assert {-1, -2} < set(row.unique().tolist())
    theirs = list(torch.where(row < 0, row, row - MAX_IOU.offsets[:-1, None]))
    assert check_max_iou(MAX_IOU, (row,), theirs) == 0
    with pytest.raises(DisagreementError, match="other boxes than torchvision's"):
        check_max_iou(MAX_IOU, (row.roll(1, 1),), theirs)
