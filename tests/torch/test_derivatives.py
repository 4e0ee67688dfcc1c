# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Derivatives of both orders and in every mode, and function transforms."""

from collections.abc import Callable
from typing import Any

import formula
import pytest
import torch
from boxloss.torch import box_loss, box_losses, giou_loss
from combinations import pairwise
from comparison import UNIT_ROUNDOFF, differentiable, outputs_of, run
from layouts import contiguous, in_planes
from problems import (
    ANGLE_UNITS,
    FORMATS,
    INDICES,
    LOSSES,
    PAIRINGS,
    PARAMETERS,
    REDUCTIONS,
    ROTATED_LOSSES,
    Problem,
    boxes,
    on_cpu,
    problem,
    with_overlaps,
)
from torch import Tensor
from torch.autograd import forward_ad, gradcheck, gradgradcheck
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

DOUBLE = torch.float64
EPS_MODES = ("add", "clamp")
BOTH = ("loss", "l1")
BY = [(), ("loss",), ("l1",), BOTH]
PAIRINGS_OF_THE_TABLE: dict[str, tuple[str, Problem]] = {
    **{name: (name, {}) for name in PAIRINGS},
    "pred_index": ("indices", {"given": INDICES[:1], "most": 9}),
    "target_index": ("sets", {"given": INDICES[1:], "most": 9}),
}


def assert_same(actual: Tensor, expected: Tensor) -> None:
    """Two ways in double, some 1000 roundings of the largest value apart."""
    expected = expected.to(actual.device)
    largest = max(float(expected.abs().max()), 1.0) if expected.numel() else 1.0
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    assert (actual - expected).abs().le(1000 * UNIT_ROUNDOFF[DOUBLE] * largest).all()


def double_problem(pairing: str, device: torch.device, **options: Any) -> Problem:
    pairing, more = PAIRINGS_OF_THE_TABLE[pairing]
    if options.get("reduction") == "normalizer":
        numbers = [1.5, 0.25] if pairing == "sets" else 1.5
        more = {**more, "normalizer": torch.tensor(numbers, device=device)}
        options.pop("reduction")
    return with_overlaps(problem(pairing, device, DOUBLE, DOUBLE, DOUBLE, **more, **options))


def by_loss_and_by_l1(**options: Any) -> list[Any]:
    """Pairs of options by outputs; by l1 alone with one loss, which it does not see."""
    by_loss = pairwise(**options, by=[by for by in BY if by != ("l1",)])
    return [*by_loss, *pairwise(**{**options, "loss": ("giou",)}, by=[("l1",)])]


def as_function(
    values: Problem, by: tuple[str, ...] = ()
) -> tuple[Callable[..., tuple[Tensor, ...]], dict[str, Tensor]]:
    """The outputs as a function of the differentiable tensors alone, and those tensors."""
    leaves = differentiable(values)

    def function(*tensors: Tensor) -> tuple[Tensor, ...]:
        named = dict(zip(leaves, tensors, strict=True))
        return tuple(outputs_of({**values, **named}, by).values())

    return function, leaves


# --- Against the formula ---


def derivatives(
    function: Callable[..., dict[str, Tensor]], values: Problem, by: tuple[str, ...]
) -> list[Tensor]:
    """The first by all of `by`, and second ones through all of those."""
    leaves = differentiable(values)
    results = function({**values, **leaves}, by)
    total = sum(((2 + i) * results[name]).square().sum() for i, name in enumerate(by or ("loss",)))
    first = torch.autograd.grad(total, tuple(leaves.values()), create_graph=True)
    mixed = sum((g.square() * (1 + i)).sum() for i, g in enumerate(first))
    return [g.detach() for g in (*first, *torch.autograd.grad(mixed, tuple(leaves.values())))]


def check_both_orders(values: Problem, by: tuple[str, ...] = ()) -> None:
    actual = derivatives(outputs_of, values, by)
    expected = derivatives(lambda values, by: formula.box_losses(**values), on_cpu(values), by)
    for a, e in zip(actual, expected, strict=True):
        assert a.isfinite().all()
        assert_same(a, e)


