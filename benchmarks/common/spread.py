# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What several measurements of one thing say together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def tenths(samples: Sequence[float], scale: float = 1.0) -> dict[str, float]:
    """The median, and what a tenth of the samples is below and above, all times `scale`."""
    low, middle, high = np.percentile(samples, (10, 50, 90)) * scale
    return {"median": float(middle), "p10": float(low), "p90": float(high)}


def summary(samples: Sequence[float]) -> dict[str, float]:
    """The median, and the quartiles."""
    low, middle, high = np.percentile(samples, (25, 50, 75))
    return {"median": float(middle), "lower_quartile": float(low), "upper_quartile": float(high)}
