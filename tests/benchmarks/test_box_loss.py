# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The study of losses alone, and that of the CPU: a loss that is wrong is found out."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

pytest.importorskip("boxloss.torch")

from boxloss.torch import box_loss, giou_loss

from benchmarks.common.cases import dense_case, seed_case
from benchmarks.common.exact import check, truth
from benchmarks.common.losses import giou
from benchmarks.runner.agreement import DisagreementError
from benchmarks.runner.run import BOTH, FORWARD
from benchmarks.studies import cpu
from benchmarks.studies.box_loss import dense_loss, losses_case, truth_of, variants

CPU = torch.device("cpu")
DENSE, SEED = dense_case("f32/f32", 700, CPU), seed_case("f32/f32", CPU, shape=(17, 12))
RETINANET = cpu.retinanet_case(2, 500, 0.02)


def inexact(pred: Tensor, target: Tensor) -> Tensor:
    return dense_loss(pred, target) * (1 + 2**-8)  # as if rounded to bf16


def no_gradient_apart(pred: Tensor, target: Tensor) -> Tensor:
    """Right in value, but boxes that lie apart do not attract each other."""
    losses = 1 - giou(pred, target)
    return torch.where(losses < 1, losses, losses.detach()).mean()


def leaky(pred: Tensor, target: Tensor) -> Tensor:
    counted = (target != 0).any(dim=-1)
    return torch.where(counted, 1 - giou(pred, target), 0).sum() / counted.sum()


def not_masked(pred: Tensor, target: Tensor, mask: Tensor) -> Tensor:
    return giou_loss(pred, target)


@pytest.mark.parametrize(
    ("case", "layout", "wrong", "complaint"),
    [
        (DENSE, "dense", inexact, "wrong: loss "),
        (DENSE, "dense", no_gradient_apart, "wrong: gradient "),
        (SEED, "padded", leaky, "wrong: gradient nan"),
        (RETINANET, "mask", not_masked, "wrong: loss nan"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_wrong_variant_is_reported(
    case: cpu.Case, layout: str, wrong: Callable[..., Tensor], complaint: str
) -> None:
    with pytest.raises(DisagreementError, match=complaint):
        check("wrong", case.on(wrong, layout), case, truth(case))


@pytest.mark.parametrize(
    "wrong", [lambda loss: loss * 1.0001, lambda loss: loss + (loss - loss.detach()) / 100]
)
def test_each_loss_is_held_against_its_formula(wrong: Callable[[Tensor], Tensor]) -> None:
    case = losses_case(1000, CPU)

    def loss(pred: Tensor, target: Tensor) -> Tensor:
        return box_loss(pred, target, "siou")

    expected = truth_of(case, loss)
    check("siou", case.on(loss, "dense"), case, expected)
    with pytest.raises(DisagreementError, match="siou: "):
        check("siou", case.on(lambda *boxes: wrong(loss(*boxes)), "dense"), case, expected)


def test_an_implementation_is_chosen_while_it_is_timed() -> None:
    def chosen() -> str:
        before: str = torch.ops.boxloss.use_implementation("cpu")
        torch.ops.boxloss.use_implementation(before)
        return before

    found = variants("dense", ["cpu/reference"])
    assert found["cpu/reference"].choosing(chosen)() == "cpu/reference"
    assert found["boxloss"].choosing(chosen)() == "cpu"
    assert chosen() == "cpu"


@pytest.mark.parametrize(
    ("pair", "forward", "both"),
    [("f32/f32", 32, 80), ("bf16/u8", 12, 32), ("bf16/bf16", 16, 40), ("f64/f64", 64, 160)],
)
def test_bytes_of_a_pair(pair: str, forward: int, both: int) -> None:
    moved = dense_case(pair, 10, CPU).moved
    assert moved == {FORWARD: 10 * forward, BOTH: 10 * both}


# In a process of its own: Triton must be told to interpret before anybody imports it. One small
# block for each of a few programs makes these stride, and the last one add the others' partials.
# The interpreter cuts off where a GPU rounds to bf16, hence no bf16 gradient.
INTERPRETED = """
import torch, triton
from benchmarks.common import triton_kernels as peer
from benchmarks.common.cases import dense_case, seed_case
from benchmarks.common.exact import check, truth

peer._forward.configs = [triton.Config({"BLOCK": 32, "programs": 3})]
peer._backward.configs = [triton.Config({"BLOCK": 32})]
cpu = torch.device("cpu")
for pair in ("f32/f32", "f16/f32", "f32/u8", "f64/f64"):
    case = dense_case(pair, 333, cpu)
    for _ in range(2):  # the first launch must leave the tickets as it found them
        check("dense", case.on(peer.dense_loss, "dense"), case, truth(case))
case = seed_case("f32/f32", cpu, shape=(17, 12))
check("padded", case.on(peer.padded_loss, "padded"), case, truth(case))
check("lengths", case.on(peer.lengths_loss, "lengths"), case, truth(case))
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
