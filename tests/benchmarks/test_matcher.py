# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The studies of matchers and of matched pairs: a wrong cost, loss or match is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import Tensor

pytest.importorskip("boxloss.torch")
pytest.importorskip("rich")
pytest.importorskip("scipy")

from benchmarks.runner.agreement import DisagreementError
from benchmarks.runner.run import UnavailableError
from benchmarks.studies import matched_pairs, matcher
from benchmarks.studies.matcher import check, make_case, truths

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


def test_another_assignment_is_refused() -> None:
    case = CASES["lwdetr"]
    cost = matcher.load_boxloss(case).call()
    found, loop = matcher.hungarian(case, cost), matcher.load_loop(case)(cost)
    matcher.check_assignment(case, found, loop)
    other = found._replace(target_of_query=found.target_of_query.roll(1, -1))
    with pytest.raises(DisagreementError, match="another assignment than SciPy's"):
        matcher.check_assignment(case, other, loop)


def test_the_original_stops_at_the_copy() -> None:
    case = CASES["rtdetr"]
    try:
        costs = matcher.load_original(case).costs()
    except UnavailableError as reason:
        pytest.skip(str(reason))
    entries = case.shape.images * case.shape.queries * sum(case.counts)
    assert [each.numel() for each in costs] == [entries] * case.shape.layers
    assert torch.ones(1).cpu().item() == 1  # the copy is back
