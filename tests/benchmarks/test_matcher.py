# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The study of matchers: a wrong cost and a match that is not best are refused."""

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
from benchmarks.studies.matcher import Case, check, check_best, check_same, make_case, truths

CPU = torch.device("cpu")
CASES = {kind: make_case(kind, shape, CPU) for kind, shape in matcher.QUICK_SHAPES.items()}
MATCHED = [kind for kind in CASES if kind not in matcher.WRITING]


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
    case = matched_pairs.detr_case("detr", 2, 3, 20, 5, "f32/f32", CPU)
    right, expected = matched_pairs.load_boxloss(case), matched_pairs.truth(case)
    matched_pairs.check("right", right, case, expected)
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
        (lambda block: block.roll(1, 0), "wrong: "),
        (_one_off, "for query "),
        (lambda block: block + torch.nan, "wrong: nan"),
        (lambda block: block[:-1], "entries for"),
    ],
)
@pytest.mark.parametrize("kind", CASES)
def test_a_wrong_cost_is_refused(
    kind: str, change: Callable[[Tensor], Tensor], complaint: str
) -> None:
    case = CASES[kind]
    right = matcher.load_padded(case)
    check("right", right, case, truths(case))
    wrong = replace(right, block=lambda *place: change(right.block(*place)))
    with pytest.raises(DisagreementError, match=complaint):
        check("wrong", wrong, case, truths(case))


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("iou_weight", 2.01),
        ("l1_weight", 4.99),
        ("class_weight", 2.01),
        ("class_weight", 0),
        ("class_mode", "sigmoid"),
        ("loss", "diou"),
        ("eps", 1e-3),
    ],
)
def test_another_cost_is_refused(part: str, value: Any) -> None:
    """Each part of what is asked shows in the result."""
    case = CASES["rtdetr"]
    changed = replace(case, shape=replace(case.shape, cost=replace(case.cost, **{part: value})))
    if (part, value) == ("class_weight", 0):
        changed = replace(changed, logits=None, labels=None)
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


@pytest.mark.parametrize("kind", MATCHED)
def test_the_original_stops_at_the_copy(kind: str) -> None:
    case = CASES[kind]
    try:
        costs = matcher.load_original(case).costs()
    except UnavailableError as reason:
        pytest.skip(str(reason))
    assert [each.numel() for each in costs] == [
        case.shape.images * case.shape.queries * sum(case.counts)
    ] * case.shape.layers
    assert torch.ones(1).cpu().item() == 1  # the copy is back


@pytest.mark.parametrize("images", [8, 16, 1000])
def test_images_have_about_as_many_boxes_as_cocos(images: int) -> None:
    counts = matcher.box_counts(replace(matcher.SHAPES["rtdetr"], images=images), seed=0)
    assert 6 <= sum(counts) / images <= 8.5
    assert 3 <= sorted(counts)[images // 2 - 1] <= 5
    assert 20 <= max(counts) <= 63


def test_images_without_boxes_are_right() -> None:
    case: Case = make_case("rtdetr", matcher.QUICK_SHAPES["rtdetr"], CPU, counts=(0, 3, 0, 1))
    for load in (matcher.load_boxloss, matcher.load_padded):
        check(load.__name__, load(case), case, truths(case))
