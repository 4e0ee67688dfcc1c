# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""All variants compute one cost, and one that does not is found out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

pytest.importorskip("boxloss.torch")
pytest.importorskip("scipy")

from benchmarks.common.agreement import DisagreementError
from benchmarks.common.counts import host_peak_bytes, operators
from benchmarks.common.losses import UnavailableError
from benchmarks.matcher import matchers
from benchmarks.matcher.agreement import check, check_best, check_same, truths
from benchmarks.matcher.cases import (
    ASSIGNER,
    QUICK_SHAPES,
    SHAPES,
    SHAPES_ON_CPU,
    Case,
    box_counts,
    make_case,
)
from benchmarks.matcher.originals import load_original, replaced
from benchmarks.matcher.variants import (
    Costs,
    load_boxloss,
    load_compiled,
    load_padded,
    variants,
)

CPU = torch.device("cpu")
CASES = {kind: make_case(kind, shape, CPU) for kind, shape in QUICK_SHAPES.items()}
MATCHED = ("detr-layers", "rtdetr", "lwdetr")


def _available(case: Case) -> dict[str, Costs]:
    found = {}
    for name, variant in variants(case.kind).items():
        if variant.slow_to_start:
            continue
        try:
            found[name] = variant.load(case)
        except UnavailableError:
            continue
    return found


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_variants_agree(case: Case) -> None:
    found = _available(case)
    expected = truths(case)
    for name, costs in found.items():
        check(name, costs, case, expected)
    assert list(found)[:2] == ["boxloss", "padded"]


def test_the_fused_text_agrees() -> None:
    """What torch.compile is given, as it is."""
    case = CASES["rtdetr"]
    check("fused", load_padded(case, fused=True), case, truths(case))


