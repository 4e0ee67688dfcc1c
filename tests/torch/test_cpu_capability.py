# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What cpu/native uses of the processor, and what BOXLOSS_CPU_CAPABILITY says about it.

The variable is read once, so each of these has a process of its own.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

WIDEST_FIRST = ("avx512", "avx2", "baseline")
BITS = """
import hashlib
import torch
from boxloss.torch import box_loss, cpu_capability
from problems import LOSSES, PARAMETERS, boxes

digest = hashlib.sha256()
for loss in LOSSES:
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        pred = boxes((2_000,), torch.device("cpu"), dtype, seed=1).requires_grad_()
        target = boxes((2_000,), torch.device("cpu"), dtype, seed=2)
        value = box_loss(pred, target, loss, **PARAMETERS.get(loss, {}))
        value.backward()
        for tensor in (value.detach(), pred.grad):
            digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
print(cpu_capability(), digest.hexdigest())
"""


def run(capability: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    return subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | {"BOXLOSS_CPU_CAPABILITY": capability, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def used_and_bits(capability: str) -> list[str]:
    result = run(capability, "-c", BITS)
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


@pytest.fixture(scope="module")
def widest() -> list[str]:
    """For which an empty variable asks, and its bits."""
    return used_and_bits("")


def test_each_capability_is_used_and_gives_the_same_bits(widest: list[str]) -> None:
    # Which bits is for the conformance tests, which run with each of them.
    name, bits = widest
    for each in WIDEST_FIRST[WIDEST_FIRST.index(name) + 1 :]:
        assert used_and_bits(each) == [each, bits]


def test_what_the_processor_lacks_is_an_error_that_says_what_it_has(widest: list[str]) -> None:
    if widest[0] == WIDEST_FIRST[0]:
        pytest.skip("this processor has everything")
    error = run(WIDEST_FIRST[0], "-m", "boxloss").stdout
    assert "cpu/native cannot be used: BOXLOSS_CPU_CAPABILITY is 'avx512'" in error
    assert WIDEST_FIRST[-1] in error


def test_an_unknown_name_is_an_error_that_says_what_is_allowed() -> None:
    result = run("sse9", "-c", "import boxloss.torch; boxloss.torch.cpu_capability()")
    assert result.returncode != 0
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("ValueError: ")
    assert "BOXLOSS_CPU_CAPABILITY is 'sse9'; it must be one of " in last
    assert last.endswith("baseline")
