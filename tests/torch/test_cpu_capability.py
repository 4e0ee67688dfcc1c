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
SAYS = "cpu/native uses: "  # python -m boxloss

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


@pytest.fixture(scope="module")
def here() -> tuple[str, ...]:
    """What this processor has: an empty variable asks for the widest."""
    lines = run("", "-m", "boxloss").stdout.splitlines()
    (widest,) = (line.removeprefix(SAYS) for line in lines if line.startswith(SAYS))
    return WIDEST_FIRST[WIDEST_FIRST.index(widest) :]


def test_each_capability_is_used_and_gives_the_same_bits(here: tuple[str, ...]) -> None:
    # Which bits is for the conformance tests, which run with each of them.
    results = [run(capability, "-c", BITS) for capability in here]
    assert all(result.returncode == 0 for result in results), results
    used, bits = zip(*(result.stdout.split() for result in results), strict=True)
    assert used == here
    assert len(set(bits)) == 1


def test_what_the_processor_lacks_is_an_error_that_says_what_it_has(here: tuple[str, ...]) -> None:
    if here == WIDEST_FIRST:
        pytest.skip("this processor has everything")
    error = run(WIDEST_FIRST[0], "-m", "boxloss").stdout
    assert "cpu/native cannot be used: BOXLOSS_CPU_CAPABILITY is 'avx512'" in error
    assert here[-1] in error


def test_an_unknown_name_is_an_error_that_says_what_is_allowed() -> None:
    result = run("sse9", "-c", "import boxloss.torch; boxloss.torch.cpu_capability()")
    assert result.returncode != 0
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("ValueError: ")
    assert "BOXLOSS_CPU_CAPABILITY is 'sse9'; it must be one of " in last
    assert last.endswith("baseline")
