# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The loss, l1 and iou of one call: each is what it is alone, whichever of them is used."""

import pytest
import torch
from bounds import check_bounded
from boxloss.torch import BoxLosses, box_loss, box_losses, use_implementation
from comparison import differentiable, run
from devices import Implementation
from formulas import LOSSES
from kinds import INVERTED, PAIRS, RANDOM_KINDS, WITHOUT_AREA, random_pairs, tensors
from problems import FLOATING, FORMATS, PAIRINGS, REDUCTIONS, TARGETS, boxes, problem, with_overlaps

NAN = float("nan")
BY = [("loss",), ("l1",), ("loss", "l1")]


@pytest.mark.asan
@pytest.mark.parametrize("by", BY, ids="+".join)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("pairing", PAIRINGS)
def test_against_the_formula(
    implementation: Implementation, pairing: str, reduction: str, by: tuple[str, ...]
) -> None:
    device = implementation.device
    values = problem(pairing, device, weight=torch.float32, reduction=reduction)
    check_bounded(with_overlaps(values), by=by)


@pytest.mark.parametrize("box_format", FORMATS)
@pytest.mark.parametrize("loss", LOSSES)
def test_losses_and_formats(implementation: Implementation, loss: str, box_format: str) -> None:
    options = {"loss": loss, "pred_format": box_format, "target_format": box_format}
    mode = "clamp" if box_format == "xywh" else "add"
    values = problem("lengths", implementation.device, reduction="none", eps_mode=mode, **options)
    check_bounded(with_overlaps(values), by=("loss", "l1"))


@pytest.mark.asan
@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize("pred", FLOATING, ids=str)
def test_dtypes(implementation: Implementation, pred: torch.dtype, target: torch.dtype) -> None:
    for pairing in ("dense", "offsets"):
        values = problem(pairing, implementation.device, pred, target, torch.bfloat16)
        check_bounded(with_overlaps(values), by=("loss", "l1"))


@pytest.mark.parametrize("eps", [1e-7, 0.25])
@pytest.mark.parametrize("eps_mode", ["add", "clamp"])
def test_every_kind_of_boxes(implementation: Implementation, eps_mode: str, eps: float) -> None:
    dtype = torch.float32
    pairs = [tensors(table, dtype) for table in (PAIRS, WITHOUT_AREA, INVERTED)]
    pairs += [random_pairs(kind, dtype) for kind in RANDOM_KINDS]
    pred, target = (torch.cat(each).to(implementation.device) for each in zip(*pairs, strict=True))
    options = {"eps": eps, "eps_mode": eps_mode, "reduction": "none"}
    check_bounded({"pred": pred, "target": target, **options}, by=("loss", "l1"))


@pytest.mark.parametrize("pairing", PAIRINGS)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_loss_is_box_losss(implementation: Implementation, loss: str, pairing: str) -> None:
    if implementation.device.type != "cpu":
        pytest.skip("a GPU's compiler contracts each kernel's products and sums in its own way")
    values = problem(pairing, implementation.device, weight=torch.float32, loss=loss)
    values = with_overlaps(values)
    alone, together = run(values), run(values, by=("loss",))
    for name, result in alone.items():
        assert torch.equal(together[name], result), name


def test_in_numbers(implementation: Implementation) -> None:
    # I = 2, U = 4 + 6 - 2 = 8, C = 12, so that giou is 1 - (1/4 - 1/3).
    device = implementation.device
    pred = torch.tensor([[0.0, 0.0, 2.0, 2.0]], device=device).requires_grad_()
    target = torch.tensor([[1.0, 0.0, 4.0, 2.0]], device=device)
    weight = torch.tensor([0.5], device=device)
    result = box_losses(pred, target, weight=weight, reduction="sum", eps=0.0)
    assert isinstance(result, BoxLosses)
    assert result.loss.item() == pytest.approx(0.5 * (1 - 1 / 4 + 0), rel=1e-6)
    assert result.l1.item() == 0.5 * 3
    assert result.iou.tolist() == [0.25]
    (gradient,) = torch.autograd.grad(result.l1, pred)
    # Ties have none.
    assert gradient.tolist() == [[-0.5, 0.0, -0.5, 0.0]]


def test_l1_is_of_the_boxes_own_values(implementation: Implementation) -> None:
    device = implementation.device
    pred = torch.tensor([[10.0, 20.0, 4.0, 2.0]], device=device)
    target = torch.tensor([[11, 20, 8, 1]], device=device, dtype=torch.uint8)
    for box_format in FORMATS:
        formats = {"pred_format": box_format, "target_format": box_format}
        assert box_losses(pred, target, **formats).l1.item() == 1 + 4 + 1


def test_iou_is_neither_weighted_nor_reduced(implementation: Implementation) -> None:
    values = with_overlaps(problem("mask", implementation.device, weight=torch.float32))
    results = [
        box_losses(**{**values, "reduction": reduction, **change}).iou
        for reduction in REDUCTIONS
        for change in ({}, {"weight": 3 * values["weight"]})
    ]
    for iou in results:
        assert torch.allclose(iou, results[0], rtol=1e-5, atol=0)
    assert not results[0][~values["mask"]].any()
    assert (results[0] > 0.8).any()


def test_iou_has_no_gradient(device: torch.device) -> None:
    values = problem("sets", device, weight=torch.float32)
    assert [output.requires_grad for output in box_losses(**values)] == [False] * 3
    leaves = differentiable(values)
    results = box_losses(**{**values, **leaves})
    assert [output.requires_grad for output in results] == [True, True, False]
    for output in results[:2]:
        assert all(
            each is not None
            for each in torch.autograd.grad(output.sum(), tuple(leaves.values()), retain_graph=True)
        )
    with torch.no_grad():
        assert not any(output.requires_grad for output in box_losses(**{**values, **leaves}))


