# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The study of dtypes: what its bytes and its errors are."""

from __future__ import annotations

from functools import partial

import pytest
import torch

pytest.importorskip("boxloss.torch")

from benchmarks.common.cases import DTYPES, dense_case, seed_case
from benchmarks.runner.counts import operator_bytes, peak_bytes_on
from benchmarks.studies import dtypes
from benchmarks.studies.dtypes import (
    BOXLOSS,
    CAST,
    DENSE_PAIRS,
    GRADIENT_ERROR,
    LOSS_ERROR,
    ROUNDING,
    STORING,
    USUAL,
    WRAPPING,
    errors_of,
    exact_boxes,
    least_bytes,
    relative,
    stored,
    variants,
)

CPU = torch.device("cpu")
COUNT = 256
SCALARS = 100  # bytes of the losses, and of what is one number beside them


@pytest.mark.parametrize("pair", DENSE_PAIRS)
def test_what_dense_pairs_have_to_move_is_what_the_operators_move(pair: str) -> None:
    case = dense_case(pair, 1000, CPU)
    for name, variant in variants(case).items():
        loss = partial(variant.load(case), case.pred, *case.layouts["dense"])

        def both(loss=loss) -> object:  # type: ignore[no-untyped-def]
            return torch.autograd.grad(loss(), case.pred)

        assert 0 <= operator_bytes(both) - least_bytes(name, case, True, both) < SCALARS
        with torch.no_grad():
            assert 0 <= operator_bytes(loss) - least_bytes(name, case, False, loss) < SCALARS


def test_of_true_boxes_by_lengths_only_those_that_are_there_are_read() -> None:
    case = seed_case("bf16/u8", CPU, (16, 8))
    lengths = case.layouts["lengths"][1]
    forward = least_bytes(BOXLOSS, case, False, object)
    assert forward == case.boxes * 4 * (2 + 1) + lengths.nbytes
    assert least_bytes(BOXLOSS, case, True, object) == 2 * forward + case.pred.nbytes
    # All slots of both are cast, and the gradient's are cast back.
    casts = 16 * 8 * 4 * (2 * (2 + 4) + (1 + 4))
    as_float32 = least_bytes(BOXLOSS, seed_case("f32/f32", CPU, (16, 8)), True, object)
    assert least_bytes(CAST, case, True, object) == casts + as_float32


def test_a_gradient_that_is_left_over_does_not_hide_in_the_peak() -> None:
    case = dense_case("bf16/u8", 1000, CPU)
    peaks = {}
    for name, variant in variants(case).items():
        loss = partial(variant.load(case), case.pred, *case.layouts["dense"])
        peaks[name] = peak_bytes_on(CPU, lambda loss=loss: torch.autograd.grad(loss(), case.pred))
    own, floats = 4000 * 2, 4000 * 4
    assert own <= peaks[BOXLOSS] < own + SCALARS
    # Both casts, and the gradient before and, in part, after its own.
    assert 3 * floats <= peaks[CAST] < 3 * floats + own


@pytest.mark.parametrize("side", [8, 64])
@pytest.mark.parametrize("pair", dtypes.ERROR_PAIRS["xyxy"])
def test_boxloss_adds_nothing_that_its_dtypes_do_not(pair: str, side: int) -> None:
    found = errors_of(*exact_boxes(side, 255, "xyxy", COUNT, CPU), "xyxy", pair, side)
    # All in float32 but the gradient, which is rounded to the predictions' dtype. A median GIoU
    # loss here is above 0.1, and has fewer than 48 roundings of at most 2: see tests/torch.
    unit = torch.finfo(torch.float32).eps / 2
    assert found[BOXLOSS, LOSS_ERROR] < 2 * 48 * unit / 0.1
    if not pair.startswith("f32"):
        ours, rounding = (found[name, GRADIENT_ERROR] for name in (BOXLOSS, ROUNDING))
        assert 0.9 * rounding <= ours < 1.1 * rounding
    assert found[STORING, LOSS_ERROR] > found[BOXLOSS, LOSS_ERROR]


def test_corners_and_areas_in_half_and_uint8_are_found_out() -> None:
    found = errors_of(*exact_boxes(64, 255, "cxcywh", COUNT, CPU), "cxcywh", "bf16/f32", 64 / 1024)
    assert found[USUAL, LOSS_ERROR] > 1000 * found[BOXLOSS, LOSS_ERROR]
    found = errors_of(*exact_boxes(64, 255, "xyxy", COUNT, CPU), "xyxy", "f32/u8", 64)
    assert found[USUAL, LOSS_ERROR] < 1e-5
    assert found[WRAPPING, LOSS_ERROR] > 1
    found = errors_of(*exact_boxes(512, 1024, "xyxy", COUNT, CPU), "xyxy", "f16/f32", 512)
    assert found[USUAL, LOSS_ERROR] == torch.inf  # areas beyond 65,504


def test_a_wrong_loss_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    right = dtypes.boxloss_of
    monkeypatch.setattr(dtypes, "boxloss_of", lambda fmt: lambda *boxes: 1.01 * right(fmt)(*boxes))
    found = errors_of(*exact_boxes(64, 255, "xyxy", COUNT, CPU), "xyxy", "f32/f32", 64)
    for quantity in (LOSS_ERROR, GRADIENT_ERROR):
        assert found[BOXLOSS, quantity].item() == pytest.approx(0.01, rel=1e-3)


def test_equal_results_have_no_error_and_nan_is_not_finite() -> None:
    zero = torch.zeros(3)
    assert relative(zero, zero) == 0
    assert relative(zero[:, None], zero[:, None]) == 0
    assert relative(torch.full((3,), torch.nan), zero) == torch.inf


def test_boxes_are_rounded_to_the_nearest() -> None:
    pred, _ = exact_boxes(8, 255, "xyxy", COUNT, CPU)
    for dtype in (DTYPES["u8"], DTYPES["bf16"]):
        kept = stored(pred.clamp(0, 255), dtype).double()
        spacing = 1.0 if dtype == torch.uint8 else 2.0**-8 * 256
        assert (kept - pred.clamp(0, 255)).abs().max() <= spacing / 2
