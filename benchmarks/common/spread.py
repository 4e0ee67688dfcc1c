# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What several measurements of one thing say together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def summary(samples: Sequence[float]) -> dict[str, float]:
    low, middle, high = np.percentile(samples, (25, 50, 75))
    return {"median": float(middle), "lower_quartile": float(low), "upper_quartile": float(high)}
