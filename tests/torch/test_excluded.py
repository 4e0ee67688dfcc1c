# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What a pair that does not count may hold, and what an output does not see of another's NaN."""

from typing import Any

import pytest
import torch
from boxloss.torch import box_losses
from combinations import pairwise
from comparison import differentiable, outputs_of, upstream_for
from devices import Implementation
from problems import LOSSES, PAIRINGS, ROTATED_LOSSES, Problem, excluded, problem, with_overlaps
from torch import Tensor

pytestmark = pytest.mark.asan
NAN = float("nan")
POISONS = [NAN, float("inf"), -float("inf"), 3e38]
BOTH = ("loss", "l1")
# Without eps -log(iou) of disjoint boxes is infinite.
LOSSES_AND_EPS = [(loss, 1e-7) for loss in LOSSES] + [
    (loss, 0.0) for loss in LOSSES if loss != "iou_log"
]
ROTATED = [(loss, 0.0) for loss in ROTATED_LOSSES]


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
    """A gradient for an output, and the same with garbage for the rows that do not count."""
    clean = upstream_for(outputs_of(values)["loss"])
    dirty = clean.clone()
    dirty[excluded(values)[2]] = poison
    return clean, dirty


def assert_same_and_zero_where_excluded(
    values: Problem, dirty: dict[str, Tensor], clean: dict[str, Tensor]
) -> None:
    for name, result in clean.items():
        assert torch.equal(dirty[name], result), name
    for name, where in zip(("pred", "target", "weight"), excluded(values), strict=True):
        assert not dirty[name][where].any(), name


@pytest.mark.parametrize(
    "case",
    # By l1 alone the loss is not seen.
    pairwise(loss=LOSSES_AND_EPS, pairing=PAIRINGS[1:], by=[("loss",), BOTH], poison=POISONS)
    + pairwise(loss=[("giou", 0.0)], pairing=PAIRINGS[1:], by=[("l1",)], poison=POISONS)
    + pairwise(loss=ROTATED, pairing=PAIRINGS[1:], by=[()], poison=POISONS),
)
def test_garbage_reaches_no_second_derivative(device: torch.device, case: dict[str, Any]) -> None:
    loss, eps = case["loss"]
    options = {"loss": loss, "reduction": "none", "eps": eps}
    if not case["by"]:
        options["angle_unit"] = "degrees"
    values = with_overlaps(problem(case["pairing"], device, weight=torch.float32, **options))
    clean_upstream, dirty_upstream = poisoned_upstream(values, case["poison"])

    def derivatives(values: Problem, upstream: Tensor) -> dict[str, Tensor]:
        leaves = differentiable(values)
        inputs = tuple(leaves.values())
        results = outputs_of({**values, **leaves}, case["by"])
        outputs = [results[name] for name in case["by"] or ("loss",)]
        upstreams = [upstream] * len(outputs)
        first = torch.autograd.grad(outputs, inputs, upstreams, create_graph=True)
        second = torch.autograd.grad(sum(g.square().sum() for g in first), inputs)
        return dict(zip(leaves, second, strict=True))

    # A GPU's own thread would run nodes, and add gradients, in an order that depends on the past.
    with torch.autograd.set_multithreading_enabled(False):
        clean = derivatives(values, clean_upstream)
        dirty = derivatives(poisoned(values, case["poison"]), dirty_upstream)
    assert_same_and_zero_where_excluded(values, dirty, clean)


@pytest.mark.parametrize("creates_graph", [False, True])
@pytest.mark.parametrize("pairing", ["dense", "sets"])
def test_l1_alone_does_not_see_a_loss_of_nan(
    implementation: Implementation, pairing: str, creates_graph: bool
) -> None:
    """Without eps two points have 0 / 0, and a distance."""
    values = problem(pairing, implementation.device, torch.float64, torch.float64, eps=0.0)
    for name in ("pred", "target"):
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