@pytest.mark.parametrize(
    "case",
    by_loss_and_by_l1(
        loss=LOSSES,
        pairing=PAIRINGS_OF_THE_TABLE,
        reduction=(*REDUCTIONS, "normalizer"),
        box_format=FORMATS,
        eps_mode=EPS_MODES,
        layout=(contiguous, in_planes),
    ),
)
def test_both_orders_are_the_formulas(device: torch.device, case: dict[str, Any]) -> None:
    options = {name: case[name] for name in ("loss", "reduction", "eps_mode")}
    formats = dict.fromkeys(("pred_format", "target_format"), case["box_format"])
    if not case["by"]:  # l1 wants the same
        formats["target_format"] = "xyxy"
    values = double_problem(case["pairing"], device, **options, **formats)
    values |= {name: case["layout"](values[name]) for name in ("pred", "target")}
    check_both_orders(values, case["by"])


@pytest.mark.parametrize("loss", LOSSES)
def test_equal_boxes_and_boxes_without_area_twice(device: torch.device, loss: str) -> None:
    # Where quotients are set to constants, no NaN reaches a second derivative.
    pred = torch.tensor(
        [[1.0, 2.0, 5.0, 4.0], [1.0, 1.0, 1.0, 1.0], [0.0, 2.0, 4.0, 2.0], [4.0, 5.0, 2.0, 1.0]],
        device=device,
        dtype=DOUBLE,
    )
    options = {"loss": loss, "reduction": "none", "eps": 0.5, **PARAMETERS.get(loss, {})}
    values = {"pred": pred, "target": pred.clone(), **options}
    assert all(each.isfinite().all() for each in derivatives(outputs_of, values, ()))


# --- Batches of incoming gradients, modes and transforms, which take other ways ---


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize(
    "case", pairwise(pairing=PAIRINGS, reduction=REDUCTIONS, by=BY, creates_graph=(False, True))
)
def test_batched_gradients_are_one_by_one(device: torch.device, case: dict[str, Any]) -> None:
    values = double_problem(case["pairing"], device, reduction=case["reduction"])
    leaves = [values[name].requires_grad_() for name in ("pred", "target", "weight")]
    results = outputs_of(values, case["by"])
    outputs = [results[name] for name in case["by"] or ("loss",)]
    rows = [torch.linspace(-1, 1, 3 * each.numel()).to(each) for each in outputs]
    rows = [row.reshape(3, *each.shape) for row, each in zip(rows, outputs, strict=True)]
    options = {"retain_graph": True, "create_graph": case["creates_graph"]}
    batched = torch.autograd.grad(outputs, leaves, rows, is_grads_batched=True, **options)
    one_by_one = [
        torch.autograd.grad(outputs, leaves, each, retain_graph=True)
        for each in zip(*rows, strict=True)
    ]
    for actual, expected in zip(batched, zip(*one_by_one, strict=True), strict=True):
        assert_same(actual, torch.stack(expected))
    # Through the weight a gradient of l1 can be differentiated, too.
    if case["creates_graph"]:
        assert torch.autograd.grad(batched[0].square().sum(), leaves[2])[0].any()

    def gradient(*row: Tensor) -> Tensor:
        return torch.autograd.grad(outputs, leaves, row, retain_graph=True)[0]

    assert_same(vmap(gradient)(*rows), batched[0].detach())


def test_narrow_dtypes_the_composite_way(device: torch.device) -> None:
    dtypes = (torch.bfloat16, torch.uint8, torch.float16)
    values = problem("offsets", device, *dtypes, reduction="none")
    pred = values["pred"].requires_grad_()
    loss = giou_loss(**values)
    (fused,) = torch.autograd.grad(loss.sum(), pred, retain_graph=True)
    (batched,) = torch.autograd.grad(
        loss, pred, torch.ones_like(loss)[None], is_grads_batched=True, retain_graph=True
    )
    (with_graph,) = torch.autograd.grad(loss.sum(), pred, create_graph=True)
    (second,) = torch.autograd.grad(with_graph.square().sum(), pred)
    assert batched.dtype == with_graph.dtype == second.dtype == pred.dtype
    assert second.any()
    for actual in (batched[0], with_graph):
        # A rounding to bfloat16 may fall to either side.
        assert torch.allclose(actual, fused, rtol=2 * UNIT_ROUNDOFF[torch.bfloat16], atol=1e-7)


