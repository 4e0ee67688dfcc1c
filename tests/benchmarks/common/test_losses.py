# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The formula that all are held against."""

from __future__ import annotations

import torch

from benchmarks.common.losses import giou


def test_the_eager_formula_on_boxes_computed_by_hand() -> None:
    pred = torch.tensor([[0.0, 0, 2, 2], [0, 0, 1, 1], [3, 4, 5, 8]])
    target = torch.tensor([[1.0, 1, 3, 3], [2, 0, 3, 1], [3, 4, 5, 8]])
    # overlap/union - gap/enclosing: 1/7 - 2/9; apart 0/2 - 1/3; the same box 1
    expected = torch.tensor([1 / 7 - 2 / 9, -1 / 3, 1.0])
    torch.testing.assert_close(giou(pred, target), expected)
