# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The study of assignments: another assignment than SciPy's is refused, and steps are counted."""

from __future__ import annotations

import numpy as np
import pytest
import torch

pytest.importorskip("boxloss.torch")
pytest.importorskip("rich")
pytest.importorskip("scipy")

from boxloss.torch import MatchResult

from benchmarks.runner.agreement import DisagreementError
from benchmarks.studies import assignment
from benchmarks.studies.assignment import QUICK_SIZES, check, load_scipy, make_case, steps_of

CPU = torch.device("cpu")


@pytest.mark.parametrize("name", QUICK_SIZES)
def test_another_assignment_is_refused(name: str) -> None:
    case = make_case(name, "half-trained", QUICK_SIZES[name], CPU)
    expected = load_scipy(case)()
    found = assignment.boxloss(case)
    check(case, found, expected)
    rows = found.target_of_query.flatten(0, -2)
    for image in (0, -1):
        swapped = rows.clone()
        matched = rows[image] >= 0
        swapped[image, matched] = rows[image, matched].roll(1)
        with pytest.raises(DisagreementError, match="another assignment than SciPy's"):
            check(case, MatchResult(*found[:2], swapped), expected)


def test_steps_of_a_small_problem() -> None:
    """Both rows want the first place: the second's path visits it, then a free one."""
    assert steps_of(np.array([[1.0, 3.0, 9.0], [0.0, 5.0, 9.0]])) == 3
    assert steps_of(np.array([[1.0, 0.0], [3.0, 5.0], [9.0, 9.0]])) == 3
    assert steps_of(1 - np.eye(4)) == 4
