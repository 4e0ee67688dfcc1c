# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The same bits, run after run and for any number of threads."""

from collections.abc import Iterator
from functools import cache

import pytest
import torch
from comparison import run
from devices import Implementation
from problems import INDICES, PAIRINGS, Problem, boxes, some_rows

IMAGES, SLOTS = 7, 16_411  # 114,877 slots: several tasks or blocks, the last one not full


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@cache
def large_problem(pairing: str, device: torch.device) -> Problem:
    rows = (IMAGES * SLOTS,) if pairing == "offsets" else (IMAGES, SLOTS)
    pairs = (100_000,) if pairing == "indices" else (3, 40_000) if pairing == "sets" else rows
    values: Problem = {
        "pred": boxes((IMAGES, SLOTS), device, seed=1),
        "target": boxes(rows, device, seed=2),
        "weight": boxes(pairs, device, seed=3)[..., 0],
    }
    if pairing == "zero_padded":
        values["zero_padded"] = True
        values["target"][:, ::3] = 0
    if pairing == "lengths":
        values["lengths"] = torch.arange(0, 2500 * IMAGES, 2500, device=device)
    if pairing == "mask":
        values["mask"] = boxes(rows, device, seed=4)[..., 1] < 30
    if pairing == "offsets":
        values["offsets"] = torch.arange(IMAGES + 1, device=device) * (SLOTS - 5)
    if pairing in ("indices", "sets"):
        for seed, name in enumerate(INDICES):
            values[name] = some_rows(pairs, IMAGES * SLOTS, seed).to(device)
    return values


def assert_same_bits(first: dict[str, torch.Tensor], again: dict[str, torch.Tensor]) -> None:
    for name, result in first.items():
        assert torch.equal(result, again[name]), name


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_every_run(implementation: Implementation, pairing: str) -> None:
    values = large_problem(pairing, implementation.device)
    first = run(values)
    for _ in range(3):
        assert_same_bits(first, run(values))


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("pairing", PAIRINGS)
def test_every_number_of_threads(implementation: Implementation, pairing: str) -> None:
    if implementation.device.type != "cpu":
        pytest.skip("a GPU has no number of threads to set")
    values = large_problem(pairing, implementation.device)
    torch.set_num_threads(1)
    first = run(values)
    for number in (2, 5):
        torch.set_num_threads(number)
        assert_same_bits(first, run(values))


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_a_sum_is_within_a_millionth_of_its_losses(
    implementation: Implementation, pairing: str
) -> None:
    values = large_problem(pairing, implementation.device)
    losses = run({**values, "reduction": "none"})["loss"].double()
    wanted = losses.sum(-1) if pairing == "sets" else losses.sum()
    total = run({**values, "reduction": "sum"})["loss"]
    assert total.tolist() == pytest.approx(wanted.tolist(), rel=1e-6)


def shared_rows(device: torch.device, pairs: tuple[int, ...]) -> Problem:
    """Rows in none, one, some and thousands of the pairs, of more rows than one task has."""
    random = torch.Generator().manual_seed(7)
    rows = 80_000
    values: Problem = {
        "pred": boxes((2, rows // 2), device, seed=1),
        "target": boxes((rows,), device, seed=2),
    }
    for name in INDICES:
        wide = torch.randint(rows, pairs, generator=random)
        narrow = torch.randint(30, pairs, generator=random) * (rows // 29)
        values[name] = torch.where(torch.rand(pairs, generator=random) < 0.5, wide, narrow)
        values[name] = values[name].to(device)
    return values


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("pairs", [(50_000,), (5, 9_000)])
def test_rows_of_thousands_of_pairs(implementation: Implementation, pairs: tuple[int, ...]) -> None:
    if implementation.device.type != "cpu":
        pytest.skip("a GPU adds in any order; see test_gpu.py")
    values = shared_rows(implementation.device, pairs)
    torch.set_num_threads(1)
    first = run(values, by=("loss", "l1"))
    for number in (2, 5, 1):
        torch.set_num_threads(number)
        assert_same_bits(first, run(values, by=("loss", "l1")))
