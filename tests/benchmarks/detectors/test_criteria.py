# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""All variants compute one criterion, and one that does not is found out."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor

pytest.importorskip("boxloss.torch")
pytest.importorskip("scipy")

# ultralytics looks for a network, and for its settings in the user's home, when it is imported.
os.environ.setdefault("YOLO_OFFLINE", "true")
os.environ.setdefault("YOLO_CONFIG_DIR", tempfile.mkdtemp())

from benchmarks.common.agreement import DisagreementError
from benchmarks.common.losses import UnavailableError
from benchmarks.detectors import dense_cases, detr_cases, plain
from benchmarks.detectors.agreement import Truths, check, truths
from benchmarks.detectors.cases import CRITERION, MATCHER_AND_BOXES, Case
from benchmarks.detectors.criteria import Step
from benchmarks.detectors.variants import (
    fused_operators,
    load_aligned,
    load_compiled,
    matched,
    variants,
)

DETRS = {kind: detr_cases.detr_case(kind, s) for kind, s in detr_cases.QUICK_SHAPES.items()}
DENSE = {kind: dense_cases.dense_case(kind, s) for kind, s in dense_cases.QUICK_SHAPES.items()}
CASES = DETRS | DENSE
ALL = [(kind, measured) for kind, case in CASES.items() for measured in case.measured]


def _truths(case: Case, measured: str) -> Truths:
    try:
        return truths(case, measured)
    except UnavailableError as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize(("kind", "measured"), ALL)
def test_variants_agree(kind: str, measured: str) -> None:
    case = CASES[kind]
    expected = _truths(case, measured)
    agreed = []
    for name, variant in variants(measured).items():
        if variant.slow_to_start:
            continue
        try:
            step = variant.load(case)
        except UnavailableError:
            assert name == "original"
            continue
        check(name, step, case, expected)
        agreed.append(name)
    assert agreed[:2] == ["boxloss", "aligned"]


@pytest.mark.parametrize("operators", [plain.operators, fused_operators])
@pytest.mark.parametrize(
    ("kind", "measured"),
    [("rtdetr", MATCHER_AND_BOXES), ("detr", CRITERION), ("fcos", CRITERION)],
)
def test_compiled_code_agrees(
    kind: str,
    measured: str,
    operators: Callable[..., plain.Operators],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Traced and made graphs, which then run as they are: no compiler is needed."""
    case = CASES[kind]
    expected = _truths(case, measured)
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))
    check("torch.compile", load_compiled(case, measured, operators), case, expected)
    torch.compiler.reset()


@pytest.mark.parametrize(("kind", "measured"), ALL)
def test_bounds_are_narrow(kind: str, measured: str) -> None:
    """A thousandth more of all, or of one leaf's gradient, is found out."""
    case = CASES[kind]
    expected = _truths(case, measured)
    right = load_aligned(case, measured)
    with pytest.raises(DisagreementError, match="more: loss "):
        check("more", lambda: 1.001 * right(), case, expected)
    for leaf in expected:
        with pytest.raises(DisagreementError, match=f"steeper: gradient .* {leaf} of "):
            check("steeper", _steeper(case, right, leaf), case, expected)


def _steeper(case: Case, right: Step, leaf: str) -> Step:
    """Right in value."""

    def step() -> Tensor:
        loss = right()
        (gradient,) = torch.autograd.grad(loss, case.leaves[leaf], retain_graph=True)
        more = (case.leaves[leaf] * gradient).sum()
        return loss + 0.001 * (more - more.detach())

    return step


@pytest.mark.parametrize("kind", DETRS)
@pytest.mark.parametrize("measured", [MATCHER_AND_BOXES, CRITERION])
def test_another_match_is_reported(
    kind: str, measured: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES[kind]
    expected = _truths(case, measured)
    right = plain.hungarian_match

    def wrong(cost: Tensor, *values: Tensor, counts: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        """Two true boxes of the last image change places, in one layer."""
        pred_index, target_index = right(cost, *values, counts=counts)
        target_index = target_index.clone()
        target_index[-1, -2:] = target_index[-1, -2:].flip(0)
        return pred_index, target_index

    monkeypatch.setattr(plain, "hungarian_match", wrong)
    with pytest.raises(DisagreementError, match="wrong: "):
        check("wrong", load_aligned(case, measured), case, expected)


@pytest.mark.parametrize("kind", DETRS)
def test_no_two_ways_to_match_are_nearly_as_good(kind: str) -> None:
    """A correct cost is right to less than 1e-4, as benchmarks/matcher holds it to."""
    case = DETRS[kind].in_double()
    right = plain.operators(case.counts)

    def disturbed(cost: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
        return right["hungarian_match"](cost + 1e-3 * torch.rand_like(cost), offsets)

    *_, pred_index, target_index = matched(case, right)
    *_, pred_other, target_other = matched(case, {**right, "hungarian_match": disturbed})
    assert torch.equal(pred_index, pred_other)
    assert torch.equal(target_index, target_other)


@pytest.mark.parametrize("kind", ["fcos", "retinanet"])
def test_boxes_are_decoded_exactly(kind: str) -> None:
    # A RuntimeError: made for another torch.
    failures = (ImportError, RuntimeError)
    coders = pytest.importorskip("torchvision.models.detection._utils", exc_type=failures)
    case = DENSE[kind]
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


@pytest.mark.parametrize("kind", DENSE)
def test_foreground_is_as_wanted(kind: str) -> None:
    case, shape = DENSE[kind], dense_cases.QUICK_SHAPES[kind]
    numbers = torch.bincount(case.found.where[0]).tolist()
    expected = round(shape.foreground * shape.anchors)
    assert numbers == [expected + image for image in range(shape.images)]
    assert sum(numbers) == case.pairs == len(case.found.pred)


def test_dense_scenes_have_100_to_150_boxes_an_image() -> None:
    counts = detr_cases.box_counts_of(detr_cases.SHAPES["rtdetr-dense"], torch.Generator())
    assert len(counts) == 16
    assert all(100 <= count <= 150 for count in counts)
    assert len(set(counts)) > 8