@pytest.mark.parametrize("kind", ["detr", ASSIGNER])
def test_compiled_code_agrees(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Traced and made one graph, which then runs as it is: no compiler is needed."""
    case = CASES[kind]
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))
    check("torch.compile", load_compiled(case), case, truths(case))
    torch.compiler.reset()


def test_bounds_are_narrow() -> None:
    """Costs are of the order of 1; where a sigmoid is near 1 its complement keeps few digits."""
    for case in CASES.values():
        for each in truths(case):
            assert (each.allowed > 0).all()
            assert each.allowed.median() < 1e-4
            assert each.allowed.max() < 2e-3


def _block_changed(costs: Costs, change: Callable[[Tensor], Tensor]) -> Costs:
    return replace(costs, block=lambda *place: change(costs.block(*place)))


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
def test_a_wrong_variant_is_reported(
    kind: str, change: Callable[[Tensor], Tensor], complaint: str
) -> None:
    case = CASES[kind]
    wrong = _block_changed(load_padded(case), change)
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
def test_another_cost_is_reported(part: str, value: Any) -> None:
    """Each part of what is asked shows in the result."""
    case = CASES["rtdetr"]
    other = replace(case.shape, cost=replace(case.cost, **{part: value}))
    changed = replace(case, shape=other)
    if part == "class_weight" and value == 0:
        changed = replace(changed, logits=None, labels=None)
    with pytest.raises(DisagreementError, match="changed: "):
        check("changed", load_boxloss(changed), case, truths(case))


@pytest.mark.parametrize("kind", MATCHED)
def test_matchers_agree(kind: str) -> None:
    case = CASES[kind]
    cost = load_boxloss(case).call()
    best = matchers.load_loop(case)(cost)
    wanted = matchers.collated(case, best)
    check_same("hungarian_match", matchers.hungarian(case, cost), wanted)
    expected = truths(case)
    check_best("loop", best, best, case, expected)
    try:
        check_best("original", load_original(case).matches(), best, case, expected)
    except UnavailableError as reason:
        pytest.skip(str(reason))


def test_the_loop_is_scipy_on_each_image() -> None:
    """Against all ways to match two boxes."""
    case = make_case("dense", replace(QUICK_SHAPES["dense"], boxes=2), CPU)
    cost = load_boxloss(case).call()
    for image, (src, tgt) in enumerate(matchers.load_loop(case)(cost)[0]):
        block = cost[0, :, case.columns(image)].double()
        both = block[:, None, 0] + block[None, :, 1]
        both.fill_diagonal_(torch.inf)
        torch.testing.assert_close(block[src, tgt].sum(), both.min())


def test_a_match_that_is_not_best_is_reported() -> None:
    case = CASES["lwdetr"]
    expected = truths(case)
    best = matchers.load_loop(case)(load_boxloss(case).call())
    groups = case.shape.groups
    swapped = [
        [(src, tgt.view(groups, -1).roll(1, 1).flatten()) for src, tgt in layer] for layer in best
    ]
    with pytest.raises(DisagreementError, match="more than"):
        check_best("swapped", swapped, best, case, expected)
    doubled = [[(src[:1].expand_as(src), tgt) for src, tgt in layer] for layer in best]
    with pytest.raises(DisagreementError, match="is not matched"):
        check_best("doubled", doubled, best, case, expected)


@pytest.mark.parametrize("kind", MATCHED)
def test_the_original_stops_at_the_copy_and_does_without_scipy(kind: str) -> None:
    case = CASES[kind]
    try:
        original = load_original(case)
    except UnavailableError as reason:
        pytest.skip(str(reason))
    costs = original.costs()
    assert [each.numel() for each in costs] == [
        case.shape.images * case.shape.queries * sum(case.counts)
    ] * case.shape.layers
    pairs = original.without_scipy()
    assert all(len(src) == 0 for layer in pairs for src, _ in layer)
    assert any(len(src) for src, _ in original.matches()[0])  # SciPy is back
    assert torch.ones(1).cpu().item() == 1  # and so is the copy


def test_what_is_replaced_comes_back_whatever_happens() -> None:
    class Base:
        inherited = 1

    class Owner(Base):
        own = 2

    def fail(name: str) -> None:
        with replaced(Owner, name, 3):
            raise KeyError(getattr(Owner, name))

    for name, before in (("inherited", 1), ("own", 2)):
        with pytest.raises(KeyError, match="3"):
            fail(name)
        assert getattr(Owner, name) == before
    assert "inherited" not in vars(Owner)


def test_operators_and_memory_are_counted() -> None:
    values = torch.ones(1000)

    def call() -> Tensor:
        return (values + 1).view(10, 100) * 2

    assert operators(call) == 2
    # Two results at once; scalars may take a few bytes more.
    assert 8000 <= host_peak_bytes(call) < 8100


def test_large_results_are_large() -> None:
    for kind in ("large", "large-focal"):
        shape = SHAPES[kind]
        boxes = shape.images * (shape.boxes or 0)
        assert shape.layers * shape.queries * boxes * 4 == 2**29
        assert SHAPES_ON_CPU[kind].queries < shape.queries


@pytest.mark.parametrize("images", [8, 16, 1000])
def test_images_have_about_as_many_boxes_as_cocos(images: int) -> None:
    counts = box_counts(replace(SHAPES["rtdetr"], images=images), seed=0)
    assert 6 <= sum(counts) / images <= 8.5
    assert 3 <= sorted(counts)[images // 2 - 1] <= 5
    assert 20 <= max(counts) <= 63
    assert counts != box_counts(replace(SHAPES["rtdetr"], images=images), seed=1)


def test_images_without_boxes_are_right() -> None:
    case = make_case("rtdetr", QUICK_SHAPES["rtdetr"], CPU, counts=(0, 3, 0, 1))
    expected = truths(case)
    for name, costs in _available(case).items():
        check(name, costs, case, expected)


@pytest.mark.parametrize("kind", CASES)
def test_corners_are_exact(kind: str) -> None:
    case = CASES[kind]
    for boxes in (case.pred, case.target):
        if case.cost.box_format == "xyxy":
            assert (boxes[..., 2:] > boxes[..., :2]).all()
            continue
        centre, size = boxes.chunk(2, -1)
        for exact, found in (
            (centre.double() - size.double() / 2, centre - size / 2),
            (centre.double() + size.double() / 2, centre + size / 2),
        ):
            assert torch.equal(exact, found.double())
        assert (size > 0).all()
