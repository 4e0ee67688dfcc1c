# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What several measurements of one thing say together."""

from __future__ import annotations

from collections.abc import Sequence

import torch


def tenths(samples: Sequence[float], scale: float = 1.0) -> dict[str, float]:
    """The median, and what a tenth of the samples is below and above, all times `scale`."""
    low, middle, high = (each * scale for each in _quantiles(samples, (0.1, 0.5, 0.9)))
    return {"median": middle, "p10": low, "p90": high}


def summary(samples: Sequence[float]) -> dict[str, float]:
    """The median, and the quartiles."""
    low, middle, high = _quantiles(samples, (0.25, 0.5, 0.75))
    return {"median": middle, "lower_quartile": low, "upper_quartile": high}


def _quantiles(samples: Sequence[float], shares: Sequence[float]) -> list[float]:
    values, wanted = (torch.tensor(each, dtype=torch.float64) for each in (samples, shares))
    return [float(each) for each in values.quantile(wanted)]
