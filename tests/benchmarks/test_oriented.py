# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The study of oriented detectors: what is another assignment or loss is refused."""

from __future__ import annotations

import math

import pytest
import torch

pytest.importorskip("boxloss.torch")
pytest.importorskip("rich")

from benchmarks.runner.agreement import DisagreementError
from benchmarks.studies.oriented import (
    CASES,
    KINDS,
    QUICK_SIZES,
    count_others,
    largest_difference,
    make_case,
    rows_of_torchvision,
    rows_of_ultralytics,
)

CPU = torch.device("cpu")


@pytest.mark.parametrize("name", [name for name in CASES if "criterion" not in name])
def test_another_match_is_refused(name: str) -> None:
    case = make_case(name, QUICK_SIZES[name], CPU)
    match, _ = KINDS[case.size.kind]
    rows, exact = match(case)[0], match(case.double())[0]
    assert (rows >= 0).sum() > 10
    assert count_others(case, "boxloss", rows, exact) == 0
    for who in ("boxloss", "original"):
        with pytest.raises(DisagreementError, match="anchors have another box, of"):
            count_others(case, who, rows.roll(1, 1), exact)


def test_rows_are_those_of_all_images() -> None:
    case = make_case("task-aligned, 20 boxes", QUICK_SIZES["task-aligned, 20 boxes"], CPU)
    in_image, score = torch.tensor([[1, 0], [1, 0]]), torch.tensor([[0.5, 0.0], [0.2, 0.1]])
    theirs = None, None, score[..., None], None, in_image
    assert rows_of_ultralytics(case, theirs).tolist() == [[1, -1], [3, 2]]
    matched = torch.tensor([[-2, 1], [0, -1]])
    assert rows_of_torchvision(case, matched).tolist() == [[-2, 1], [2, -1]]


def test_losses_and_gradients_are_compared_by_their_norms() -> None:
    loss, gradient = torch.tensor(2.0), torch.tensor([3.0, 4.0])
    assert largest_difference((loss, gradient), (loss, gradient)) == 0
    assert largest_difference((loss * 1.5, gradient), (loss, gradient)) == 0.5
    other = gradient + torch.tensor([0.0, 0.5])
    assert largest_difference((loss, other), (loss, gradient)) == pytest.approx(0.1)
    for wrong in ((loss * torch.nan, gradient), (loss, gradient * torch.nan)):
        assert math.isnan(largest_difference(wrong, (loss, gradient)))
