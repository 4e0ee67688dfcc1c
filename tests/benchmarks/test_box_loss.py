# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The study of losses alone, and that of the CPU: a loss that is wrong is found out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

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


def test_the_eager_formula_on_boxes_computed_by_hand() -> None:
    pred = torch.tensor([[0.0, 0, 2, 2], [0, 0, 1, 1], [3, 4, 5, 8]])
    target = torch.tensor([[1.0, 1, 3, 3], [2, 0, 3, 1], [3, 4, 5, 8]])
    # overlap/union - gap/enclosing: 1/7 - 2/9; apart 0/2 - 1/3; the same box 1
    expected = torch.tensor([1 / 7 - 2 / 9, -1 / 3, 1.0])
    torch.testing.assert_close(giou(pred, target), expected)


def no_gradient_apart(pred: Tensor, target: Tensor) -> Tensor:
    """Right in value, but boxes that lie apart do not attract each other."""
    losses = 1 - giou(pred, target)
    return torch.where(losses < 1, losses, losses.detach()).mean()


def leaky(pred: Tensor, target: Tensor) -> Tensor:
    counted = (target != 0).any(dim=-1)
    return torch.where(counted, 1 - giou(pred, target), 0).sum() / counted.sum()


@pytest.mark.parametrize(
    ("case", "layout", "wrong", "complaint"),
    [
        (DENSE, "dense", lambda *boxes: dense_loss(*boxes) * 1.0001, "wrong: loss "),
        (DENSE, "dense", no_gradient_apart, "wrong: gradient "),
        (SEED, "padded", leaky, "wrong: gradient nan"),
        (RETINANET, "mask", lambda pred, target, mask: giou_loss(pred, target), "wrong: loss nan"),
    ],
)
def test_a_wrong_variant_is_reported(
    case: cpu.Case, layout: str, wrong: Callable[..., Tensor], complaint: str
) -> None:
    with pytest.raises(DisagreementError, match=complaint):
        check("wrong", case.on(wrong, layout), case, truth(case))


def test_each_loss_is_held_against_its_formula() -> None:
    case = losses_case(1000, CPU)
    siou = partial(box_loss, loss="siou")
    expected = truth_of(case, siou)
    check("siou", case.on(siou, "dense"), case, expected)
    with pytest.raises(DisagreementError, match="wrong: loss "):
        check("wrong", case.on(partial(box_loss, loss="ciou"), "dense"), case, expected)


def test_rounding_may_open_a_gate() -> None:
    """An IoU that is less than 1/2 by 3.5e-9, which float32 does not have."""
    case = dense_case("f32/f32", 700, CPU)
    with torch.no_grad():
        case.pred[5] = torch.tensor([171.136246, 134.719513, 194.071411, 165.237671])
        case.layouts["dense"][0][5] = torch.tensor([172.0, 130.0, 185.0, 164.0])
    gated = partial(box_loss, loss="ciou_gated")
    check("gated", case.on(gated, "dense"), case, truth_of(case, gated))
    never = partial(box_loss, loss="diou")  # where the gate is shut
    with pytest.raises(DisagreementError, match="wrong: "):
        check("wrong", case.on(never, "dense"), case, truth_of(case, gated))


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