# --- What one output does not get from the other ---


@pytest.mark.parametrize("creates_graph", [False, True])
@pytest.mark.parametrize("pairing", ["dense", "sets"])
def test_l1_alone_does_not_see_a_loss_of_nan(
    implementation: Implementation, pairing: str, creates_graph: bool
) -> None:
    """Without eps two points have 0 / 0, and a distance."""
    values = problem(pairing, implementation.device, torch.float64, torch.float64, eps=0.0)
    for name in ("pred", "target"):
        values[name] = values[name].clone()
        values[name][..., 2:] = values[name][..., :2]
    leaves = differentiable(values)
    result = box_losses(**{**values, **leaves})
    assert result.loss.isnan().all()
    assert result.l1.isfinite().all()
    inputs = tuple(leaves.values())
    gradients = torch.autograd.grad(result.l1.sum(), inputs, create_graph=creates_graph)
    for gradient in gradients:
        assert gradient.isfinite().all()
        assert gradient.any()


@pytest.mark.parametrize("creates_graph", [False, True])
def test_the_loss_alone_does_not_see_an_infinite_l1(
    implementation: Implementation, creates_graph: bool
) -> None:
    # Their distance overflows float32, and nothing else does.
    far = torch.tensor([[1e38, 1e38, 1.0, 1.0]], device=implementation.device).requires_grad_()
    near = torch.tensor([[-1e38, -1e38, 1.0, 1.0]], device=implementation.device)
    formats = {"pred_format": "xywh", "target_format": "xywh"}
    result = box_losses(far, near, "iou", eps=1.0, eps_mode="clamp", **formats)
    assert result.l1.isinf().all()
    assert result.loss.item() == 1
    (gradient,) = torch.autograd.grad(result.loss, far, create_graph=creates_graph)
    assert gradient.isfinite().all()


@pytest.mark.parametrize("operand", ["pred", "target"])
@pytest.mark.parametrize("coordinate", range(4))
def test_nan_in_one_value(implementation: Implementation, coordinate: int, operand: str) -> None:
    values = problem("dense", implementation.device, reduction="none")
    values[operand][1, 2, coordinate] = NAN
    result = run(values, by=("l1",))
    where = torch.zeros_like(values["pred"], dtype=torch.bool)
    where[1, 2, coordinate] = True
    for name in ("pred", "target"):  # the derivative by every other value is what it is
        assert torch.equal(result[name].isnan(), where)
    for name in ("loss", "l1", "iou"):
        assert torch.equal(result[name].isnan(), where.any(-1)), name


def test_infinities(implementation: Implementation) -> None:
    infinity = float("inf")
    pred = torch.tensor([[infinity, 0, 1, 1], [infinity, 0, 1, 1]], device=implementation.device)
    target = torch.tensor([[2.0, 0, 1, 1], [infinity, 0, 1, 1]], device=implementation.device)
    result = run({"pred": pred, "target": target, "reduction": "none"}, torch.ones(2), by=("l1",))
    assert result["l1"][0] == infinity
    assert result["l1"][1].isnan()
    assert result["pred"][0].tolist() == [1, 0, 0, 0]
    assert result["pred"][1, 0].isnan()
    assert not result["pred"][1, 1:].any()


@pytest.mark.parametrize("name", ["pred", "target", "weight"])
@pytest.mark.parametrize("pairing", PAIRINGS)
def test_only_what_is_asked_for(device: torch.device, pairing: str, name: str) -> None:
    values = problem(pairing, device, weight=torch.float32)
    wanted = run(values, torch.ones_like(box_loss(**values)), by=("loss", "l1"))[name]
    leaf = values[name].detach().requires_grad_()
    loss, l1, _ = box_losses(**{**values, name: leaf})
    (gradient,) = torch.autograd.grad((loss + l1).sum(), leaf)
    assert torch.allclose(gradient, wanted, rtol=1e-4, atol=1e-6)


def test_backward_twice_through_one_graph(device: torch.device) -> None:
    values = problem("sets", device)
    values["pred"].requires_grad_()
    total = sum(output.sum() for output in box_losses(**values)[:2])
    (first,) = torch.autograd.grad(total, values["pred"], retain_graph=True)
    (again,) = torch.autograd.grad(total, values["pred"])
    assert torch.equal(first, again)


def test_one_backward_for_both_is_the_sum_of_two(device: torch.device) -> None:
    values = problem("indices", device, torch.float64, torch.float64)
    one, other, both = (run(values, torch.ones((), device=device), by=by) for by in BY)
    for name in ("pred", "target"):
        difference = (both[name] - (one[name] + other[name])).abs()
        assert difference.max() <= 8 * 2.0**-53 * both[name].abs().max()


def test_inputs_changed_before_backward_are_noticed(device: torch.device) -> None:
    values = problem("indices", device)
    values["pred"].requires_grad_()
    result = box_losses(**values)
    values["target_index"].zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.l1.backward()


def test_the_choice_of_implementation_holds_for_it_too() -> None:
    # The reference computes in double, so that its float32 results differ in some last bits.
    pred, target = boxes((1000,), torch.device("cpu"), seed=1), boxes((1000,), torch.device("cpu"))
    native = box_losses(pred, target, reduction="none")
    with use_implementation("cpu/reference"):
        reference = box_losses(pred, target, reduction="none")
        assert torch.equal(reference.loss, box_loss(pred, target, reduction="none"))
    for name in ("loss", "iou"):
        assert not torch.equal(getattr(native, name), getattr(reference, name))
