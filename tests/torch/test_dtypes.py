# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Every mix of dtypes, converted in registers."""

import pytest
import torch
from comparison import check, run
from devices import Implementation
from problems import FLOATING, TARGETS, problem

pytestmark = pytest.mark.asan


@pytest.mark.parametrize("target_dtype", TARGETS, ids=str)
@pytest.mark.parametrize("pred_dtype", FLOATING, ids=str)
def test_every_mix(
    implementation: Implementation, pred_dtype: torch.dtype, target_dtype: torch.dtype
) -> None:
    device = implementation.device
    check(problem("dense", device, pred_dtype, target_dtype, reduction="none"))
    check(problem("offsets", device, pred_dtype, target_dtype, pred_format="cxcywh"))


@pytest.mark.parametrize("weight", FLOATING, ids=str)
@pytest.mark.parametrize("boxes", [torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_weights(implementation: Implementation, boxes: torch.dtype, weight: torch.dtype) -> None:
    values = problem("mask", implementation.device, boxes, boxes, weight, reduction="none")
    check(values)  # the loss' dtype too, which weight does not change


def test_uint8_areas_do_not_wrap(implementation: Implementation) -> None:
    target = torch.tensor([0, 0, 200, 200], dtype=torch.uint8, device=implementation.device)
    pred = torch.tensor([0.0, 0.0, 200.0, 100.0], device=implementation.device)
    loss = run({"pred": pred, "target": target, "eps": 0.0})["loss"]
    assert loss.item() == 0.5  # 1 - 20,000 / 40,000


def test_uint8_corners_do_not_wrap(implementation: Implementation) -> None:
    target = torch.tensor([200, 200, 100, 100], dtype=torch.uint8, device=implementation.device)
    pred = torch.tensor([200.0, 200.0, 300.0, 300.0], device=implementation.device)
    values = {"pred": pred, "target": target, "target_format": "xywh", "eps": 0.0}
    loss = run(values)["loss"]
    assert loss.item() == 0


def test_small_halves_where_subnormal_floats_are_flushed(implementation: Implementation) -> None:
    side = 2.0**-15  # subnormal in float16, and its area is none in float32
    box = torch.tensor([0, 0, side, side], dtype=torch.float16, device=implementation.device)
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor cannot flush subnormal floats")
    try:
        loss = run({"pred": box, "target": box, "eps": 0.0})["loss"]
    finally:
        torch.set_flush_denormal(False)
    assert loss.item() == 0


def test_integers_round_to_the_compute_dtype(implementation: Implementation) -> None:
    # 2^24 + 1 is no float32; it ties to 2^24.
    odd = torch.tensor([2**24 + 1, 0, 2**24 + 4, 2], device=implementation.device)
    pred = torch.tensor([2.0**24, 0, 2.0**24 + 4, 2], device=implementation.device)
    loss = run({"pred": pred, "target": odd, "eps": 0.0})["loss"]
    assert loss.item() == 0
    in_double = run({"pred": pred.double(), "target": odd, "eps": 0.0})["loss"]
    assert in_double.item() == 0.25
