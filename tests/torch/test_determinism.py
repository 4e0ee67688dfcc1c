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


def numbers_of_threads(implementation: Implementation) -> Iterator[None]:
    """One after the other, and one again; a GPU has none to set."""
    for number in (1, 2, 5, 1):
        if implementation.device.type == "cpu":
            torch.set_num_threads(number)
        yield


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("pairing", PAIRINGS)
def test_the_same_bits_and_a_sum_within_a_millionth(
    implementation: Implementation, pairing: str
) -> None:
    values = {**large_problem(pairing, implementation.device), "reduction": "sum"}
    first, *others = [run(values) for _ in numbers_of_threads(implementation)]
    for each in others:
        assert_same_bits(first, each)
    losses = run({**values, "reduction": "none"})["loss"].double()
    wanted = losses.sum(-1) if pairing == "sets" else losses.sum()
    assert first["loss"].tolist() == pytest.approx(wanted.tolist(), rel=1e-6)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("pairs", [(50_000,), (5, 9_000)])
def test_rows_of_thousands_of_pairs(implementation: Implementation, pairs: tuple[int, ...]) -> None:
    if implementation.device.type != "cpu":
        pytest.skip("a GPU adds in any order; see test_gpu.py")
    values = shared_rows(implementation.device, pairs)
    first, *others = [run(values, by=("loss", "l1")) for _ in numbers_of_threads(implementation)]
    for each in others:
        assert_same_bits(first, each)
