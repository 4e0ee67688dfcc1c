# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What several measurements of one thing say together."""

from __future__ import annotations

import pytest

from benchmarks.common.spread import summary, tenths

SAMPLES = [7.0, 0, 10, 1, 9, 2, 8, 3, 6, 4, 5]  # 0 to 10, out of order


def test_quartiles() -> None:
    assert summary(SAMPLES) == {"median": 5, "lower_quartile": 2.5, "upper_quartile": 7.5}


def test_tenths_in_another_unit() -> None:
    assert tenths(SAMPLES, 1e6) == pytest.approx({"median": 5e6, "p10": 1e6, "p90": 9e6})


def test_one_sample_is_all_there_is() -> None:
    assert set(summary([3.0]).values()) == set(tenths([3.0]).values()) == {3}
