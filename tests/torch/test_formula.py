# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Values and gradients against the plain formula: every pairing, format, reduction and eps mode."""

from typing import Any

import pytest
import torch
from comparison import check, run
from devices import Implementation
from problems import FORMATS, PAIRINGS, REDUCTIONS, boxes, problem

NORMALIZERS = [
    torch.tensor(2.5, dtype=torch.float64),
    torch.tensor(2.5),
    torch.tensor(7),
    torch.tensor(7, dtype=torch.int32),
]


@pytest.mark.parametrize("eps_mode", ["add", "clamp"])
@pytest.mark.parametrize("weight", [None, torch.float32])
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("pairing", PAIRINGS)
def test_pairings_and_reductions(
    implementation: Implementation,
    pairing: str,
    reduction: str,
    weight: torch.dtype | None,
    eps_mode: str,
) -> None:
    check(
        problem(
            pairing, implementation.device, weight=weight, reduction=reduction, eps_mode=eps_mode
        )
    )


@pytest.mark.parametrize("target_format", FORMATS)
@pytest.mark.parametrize("pred_format", FORMATS)
@pytest.mark.parametrize("pairing", PAIRINGS)
def test_formats(
    implementation: Implementation, pairing: str, pred_format: str, target_format: str
) -> None:
    check(
        problem(
            pairing,
            implementation.device,
            pred_format=pred_format,
            target_format=target_format,
            reduction="none",
        )
    )


@pytest.mark.parametrize("normalizer", NORMALIZERS, ids=lambda n: str(n.dtype))
@pytest.mark.parametrize("pairing", PAIRINGS)
def test_normalizers(
    implementation: Implementation, pairing: str, normalizer: torch.Tensor
) -> None:
    device = implementation.device
    check(problem(pairing, device, weight=torch.float32, normalizer=normalizer.to(device)))


@pytest.mark.parametrize("eps", [0.0, 1e-3, 5.0, 300.0])
@pytest.mark.parametrize("eps_mode", ["add", "clamp"])
def test_eps(implementation: Implementation, eps: float, eps_mode: str) -> None:
    # 300 lies in the middle of the areas, so that clamp has both branches.
    check(problem("dense", implementation.device, reduction="none", eps=eps, eps_mode=eps_mode))


@pytest.mark.parametrize("index_dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("pairing", ["lengths", "offsets"])
def test_index_dtypes(
    implementation: Implementation, pairing: str, index_dtype: torch.dtype
) -> None:
    values = problem(pairing, implementation.device)
    values[pairing] = values[pairing].to(index_dtype)
    check(values)


@pytest.mark.parametrize("shape", [(), (1,), (7,), (1, 1), (2, 3), (1, 3, 1, 2), (2, 3, 2, 2)])
def test_leading_dimensions(implementation: Implementation, shape: tuple[int, ...]) -> None:
    device = implementation.device
    dense: dict[str, Any] = {
        "pred": boxes(shape, device, seed=1),
        "target": boxes(shape, device, seed=2),
        "reduction": "none",
    }
    check(dense)
    check({**dense, "mask": torch.ones(shape, dtype=torch.bool, device=device)})


def test_one_pair_in_numbers(implementation: Implementation) -> None:
    # Areas 4 and 4, intersection 1, union 7, enclosure 9: 1 - (1/7 - 2/9) = 68/63.
    device = implementation.device
    pred = torch.tensor([0.0, 0.0, 2.0, 2.0], device=device, dtype=torch.float64)
    target = torch.tensor([1.0, 1.0, 3.0, 3.0], device=device, dtype=torch.float64)
    result = run({"pred": pred, "target": target, "eps": 0.0}, pred.new_ones(()))
    assert result["loss"].item() == pytest.approx(68 / 63, rel=1e-15)
    # With x1, A_p falls by 2 and C by 3: U' = -2 / 49 + 2 / 9, C' = -3 * 7 / 81.
    expected = -2 * (1 / 49 - 1 / 9) - 3 * 7 / 81
    assert result["pred"][0].item() == pytest.approx(expected, rel=1e-14)


def test_the_mean_of_no_counted_pair_is_zero(implementation: Implementation) -> None:
    values = problem("mask", implementation.device)
    values["mask"] = torch.zeros_like(values["mask"])
    result = run(values)
    assert result["loss"].item() == 0
    assert not result["pred"].any()
    assert not result["target"].any()
