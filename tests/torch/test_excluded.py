# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What a pair that does not count may hold, and what NaN in one that counts does."""

import pytest
import torch
from boxloss.torch import box_loss, giou_loss
from comparison import differentiable, run, upstream_for
from devices import Implementation
from formulas import LOSSES
from problems import FORMATS, PAIRINGS, REDUCTIONS, Problem, boxes, excluded, problem, with_overlaps
from torch import Tensor

POISONS = [float("nan"), float("inf"), -float("inf"), 3e38]
# Without eps -log(iou) of disjoint boxes is infinite.
LOSSES_AND_EPS = [(loss, 1e-7) for loss in LOSSES] + [
    (loss, 0.0) for loss in LOSSES if loss != "iou_log"
]


def poisoned(values: Problem, poison: float) -> Problem:
    """The same problem with garbage wherever no counted pair is."""
    slots, rows, places = excluded(values)
    assert slots.any()
    assert rows.any()
    assert places.any()
    result = {**values, "pred": values["pred"].clone(), "weight": values["weight"].clone()}
    result["pred"][slots] = poison
    result["weight"][places] = poison
    if "zero_padded" not in values:  # there the zeros are what excludes
        result["target"] = values["target"].clone()
        result["target"][rows] = poison
    return result


def poisoned_upstream(values: Problem, poison: float) -> tuple[Tensor, Tensor]:
    """A gradient for the loss, and the same with garbage for the rows that do not count."""
    clean = upstream_for(box_loss(**values))
    dirty = clean.clone()
    if values["reduction"] == "none":
        dirty[excluded(values)[2]] = poison
    return clean, dirty


def assert_zero_where_excluded(values: Problem, gradients: dict[str, Tensor]) -> None:
    for name, where in zip(("pred", "target", "weight"), excluded(values), strict=True):
        assert torch.equal(gradients[name][where], torch.zeros_like(gradients[name][where])), name


@pytest.mark.parametrize("poison", POISONS)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("pairing", PAIRINGS[1:])
@pytest.mark.parametrize("loss", LOSSES)
def test_garbage_reaches_nothing(
    implementation: Implementation, loss: str, pairing: str, reduction: str, poison: float
) -> None:
    options = {"loss": loss, "reduction": reduction}
    values = problem(pairing, implementation.device, weight=torch.float32, **options)
    values = with_overlaps(values)
    clean_upstream, dirty_upstream = poisoned_upstream(values, poison)
    clean = run(values, clean_upstream)
    dirty = run(poisoned(values, poison), dirty_upstream)
    for name, result in clean.items():
        assert torch.equal(dirty[name], result), name
    assert_zero_where_excluded(values, dirty)


@pytest.mark.parametrize("poison", POISONS)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("pairing", PAIRINGS[1:])
def test_garbage_reaches_no_l1_and_no_iou(
    implementation: Implementation, pairing: str, reduction: str, poison: float
) -> None:
    values = problem(pairing, implementation.device, weight=torch.float32, reduction=reduction)
    values = with_overlaps(values)
    clean_upstream, dirty_upstream = poisoned_upstream(values, poison)
    for by in (("l1",), ("loss", "l1")):
        clean = run(values, clean_upstream, by)
        dirty = run(poisoned(values, poison), dirty_upstream, by)
        for name, result in clean.items():
            assert torch.equal(dirty[name], result), name
        assert_zero_where_excluded(values, dirty)