@pytest.mark.parametrize(
    "case",
    pairwise(
        pairing=PAIRINGS_OF_THE_TABLE,
        reduction=(*REDUCTIONS, "normalizer"),
        by=[(), BOTH],
        loss=("giou", "ciou", "siou"),
        angle_unit=(None,),
    )
    + pairwise(
        pairing=PAIRINGS_OF_THE_TABLE,
        by=[()],
        loss=ROTATED_LOSSES,
        angle_unit=ANGLE_UNITS,
        reduction=REDUCTIONS,
    ),
)
def test_transforms_are_the_fused_results(device: torch.device, case: dict[str, Any]) -> None:
    by = case["by"]
    options = {name: case[name] for name in ("loss", "reduction", "angle_unit") if case[name]}
    values = double_problem(case["pairing"], device, **options)
    function, leaves = as_function(values, by)
    tensors = tuple(each.detach() for each in leaves.values())
    fused = run(values, torch.ones_like(outputs_of(values)["loss"]), by)
    outputs, back = vjp(function, *tensors)
    for output, wanted in zip(outputs, fused.values(), strict=False):
        assert_same(output, wanted)
    # All but iou, which has no gradient.
    ones = [torch.full_like(each, float(i < 2)) for i, each in enumerate(outputs)]
    total = grad(lambda *tensors: sum(o.sum() for o in function(*tensors)[:2]), (0, 1, 2))
    for name, *gradients in zip(leaves, back(tuple(ones)), total(*tensors), strict=True):
        for gradient in gradients:
            assert_same(gradient, fused[name])

    directions = [torch.linspace(-1, 1, t.numel()).to(t).reshape(t.shape) for t in tensors]
    for i, name in enumerate(leaves):  # alone, so that its tangent is what is found
        _, tangents = jvp(
            lambda tensor, i=i: function(*tensors[:i], tensor, *tensors[i + 1 :]),
            (tensors[i],),
            (directions[i],),
        )
        wanted = (fused[name] * directions[i]).sum()
        assert_same(sum(tangent.sum() for tangent in tangents[:2]), wanted)
        assert not any(tangent.any() for tangent in tangents[2:])
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(tensors[i], directions[i])
            results = function(*tensors[:i], dual, *tensors[i + 1 :])
            for result, tangent in zip(results[:2], tangents, strict=False):
                assert_same(forward_ad.unpack_dual(result).tangent, tangent)


@pytest.mark.parametrize("pairing", PAIRINGS_OF_THE_TABLE)
def test_jacobians_and_vmap(device: torch.device, pairing: str) -> None:
    values = double_problem(pairing, device, reduction="none")

    def function(pred: Tensor) -> Tensor:
        return torch.stack(tuple(box_losses(**{**values, "pred": pred})[:2]))

    pred = values["pred"]
    by_rows = jacrev(function)(pred)
    assert_same(jacfwd(function)(pred), by_rows)
    upstream = torch.ones((), device=device).expand(function(pred)[0].shape)
    dims = tuple(range(by_rows.dim() - pred.dim()))
    assert_same(by_rows.sum(dims), run(values, upstream, BOTH)["pred"])
    preds = torch.stack((pred, pred + 1, 2 * pred))
    assert_same(vmap(function)(preds), torch.stack([function(each) for each in preds]))
    gradients = vmap(grad(lambda pred: function(pred).sum()))(preds)
    one_by_one = [run({**values, "pred": p}, upstream, BOTH)["pred"] for p in preds]
    assert_same(gradients, torch.stack(one_by_one))

    def total(pred: Tensor, target: Tensor) -> Tensor:
        return sum(each.sum() for each in box_losses(**{**values, "pred": pred, "target": target}))

    targets = torch.stack((values["target"], 2 * values["target"], values["target"] / 2))
    wanted = torch.stack([total(*each) for each in zip(preds, targets, strict=True)])
    assert_same(vmap(total)(preds, targets), wanted)
    twice = torch.autograd.functional.hessian(lambda pred: total(pred, values["target"]), pred)
    assert_same(hessian(total)(pred, values["target"]), twice)


