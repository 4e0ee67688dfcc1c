# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""All peers compute one loss, and one that does not is found out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("boxloss.torch")

from benchmarks.common.agreement import DisagreementError
from benchmarks.common.cases import DENSE_PAIRS, SEED_PAIRS, Case, dense_case, seed_case
from benchmarks.common.losses import Loss, UnavailableError, giou
from benchmarks.loss_only.agreement import check, truth
from benchmarks.loss_only.peers import dense_loss, peers

CPU = torch.device("cpu")
CASES = [
    *(seed_case(pair, CPU, shape=(17, 12)) for pair in SEED_PAIRS),
    *(dense_case(pair, 700, CPU) for pair in DENSE_PAIRS),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_peers_agree(case: Case) -> None:
    expected = truth(case)
    agreed = []
    for name, peer in peers(case.kind, None).items():
        if peer.slow_to_start:
            continue
        try:
            loss = peer.load(case)
        except UnavailableError:
            continue
        check(name, loss, case, case.layouts[peer.layout], expected)
        agreed.append(name)
    assert "eager" in agreed
    assert sum(name.startswith("boxloss") for name in agreed) == (4 if case.kind == "seed" else 1)


def _inexact(loss: Loss) -> Loss:
    return lambda *arguments: loss(*arguments) * (1 + 2**-8)  # as if rounded to bf16


def _no_gradient_apart(pred: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Right in value, but boxes that lie apart do not attract each other."""
    losses = 1 - giou(pred, target)
    return torch.where(losses < 1, losses, losses.detach()).mean()


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [(_inexact(dense_loss), "wrong: loss "), (_no_gradient_apart, "wrong: gradient ")],
)
def test_a_wrong_peer_is_reported(wrong: Loss, complaint: str) -> None:
    case = dense_case("f32/f32", 700, CPU)
    with pytest.raises(DisagreementError, match=complaint):
        check("wrong", wrong, case, case.layouts["dense"], truth(case))


def test_padding_that_leaks_is_reported() -> None:
    case = seed_case("f32/f32", CPU, shape=(17, 12))

    def leaky(pred: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        counted = (target != 0).any(dim=-1)
        return torch.where(counted, 1 - giou(pred, target), 0).sum() / counted.sum()

    with pytest.raises(DisagreementError, match="leaky: gradient nan"):
        check("leaky", leaky, case, case.layouts["padded"], truth(case))


# In a process of its own: Triton must be told to interpret before anybody imports it. One small
# block for each of a few programs makes these stride, and the last one add the others' partials.
# The interpreter cuts off where a GPU rounds to bf16, hence no bf16 gradient.
INTERPRETED = """
import torch, triton
from benchmarks.common import triton_kernels as peer
from benchmarks.loss_only.agreement import check, truth
from benchmarks.common.cases import dense_case, seed_case

peer._forward.configs = [triton.Config({"BLOCK": 32, "programs": 3})]
peer._backward.configs = [triton.Config({"BLOCK": 32})]
cpu = torch.device("cpu")
for pair in ("f32/f32", "f16/f32", "f32/u8", "f64/f64"):
    case = dense_case(pair, 333, cpu)
    for _ in range(2):  # the first launch must leave the tickets as it found them
        check("dense", peer.dense_loss, case, case.layouts["dense"], truth(case))
case = seed_case("f32/f32", cpu, shape=(17, 12))
check("padded", peer.padded_loss, case, case.layouts["padded"], truth(case))
check("lengths", peer.lengths_loss, case, case.layouts["lengths"], truth(case))
print("all agree")
"""


def test_the_triton_kernels_agree_when_interpreted() -> None:
    pytest.importorskip("triton")
    path = os.pathsep.join(filter(None, sys.path))
    result = subprocess.run(
        [sys.executable, "-c", INTERPRETED],
        env=os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "all agree" in result.stdout


@pytest.mark.parametrize("checkout", ["nowhere", "unbuilt"])
def test_a_missing_peer_says_so(checkout: str, tmp_path: Path) -> None:
    package = tmp_path / "unbuilt" / "torch_fast_box_ops"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("next(iter([]))\n")  # how it looks for its library
    peer = peers("dense", tmp_path / checkout)["fast-box-ops"]
    with pytest.raises(UnavailableError, match="no built checkout in"):
        peer.load(dense_case("f32/f32", 10, CPU))
