# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The study of mixed precision: it finds what half dtypes lose, and boxloss loses nothing."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

pytest.importorskip("boxloss.torch")
pytest.importorskip("rich")

from benchmarks.common.losses import giou
from benchmarks.runner.agreement import rounding_to
from benchmarks.studies import precision
from benchmarks.studies.precision import BOXLOSS, DTYPES, SIDES, corners, errors, make_pairs

CPU = torch.device("cpu")
COUNT = 256
FLOAT32_ROUNDOFF = 2.0**-24


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BOXLOSS)
def test_boxloss_is_as_exact_as_its_dtypes_allow(name: str, dtype: str, side: int) -> None:
    box_format, loss = BOXLOSS[name].format, BOXLOSS[name].load()
    pairs = make_pairs(side, box_format, DTYPES[dtype], COUNT, CPU)
    _, gradient = precision.exact(loss, pairs)
    # In float32 u over the shortest side, with corners that float32 holds: 316 a derivative of
    # GIoU in any format, see tests/torch/comparison.py, and 250 more of CIoU's, see
    # tests/peers/test_retinanet.py. A few u more are those of the cast and of the norms.
    boxes = [corners(each.double(), box_format) for each in (pairs.pred, pairs.target)]
    shortest = torch.cat([each[:, 2:] - each[:, :2] for each in boxes], dim=1).amin(dim=1)
    roundings = 316 + 250 * ("CIoU" in name)
    unit = pairs.scale * precision.unit(box_format)
    arithmetic = roundings * FLOAT32_ROUNDOFF * unit / shortest[:, None]
    allowed = arithmetic + rounding_to(DTYPES[dtype], gradient.abs() + arithmetic)

    found = errors(loss, pairs)
    assert found[precision.ALL_PAIRS] <= (allowed.norm() / gradient.norm()).item()
    # By the same files each loss, of at most 2.5; their root mean square is at least their mean.
    of_loss = 2.5 * (48 + 250 * ("CIoU" in name)) * FLOAT32_ROUNDOFF
    assert found[precision.LOSS] <= of_loss / found[precision.EXACT_MEAN_LOSS]
    rounding = precision.rounding_errors(loss, pairs)[precision.ALL_PAIRS]
    assert 0 < rounding < torch.finfo(DTYPES[dtype]).eps / 2


@pytest.mark.parametrize("name", ["boxloss GIoU, cxcywh", "boxloss GIoU"])
def test_exact_is_the_eager_formula_in_double(name: str) -> None:
    box_format = BOXLOSS[name].format
    pairs = make_pairs(8, box_format, torch.float16, COUNT, CPU)
    in_pixels = (corners(each.double(), box_format) for each in (pairs.pred, pairs.target))
    losses, _ = precision.exact(BOXLOSS[name].load(), pairs)
    # Areas are 9 and more; eps is 1e-7 at most.
    torch.testing.assert_close(losses, 1 - giou(*in_pixels), rtol=0, atol=1e-7)


def corners_in_half(pred: Tensor, target: Tensor) -> Tensor:
    return 1 - giou(corners(pred, "cxcywh").float(), corners(target, "cxcywh"))


def corners_in_single(pred: Tensor, target: Tensor) -> Tensor:
    return corners_in_half(pred.to(torch.promote_types(pred.dtype, torch.float32)), target)


@pytest.mark.parametrize("side", [4, 16, 64])
@pytest.mark.parametrize("dtype", DTYPES)
def test_corners_formed_in_half_are_found_out(dtype: str, side: int) -> None:
    pairs = make_pairs(side, "cxcywh", DTYPES[dtype], COUNT, CPU)
    good, bad = (errors(loss, pairs) for loss in (corners_in_single, corners_in_half))
    assert bad[precision.ALL_PAIRS] > 10 * good[precision.ALL_PAIRS]
    assert bad[precision.MEDIAN_PAIR] > 5 * good[precision.MEDIAN_PAIR]
    assert bad[precision.LOSS] > 100 * good[precision.LOSS]


def test_an_overflow_is_found_out() -> None:
    pairs = make_pairs(precision.LARGE, "xyxy", torch.float16, COUNT, CPU)
    found = errors(lambda pred, target: 1 - giou(pred, target.to(pred.dtype)), pairs)
    assert not math.isfinite(found[precision.ALL_PAIRS])
    assert math.isfinite(found[precision.EXACT_MEAN_LOSS])


@pytest.mark.parametrize("box_format", ["cxcywh", "xyxy"])
def test_pairs_are_what_a_head_gives(box_format: str) -> None:
    pairs = make_pairs(64, box_format, torch.float16, COUNT, CPU)
    assert (pairs.pred.dtype, pairs.target.dtype) == (torch.float16, torch.float32)
    pred, target = (corners(each.double(), box_format) for each in (pairs.pred, pairs.target))
    assert torch.equal(target * 8 % 2, torch.ones_like(target))  # odd eighths, exactly
    sides = target[:, 2:] - target[:, :2]
    assert 48 <= sides.min() < 52
    assert 76 < sides.max() <= 80
    assert 0.09 * 64 < (pred - target).std().item() < 0.11 * 64
