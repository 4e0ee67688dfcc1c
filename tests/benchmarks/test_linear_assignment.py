# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The study of linear assignment: other indices of boxloss', and peers' other sums, are refused."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("boxloss.torch")
pytest.importorskip("rich")
pytest.importorskip("scipy")

from benchmarks.runner.agreement import DisagreementError
from benchmarks.studies.linear_assignment import QUICK, boxloss, check, load_scipy, make_case


@pytest.mark.parametrize(
    "name", ["1,024 of 32 x 32, float64", "64 of 256 x 256, limit", "112 of 300 x 20"]
)
def test_another_assignment_is_refused(name: str) -> None:
    case = make_case(name, QUICK[name.partition(", ")[0]], torch.device("cpu"))
    wanted = load_scipy(case)(case)
    found = boxloss(case)
    check(case, "boxloss", found, wanted)
    check(case, "lap", found, wanted)
    for of in ("boxloss", "lap"):
        with pytest.raises(DisagreementError, match=f"{case.name}: .* than SciPy"):
            check(case, of, found.roll(1, -1), wanted)