@pytest.mark.parametrize("poison", POISONS)
@pytest.mark.parametrize("pairing", PAIRINGS[1:])
@pytest.mark.parametrize(("loss", "eps"), LOSSES_AND_EPS)
def test_garbage_reaches_no_second_derivative(
    device: torch.device, loss: str, eps: float, pairing: str, poison: float
) -> None:
    options = {"loss": loss, "reduction": "none", "eps": eps}
    values = with_overlaps(problem(pairing, device, weight=torch.float32, **options))
    clean_upstream, dirty_upstream = poisoned_upstream(values, poison)

    def derivatives(values: Problem, upstream: Tensor) -> dict[str, Tensor]:
        leaves = differentiable(values)
        inputs = tuple(leaves.values())
        loss = box_loss(**{**values, **leaves})
        first = torch.autograd.grad(loss, inputs, upstream, create_graph=True)
        second = torch.autograd.grad(sum(g.square().sum() for g in first), inputs)
        return dict(zip(leaves, second, strict=True))

    # A GPU's own thread would run nodes, and add gradients, in an order that depends on the past.
    with torch.autograd.set_multithreading_enabled(False):
        clean = derivatives(values, clean_upstream)
        dirty = derivatives(poisoned(values, poison), dirty_upstream)
    for name, result in clean.items():
        assert torch.equal(dirty[name], result), name
    assert_zero_where_excluded(values, dirty)


def check_only_pair_two_is_nan(results: dict[str, Tensor]) -> None:
    for name, result in results.items():
        wanted = torch.zeros_like(result, dtype=torch.bool)
        wanted[2] = True
        assert torch.equal(result.isnan(), wanted), name


@pytest.mark.parametrize("eps_mode", ["add", "clamp"])
@pytest.mark.parametrize("box_format", FORMATS)
@pytest.mark.parametrize("coordinate", range(4))
@pytest.mark.parametrize("operand", ["pred", "target"])
def test_nan_in_a_counted_pair_stays_in_that_pair(
    implementation: Implementation, operand: str, coordinate: int, box_format: str, eps_mode: str
) -> None:
    values = problem(
        "mask",
        implementation.device,
        weight=torch.float32,
        reduction="none",
        eps_mode=eps_mode,
        pred_format=box_format,
        target_format=box_format,
    )
    values = {n: v[0] if isinstance(v, Tensor) else v for n, v in values.items()}
    values["mask"] = torch.ones_like(values["mask"])
    values[operand][2, coordinate] = float("nan")
    check_only_pair_two_is_nan(run(values))
    values["weight"][2] = 0  # which does not hide it
    check_only_pair_two_is_nan(run(values))
    values["mask"][2] = False  # which does
    assert not any(result.isnan().any() for result in run(values).values())


@pytest.mark.parametrize("eps_mode", ["add", "clamp"])
@pytest.mark.parametrize("box_format", FORMATS)
@pytest.mark.parametrize("loss", LOSSES)
def test_nan_in_any_coordinate_of_any_loss(
    implementation: Implementation, loss: str, box_format: str, eps_mode: str
) -> None:
    pred, target = (
        boxes((9,), implementation.device, box_format=box_format, seed=seed) for seed in (1, 2)
    )
    pred[range(4), range(4)] = float("nan")
    target[range(4, 8), range(4)] = float("nan")
    formats = {"pred_format": box_format, "target_format": box_format}
    options = {"loss": loss, "reduction": "none", "eps_mode": eps_mode, **formats}
    for result in run({"pred": pred, "target": target, **options}).values():
        assert result[:8].isnan().all()
        assert result[8].isfinite().all()


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_nan_in_a_counted_pair_makes_the_total_nan(
    implementation: Implementation, reduction: str
) -> None:
    values = problem("lengths", implementation.device, reduction=reduction)
    values["pred"][0, 1, 2] = float("nan")
    result = run(values)
    assert result["loss"].isnan()
    assert result["pred"][0, 1].isnan().all()
    assert result["pred"].isnan().sum() == 4


def test_a_padded_target_is_four_zeros_of_either_sign(implementation: Implementation) -> None:
    target = torch.tensor(
        [[[0.0, -0.0, 0.0, -0.0], [0.0, 0.0, 1e-30, 0.0], [0.0, 0.0, 0.0, float("nan")]]],
        device=implementation.device,
    )
    loss = giou_loss(torch.ones_like(target), target, zero_padded=True, reduction="none")
    assert loss[0, 0] == 0
    assert loss[0, 1] > 1
    assert loss[0, 2].isnan()
