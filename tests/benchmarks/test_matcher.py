# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The studies of matchers and of matched pairs: a wrong cost, loss or match is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

pytest.importorskip("boxloss.torch")
pytest.importorskip("rich")
pytest.importorskip("scipy")

from benchmarks.runner.agreement import DisagreementError
from benchmarks.runner.run import UnavailableError
from benchmarks.studies import matched_pairs, matcher
from benchmarks.studies.matcher import check, check_best, check_same, make_case, truths

CPU = torch.device("cpu")
CASES = {kind: make_case(kind, shape, CPU) for kind, shape in matcher.QUICK_SHAPES.items()}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda total, iou: (1.0001 * total, iou), "wrong: loss"),
        (lambda total, iou: ((total + total.detach()) / 2, iou), "wrong: gradient"),
        (lambda total, iou: (total, iou + 1e-4), "wrong: IoU is off by"),
        (lambda total, iou: (total, iou[:1]), "wrong: IoU is missing or of another shape"),
    ],
)
def test_a_wrong_loss_of_matched_pairs_is_refused(
    change: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]], complaint: str
) -> None:
    case = matched_pairs.detr_case("detr", 2, 3, 20, 5, CPU)
    right, expected = matched_pairs.load_boxloss(case), matched_pairs.truth(case)
    with pytest.raises(DisagreementError, match=complaint):
        matched_pairs.check(
            "wrong", lambda pred: matched_pairs.Result(*change(*right(pred))), case, expected
        )


@pytest.mark.parametrize("kind", ["detr", "rtdetr", "assigner"])
def test_compiled_code_agrees(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Traced and made one graph, which then runs as it is: no compiler is needed."""
    case = CASES[kind]
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))
    check("torch.compile", matcher.load_compiled(case), case, truths(case))
    torch.compiler.reset()


def _one_off(block: Tensor) -> Tensor:
    changed = block.clone()
    changed.flatten()[-1:] += 2e-3
    return changed


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda block: block * (1 + 2**-8), "wrong: "),  # as if rounded to bf16
        (lambda block: block.roll(1, 1), "wrong: "),
        (_one_off, "for query "),
        (lambda block: block + torch.nan, "wrong: nan"),
        (lambda block: block[:-1], "entries for"),
    ],
)
@pytest.mark.parametrize("kind", ["detr", "rtdetr", "assigner"])
def test_a_wrong_cost_is_refused(
    kind: str, change: Callable[[Tensor], Tensor], complaint: str
) -> None:
    case = CASES[kind]
    right = matcher.load_padded(case)
    wrong = replace(right, block=lambda *place: change(right.block(*place)))
    with pytest.raises(DisagreementError, match=complaint):
        check("wrong", wrong, case, truths(case))


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("iou_weight", 2.01),
        ("l1_weight", 4.99),
        ("class_weight", 2.01),
        ("class_mode", "sigmoid"),
        ("loss", "diou"),
        ("eps", 1e-3),
    ],
)
def test_another_cost_is_refused(part: str, value: Any) -> None:
    """Each part of what is asked shows in the result."""
    case = CASES["rtdetr"]
    changed = replace(case, shape=replace(case.shape, cost=replace(case.cost, **{part: value})))
    with pytest.raises(DisagreementError, match="changed: "):
        check("changed", matcher.load_boxloss(changed), case, truths(case))


def test_a_match_that_is_not_best_is_refused() -> None:
    case = CASES["lwdetr"]
    expected = truths(case)
    best = matcher.load_loop(case)(matcher.load_boxloss(case).call())
    check_best("best", best, best, case, expected)
    swapped = [
        [(src, tgt.view(case.shape.groups, -1).roll(1, 1).flatten()) for src, tgt in layer]
        for layer in best
    ]
    with pytest.raises(DisagreementError, match="more than"):
        check_best("swapped", swapped, best, case, expected)
    doubled = [[(src[:1].expand_as(src), tgt) for src, tgt in layer] for layer in best]
    with pytest.raises(DisagreementError, match="is not matched"):
        check_best("doubled", doubled, best, case, expected)
    wanted = matcher.collated(case, best)
    with pytest.raises(DisagreementError, match="target_index is not SciPy's"):
        check_same("rolled", (wanted[0], wanted[1].roll(1, -1)), wanted)


def test_the_original_stops_at_the_copy() -> None:
    case = CASES["rtdetr"]
    try:
        costs = matcher.load_original(case).costs()
    except UnavailableError as reason:
        pytest.skip(str(reason))
    entries = case.shape.images * case.shape.queries * sum(case.counts)
    assert [each.numel() for each in costs] == [entries] * case.shape.layers
    assert torch.ones(1).cpu().item() == 1  # the copy is back
