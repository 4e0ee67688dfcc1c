# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Every loss with every pairing, reduction, format and dtype, against the formula."""

import pytest
import torch
from bounds import check_bounded
from devices import Implementation
from formulas import LOSSES
from problems import FORMATS, PAIRINGS, Problem, problem, with_overlaps

pytestmark = pytest.mark.parametrize("loss", LOSSES)
HALVES = (torch.float16, torch.bfloat16)
FORMAT_PAIRS = [*((word, word) for word in FORMATS), ("xywh", "cxcywh"), ("cxcywh", "xyxy")]
MIXES = [
    (torch.float64, torch.float64),
    (torch.float64, torch.float32),
    (torch.float32, torch.float64),
    (torch.float16, torch.float16),
    (torch.bfloat16, torch.float16),
    (torch.bfloat16, torch.uint8),
    (torch.float32, torch.uint8),
    (torch.float32, torch.int64),
]


def check(values: Problem) -> None:
    check_bounded(with_overlaps(values))


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_pairings(implementation: Implementation, loss: str, pairing: str) -> None:
    options = {"loss": loss, "reduction": "none"}
    check(problem(pairing, implementation.device, weight=torch.float32, **options))


@pytest.mark.parametrize("reduction", ["sum", "mean", "normalizer"])
def test_reductions(implementation: Implementation, loss: str, reduction: str) -> None:
    device = implementation.device
    values = problem("lengths", device, weight=torch.float32, loss=loss, reduction="mean")
    if reduction == "normalizer":
        check({**values, "normalizer": torch.tensor(2.5, device=device)})
    else:
        check({**values, "reduction": reduction})


@pytest.mark.parametrize(("pred_format", "target_format"), FORMAT_PAIRS)
def test_formats(
    implementation: Implementation, loss: str, pred_format: str, target_format: str
) -> None:
    formats = {"pred_format": pred_format, "target_format": target_format}
    mode = "clamp" if pred_format == "xywh" else "add"
    options = {"loss": loss, "reduction": "none", "eps_mode": mode, **formats}
    check(problem("dense", implementation.device, **options))


@pytest.mark.parametrize(("pred", "target"), MIXES, ids=str)
def test_dtypes(
    implementation: Implementation, loss: str, pred: torch.dtype, target: torch.dtype
) -> None:
    check(problem("dense", implementation.device, pred, target, loss=loss))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_half_boxes_of_many_pixels(
    implementation: Implementation, loss: str, dtype: torch.dtype
) -> None:
    """Areas and squares that overflow float16 do not here: they are float32."""
    random = torch.Generator().manual_seed(6)
    corner, size = (torch.rand(2, 20, 2, generator=random) * 100).unbind(0)
    pred = torch.cat((corner, corner + 400 + size), -1)
    target = pred + 40 * torch.rand(20, 4, generator=random)
    values = {
        "pred": pred.to(implementation.device, dtype),
        "target": target.to(implementation.device, dtype),
        "loss": loss,
        "reduction": "none",
    }
    check_bounded(values)
    check_bounded({**values, "target": values["pred"]})