@pytest.mark.parametrize("pairing", ["lengths", "mask", "offsets"])
def test_vmap_over_the_pairing_itself(device: torch.device, pairing: str) -> None:
    values = double_problem(pairing, device)
    both = torch.stack([values[pairing], values[pairing].flip(0).sort(0).values])

    def function(indices: Tensor) -> Tensor:
        return giou_loss(**{**values, pairing: indices})

    assert_same(vmap(function)(both), torch.stack([function(each) for each in both]))


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_vmap_over_indices_is_one_call_with_sets(device: torch.device, reduction: str) -> None:
    values = double_problem("sets", device, reduction=reduction)
    mapped = (*INDICES, "weight")

    def function(*of_set: Tensor) -> tuple[Tensor, ...]:
        return tuple(box_losses(**{**values, **dict(zip(mapped, of_set, strict=True))}))

    each = vmap(function)(*(values[name] for name in mapped))
    for actual, expected in zip(each, box_losses(**values), strict=True):
        assert_same(actual, expected)


# --- What has a gradient ---


@pytest.mark.parametrize("by", [(), BOTH])
@pytest.mark.parametrize("pairing", PAIRINGS_OF_THE_TABLE)
def test_only_what_is_asked_for(device: torch.device, pairing: str, by: tuple[str, ...]) -> None:
    values = double_problem(pairing, device)
    ones = torch.ones_like(box_loss(**values))
    everything = run(values, ones, by)
    for wanted in ("pred", "target", "weight"):
        leaf = values[wanted].detach().requires_grad_()
        results = outputs_of({**values, wanted: leaf}, by)
        needed = [result.requires_grad for result in results.values()]
        assert needed == ([True, True, False] if by else [True])
        total = sum(results[name].sum() for name in by or ("loss",))
        (gradient,) = torch.autograd.grad(total, leaf, retain_graph=True)
        assert_same(gradient, everything[wanted])
        assert torch.equal(torch.autograd.grad(total, leaf)[0], gradient)


def test_a_normalizer_has_no_gradient(device: torch.device) -> None:
    values = problem("dense", device)
    values["pred"].requires_grad_()
    normalizer = torch.tensor(2.0, device=device, requires_grad=True)
    giou_loss(**values, normalizer=normalizer).backward()
    assert values["pred"].grad is not None
    loss = giou_loss(**values, normalizer=normalizer)
    (gradient,) = torch.autograd.grad(loss, values["pred"], create_graph=True)
    gradient.sum().backward()
    assert normalizer.grad is None


def made_from(x: Tensor) -> Tensor:
    return 1.25 * x + torch.tensor([0.5, -1, 0.25, 2], device=x.device, dtype=DOUBLE)


def pred_made_from_target(x: Tensor) -> Tensor:
    return giou_loss(made_from(x), x)


def weight_made_from_pred(x: Tensor) -> Tensor:
    target = boxes((6,), x.device, DOUBLE, seed=9)
    return giou_loss(x, target, weight=x.sum(-1), reduction="sum")


def one_list(x: Tensor) -> Tensor:
    """Each box with its successor."""
    pred_index = torch.tensor([0, 1, 2, 3, -1, 4], device=x.device)
    target_index = torch.tensor([1, 2, 3, 4, 0, 9], device=x.device)
    loss, l1, _ = box_losses(x, x, pred_index=pred_index, target_index=target_index)
    return loss + l1


@pytest.mark.parametrize("function", [pred_made_from_target, weight_made_from_pred, one_list])
def test_inputs_that_depend_on_each_other(
    device: torch.device, function: Callable[[Tensor], Tensor]
) -> None:
    x = boxes((6,), device, DOUBLE, seed=8).requires_grad_()
    assert gradcheck(function, x)
    (gradient,) = torch.autograd.grad(function(x), x)
    (with_graph,) = torch.autograd.grad(function(x), x, create_graph=True)
    assert_same(gradient, with_graph.detach())
    assert gradgradcheck(function, x, fast_mode=True)
