# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The same bits for any number of torch's threads; tests/conformance has every case on its own."""

from collections.abc import Iterator

import pytest
import torch
from comparison import run
from devices import Implementation
from problems import Problem, indexed, problem

IMAGES, SLOTS = 7, 16_411  # 114,877 slots: several tasks or blocks, the last one not full


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def large_problem(pairing: str, device: torch.device) -> Problem:
    if pairing == "mask":
        return problem("mask", device, grid=(IMAGES, SLOTS), weight=torch.float32)
    lists: Problem = {"pred_list": (IMAGES, SLOTS), "target_list": (80_000,)}
    values = indexed((3, 40_000), device, weight=torch.float32, **lists)
    if device.type == "cpu":  # a GPU adds more than two numbers in any order
        values["target_index"] %= 30
    return values


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("pairing", ["mask", "sets"])
def test_the_same_bits(implementation: Implementation, pairing: str) -> None:
    values = large_problem(pairing, implementation.device)
    results = []
    for number in (1, 2, 5, 1):  # which a GPU does not have
        torch.set_num_threads(number)
        results.append(run(values, by=("loss", "l1")))
    for again in results[1:]:
        for name, result in results[0].items():
            assert torch.equal(result, again[name]), name
