# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Where the formula is not smooth: ties of min and max, touching boxes, areas at eps."""

import pytest
import torch
from boxloss.torch import use_implementation
from comparison import run, run_formula
from devices import Implementation

PAIRS = {
    "identical": ([0, 0, 4, 4], [0, 0, 4, 4]),
    "one edge in common": ([0, 0, 4, 4], [0, 1, 6, 3]),
    "two edges in common": ([0, 0, 4, 4], [0, 0, 6, 6]),
    "nested, sharing x2": ([0, 0, 8, 8], [2, 2, 8, 6]),
    "touching in x": ([0, 0, 2, 2], [2, 0, 4, 2]),
    "touching in a corner": ([0, 0, 2, 2], [2, 2, 4, 4]),
    "touching, other order": ([2, 1, 4, 5], [0, 0, 2, 3]),
    "apart": ([0, 0, 2, 2], [5, 5, 7, 8]),
    "apart in x, overlapping in y": ([0, 0, 2, 4], [5, 1, 7, 3]),
    "a line": ([0, 0, 4, 0], [1, -1, 3, 5]),
    "a point": ([1, 1, 1, 1], [0, 0, 4, 4]),
    "inverted in x": ([6, 0, 2, 4], [1, 1, 9, 3]),
    "inverted in both": ([6, 5, 2, 1], [0, 0, 8, 8]),
    "both inverted": ([6, 5, 2, 1], [7, 6, 2, 3]),
}


@pytest.mark.parametrize("eps_mode", ["add", "clamp"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", PAIRS)
def test_against_the_formula(
    implementation: Implementation, name: str, dtype: torch.dtype, eps_mode: str
) -> None:
    pred, target = (torch.tensor(box, dtype=dtype) for box in PAIRS[name])
    values = {
        "pred": pred.to(implementation.device),
        "target": target.to(implementation.device),
        "eps_mode": eps_mode,
        "eps": 0.25,
    }
    actual, expected = run(values), run_formula(values)
    for key, wanted in expected.items():
        # All areas are small integers and eps a power of two: everything is exact up to the
        # denominators, of size >= 1/4. Some 50 roundings of numbers up to 200 are left.
        roundoff = torch.finfo(dtype).eps
        assert actual[key].cpu().double().sub(wanted).abs().max() <= 50 * 200 * roundoff, key


def gradient_of_pred(implementation: Implementation, pred: list[float], **options: object) -> list:
    boxes = torch.tensor(pred, device=implementation.device, dtype=torch.float32)
    target = torch.tensor([0.0, 0.0, 2.0, 2.0], device=implementation.device)
    one = torch.ones((), device=implementation.device)
    return run({"pred": boxes, "target": target, **options}, one)["pred"].tolist()


def test_a_tie_is_shared_half_and_half(implementation: Implementation) -> None:
    # Identical boxes of area 4, per coordinate: the area's share (1/4 - 1/4) * 2 = 0, half of the
    # intersection's -1/4 * 2 and half of the enclosure's +1/4 * 2: they cancel.
    assert gradient_of_pred(implementation, [0, 0, 2, 2], eps=0.0) == [0, 0, 0, 0]
    # Sharing x1 = 0 only: I = 2, U = C = 4. By U: 2/16 - 1/4; by I: -1/4 - that = -1/8; by C: 1/4.
    by_union, by_inter, by_enclosing = -1 / 8, -1 / 8, 1 / 4
    first = gradient_of_pred(implementation, [0, 0, 1, 2], eps=0.0)[0]
    assert first == -(by_union * 2 + by_inter * 2 / 2 + by_enclosing * 2 / 2)


def test_touching_boxes_have_no_gradient_through_the_intersection(
    implementation: Implementation,
) -> None:
    # I = 0, U = C = 8: loss = 1 - (0 - (C - U) / C). By U: -1/8, by C: 1/8.
    touching = gradient_of_pred(implementation, [2, 0, 4, 2], eps=0.0)
    assert touching[0] == 2 / 8  # moving x1 changes A_p only: -(-1/8) * 2
    assert touching[2] == 0  # moving x2 changes A_p and C alike


def test_clamp_passes_half_the_gradient_at_equality(implementation: Implementation) -> None:
    # U = C = 8 for the boxes above. eps below, at and above: slope 1, a half, 0.
    def slopes() -> list[float]:
        return [
            gradient_of_pred(implementation, [2, 0, 4, 2], eps=eps, eps_mode="clamp")[0]
            for eps in (4.0, 8.0, 16.0)
        ]

    assert slopes() == [2 / 8, 2 / 8 / 2, 0]
    with use_implementation("aten"):
        assert slopes() == [2 / 8, 2 / 8 / 2, 0]
