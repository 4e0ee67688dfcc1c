# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""All variants compute one loss of matched pairs, and one that does not is found out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
import torch

pytest.importorskip("boxloss.torch")

from benchmarks.common.agreement import DisagreementError
from benchmarks.common.losses import UnavailableError
from benchmarks.matched_pairs.agreement import check, truth
from benchmarks.matched_pairs.cases import Case, detr_case, gather_case, retinanet_case
from benchmarks.matched_pairs.variants import (
    Result,
    aligned_loss,
    load_boxloss,
    load_compiled,
    original_loss,
    variants,
)

CPU = torch.device("cpu")
DETR = partial(detr_case, "detr", 3, 4, 25, 7)
CASES = [
    DETR("f32/f32", CPU),
    DETR("bf16/f32", CPU),
    gather_case(3000, 2000, CPU),
    retinanet_case(1500, (31, 12), CPU),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_variants_agree(case: Case) -> None:
    expected = truth(case)
    agreed = []
    for name, variant in variants(case.kind).items():
        if variant.slow_to_start:
            continue
        try:
            loss = variant.load(case)
        except UnavailableError:
            continue
        check(name, loss, case, expected)
        agreed.append(name)
    usual = {"detr": ["original"], "gather": [], "retinanet": ["loop"]}[case.kind]
    assert [name for name in agreed if name != "torchvision"] == ["boxloss", "aligned", *usual]


def test_detr_has_one_match_for_each_true_box_in_each_layer() -> None:
    case = CASES[0]
    assert case.matches is not None
    assert case.pred_index.shape == case.target_index.shape == (3, 28)
    for layer in range(3):
        assert case.target_index[layer].sort().values.tolist() == list(range(28))
        assert len(case.pred_index[layer].unique()) == 28
    assert case.pred.isnan().any(-1).sum() == 3 * (100 - 28)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_nothing_ties(case: Case) -> None:
    guesses = case.pred.detach().flatten(0, -2)[case.pred_index.flatten()].double()
    truths = case.target[case.target_index.flatten()].double()
    if case.box_format == "cxcywh":
        guesses, truths = (
            torch.cat([b[:, :2] - b[:, 2:] / 2, b[:, :2] + b[:, 2:] / 2], dim=1)
            for b in (guesses, truths)
        )
    for boxes in (guesses, truths):
        assert torch.equal(boxes, boxes.float().double())
        assert (boxes[:, 2:] > boxes[:, :2]).all()
    for one, other in ((guesses, truths), (guesses.roll(2, 1), truths)):
        assert (one != other).all()


def test_retinanet_weighs_images_as_torchvision_does() -> None:
    case = CASES[3]
    assert case.weight is not None
    torch.testing.assert_close(case.weight.split((31, 12))[0], torch.full((31,), 1 / 62))
    torch.testing.assert_close(case.weight.split((31, 12))[1], torch.full((12,), 1 / 24))


def _scaled(result: Result) -> Result:
    return result._replace(total=result.total * (1 + 2**-8))  # as if rounded to bf16


def _other_iou(result: Result) -> Result:
    assert result.iou is not None
    return result._replace(iou=result.iou * (1 + 2**-12))


def _no_iou(result: Result) -> Result:
    return result._replace(iou=None)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (_scaled, "wrong: loss "),
        (_other_iou, "wrong: IoU is off"),
        (_no_iou, "wrong: IoU is missing"),
    ],
)
@pytest.mark.parametrize("right", [aligned_loss, original_loss])
def test_a_wrong_variant_is_reported(
    right: Callable[[torch.Tensor, Case], Result],
    change: Callable[[Result], Result],
    complaint: str,
) -> None:
    case = CASES[0]
    with pytest.raises(DisagreementError, match=complaint):
        check("wrong", lambda pred: change(right(pred, case)), case, truth(case))


def test_a_wrong_gradient_is_reported() -> None:
    case = CASES[0]

    def wrong(pred: torch.Tensor) -> Result:
        """Right in value, but one layer learns nothing."""
        return aligned_loss(torch.cat([pred[:-1], pred[-1:].detach()]), case)

    with pytest.raises(DisagreementError, match="wrong: gradient 0 at "):
        check("wrong", wrong, case, truth(case))


def test_a_gradient_for_what_is_not_matched_is_reported() -> None:
    case = CASES[3]
    finite = replace(case, pred=case.pred.detach().nan_to_num(1.0).requires_grad_())

    def leaky(pred: torch.Tensor) -> Result:
        result = aligned_loss(pred, finite)
        return result._replace(total=result.total + 1e-12 * pred.sum())

    with pytest.raises(DisagreementError, match="leaky: gradient "):
        check("leaky", leaky, finite, truth(finite))


@pytest.mark.parametrize("part", ["weight", "normalizer", "eps", "l1_weight"])
def test_another_sum_is_reported(part: str) -> None:
    """Each part of what is asked shows in the result."""
    case = CASES[3] if part in ("weight", "eps") else CASES[0]
    other = {"weight": None, "normalizer": torch.tensor(29.0), "eps": 1.0, "l1_weight": 4.0}[part]
    changed = replace(case, **{part: other})
    with pytest.raises(DisagreementError, match="changed: loss "):
        check("changed", load_boxloss(changed), case, truth(case))


def test_graphs_need_a_gpu() -> None:
    with pytest.raises(UnavailableError, match="need a GPU"):
        load_compiled(CASES[0], mode="reduce-overhead")
