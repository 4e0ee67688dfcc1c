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

from benchmarks.runner.agreement import DisagreementError
from benchmarks.studies import assignment
from benchmarks.studies.assignment import QUICK_SIZES, check, load_scipy, make_case, steps_of


def test_another_assignment_is_refused() -> None:
    name = "13 groups of 300 x 7"
    case = make_case(name, "half-trained", QUICK_SIZES[name], torch.device("cpu"))
    expected = load_scipy(case)()
    found = assignment.boxloss(case)
    check(case, found, expected)
    other = found._replace(target_of_query=found.target_of_query.roll(1, -1))
    with pytest.raises(DisagreementError, match="another assignment than SciPy's"):
        check(case, other, expected)


def test_steps_of_a_small_problem() -> None:
    """Both rows want the first place: the second's path visits it, then a free one."""
    assert steps_of(np.array([[1.0, 3.0, 9.0], [0.0, 5.0, 9.0]])) == 3
    assert steps_of(np.array([[1.0, 0.0], [3.0, 5.0], [9.0, 9.0]])) == 3
    assert steps_of(1 - np.eye(4)) == 4
