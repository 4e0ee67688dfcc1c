# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The study of detectors: all variants compute one criterion, and one that does not is refused."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor

pytest.importorskip("boxloss.torch")
pytest.importorskip("rich")
pytest.importorskip("scipy")

from boxloss.torch import MatchResult

from benchmarks.runner.agreement import DisagreementError
from benchmarks.runner.run import UnavailableError
from benchmarks.studies import detectors
from benchmarks.studies.detectors import cases, criteria
from benchmarks.studies.detectors.agreement import Truths, check, truths
from benchmarks.studies.detectors.cases import CRITERION, MATCHER_AND_BOXES, PARTS, Case, make_case

CASES = {
    (kind, part): make_case(kind, part, cases.QUICK_SHAPES[kind])
    for kind, parts in PARTS.items()
    for part in parts
}
DETRS = [place for place in CASES if MATCHER_AND_BOXES in PARTS[place[0]]]
DENSE = [place for place in CASES if isinstance(CASES[place], cases.DenseCase)]


def _truths(case: Case) -> Truths:
    try:
        return truths(case)
    except UnavailableError as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("operators", [criteria.plain_operators, criteria.fused_operators])
@pytest.mark.parametrize(
    "place", [("rtdetr", MATCHER_AND_BOXES), ("detr", CRITERION), ("fcos", CRITERION)]
)
def test_compiled_code_agrees(
    place: tuple[str, str],
    operators: Callable[..., criteria.Operators],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Traced and made graphs, which then run as they are: no compiler is needed."""
    case = CASES[place]
    expected = _truths(case)
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))
    check("torch.compile", detectors.load_compiled(case, operators), case, expected)
    torch.compiler.reset()


@pytest.mark.parametrize("place", CASES)
def test_a_wrong_variant_is_refused(place: tuple[str, str]) -> None:
    """A thousandth more of all, or of one leaf's gradient."""
    case = CASES[place]
    expected = _truths(case)
    right = detectors.load_vectorized(case)
    with pytest.raises(DisagreementError, match="more: loss "):
        check("more", lambda: 1.001 * right(), case, expected)

    def steeper(leaf: str) -> Tensor:
        """Right in value."""
        loss = right()
        (gradient,) = torch.autograd.grad(loss, case.leaves[leaf], retain_graph=True)
        more = (case.leaves[leaf] * gradient).sum()
        return loss + 0.001 * (more - more.detach())

    for leaf in case.wanted:
        with pytest.raises(DisagreementError, match=f"steeper: gradient .* {leaf} of "):
            check("steeper", partial(steeper, leaf), case, expected)


@pytest.mark.parametrize("place", DETRS)
def test_another_match_is_refused(place: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES[place]
    expected = _truths(case)
    right = criteria.hungarian_match

    def wrong(cost: Tensor, *values: Tensor, counts: tuple[int, ...]) -> MatchResult:
        """Two true boxes of the last image change places, in one layer."""
        found = right(cost, *values, counts=counts)
        target_index = found.target_index.clone()
        target_index[-1, -2:] = target_index[-1, -2:].flip(0)
        return found._replace(target_index=target_index)

    monkeypatch.setattr(criteria, "hungarian_match", wrong)
    with pytest.raises(DisagreementError, match="wrong: "):
        check("wrong", detectors.load_vectorized(case), case, expected)


@pytest.mark.parametrize("place", DETRS)
def test_no_two_ways_to_match_are_nearly_as_good(place: tuple[str, str]) -> None:
    """A correct cost is right to less than 1e-4, as the matcher's study holds it to."""
    case = CASES[place].in_double()
    assert isinstance(case, cases.DetrCase)
    right = criteria.plain_operators(case.counts)

    def disturbed(cost: Tensor, offsets: Tensor) -> MatchResult:
        return right["hungarian_match"](cost + 1e-3 * torch.rand_like(cost), offsets)

    *_, pred_index, target_index = criteria.matched(case, right)
    *_, pred_other, target_other = criteria.matched(case, {**right, "hungarian_match": disturbed})
    assert torch.equal(pred_index, pred_other)
    assert torch.equal(target_index, target_other)


@pytest.mark.parametrize("kind", ["fcos", "retinanet"])
def test_boxes_are_decoded_exactly(kind: str) -> None:
    # A RuntimeError: made for another torch.
    failures = (ImportError, RuntimeError)
    coders = pytest.importorskip("torchvision.models.detection._utils", exc_type=failures)
    case = CASES[kind, PARTS[kind][0]]
    assert isinstance(case, cases.DenseCase)
    where, pred, *_ = case.found
    deltas = case.leaves["bbox_regression"].detach()[where]
    anchors = torch.stack(case.inputs["anchors"])[where]
    if kind == "fcos":
        decoded = coders.BoxLinearCoder().decode(deltas, anchors)
    else:
        decoded = coders.BoxCoder((1.0, 1.0, 1.0, 1.0)).decode_single(deltas, anchors)
    assert torch.equal(decoded, pred)
    assert (pred[:, 2:] > pred[:, :2]).all()
    assert (pred != case.found.target).all()


@pytest.mark.parametrize("place", DENSE)
def test_foreground_is_as_wanted(place: tuple[str, str]) -> None:
    case, shape = CASES[place], cases.QUICK_SHAPES[place[0]]
    assert isinstance(case, cases.DenseCase)
    assert isinstance(shape, cases.Anchors)
    numbers = torch.bincount(case.found.where[0]).tolist()
    expected = round(shape.foreground * shape.anchors)
    assert numbers == [expected + image for image in range(shape.images)]
    assert sum(numbers) == case.pairs == len(case.found.pred)


def test_dense_scenes_have_100_to_150_boxes_an_image() -> None:
    counts = cases.counts_of(cases.SHAPES["rtdetr-dense"], torch.Generator())
    assert len(counts) == 16
    assert all(100 <= count <= 150 for count in counts)
    assert len(set(counts)) > 8
