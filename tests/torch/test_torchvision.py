# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""torchvision's functions by their names here: defaults, values, error, and in scripts."""

import pytest
import torch
from bounds import pair_bounds
from boxloss.torch import (
    box_loss,
    complete_box_iou_loss,
    distance_box_iou_loss,
    generalized_box_iou_loss,
)
from comparison import assert_within
from problems import REDUCTIONS, boxes
from torch import Tensor

from benchmarks.common.losses import UnavailableError, torchvision_file

FUNCTIONS = {
    "giou": generalized_box_iou_loss,
    "diou": distance_box_iou_loss,
    "ciou": complete_box_iou_loss,
}

pytestmark = [
    pytest.mark.parametrize("loss", FUNCTIONS),
    # torch warns of scripting itself.
    pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning"),
]


def pred_and_target(
    device: torch.device, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, Tensor]:
    """Some overlap, one pair is equal."""
    target = boxes((8,), device, dtype, seed=2)
    pred = torch.cat((boxes((3,), device, dtype, seed=1), 1.125 * target[3:7] - 1, target[7:]))
    return pred, target


def test_defaults(device: torch.device, loss: str) -> None:
    pred, target = pred_and_target(device)
    function = FUNCTIONS[loss]
    assert torch.equal(function(pred, target), box_loss(pred, target, loss, reduction="none"))
    assert function(pred[0], target[0]).shape == ()


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_by_position(device: torch.device, loss: str, reduction: str) -> None:
    pred, target = pred_and_target(device)
    expected = box_loss(pred, target, loss, reduction=reduction, eps=1e-3)
    assert torch.equal(FUNCTIONS[loss](pred, target, reduction, 1e-3), expected)
    in_script = torch.jit.script(FUNCTIONS[loss])
    assert torch.equal(in_script(pred, target, reduction, 1e-3), expected)


def test_gradients_in_scripts(device: torch.device, loss: str) -> None:
    pred, target = pred_and_target(device)
    gradients = []
    for function in (FUNCTIONS[loss], torch.jit.script(FUNCTIONS[loss])):
        leaf = pred.detach().requires_grad_()
        gradients.append(torch.autograd.grad(function(leaf, target, "sum"), leaf)[0])
    assert torch.equal(*gradients)


def test_dtypes(device: torch.device, loss: str) -> None:
    pred, target = pred_and_target(device)
    function = FUNCTIONS[loss]
    assert function(pred.half(), target.half()).dtype == torch.float32
    assert function(pred, target).dtype == torch.float32
    assert function(pred, target.double()).dtype == torch.float64


def test_empty(device: torch.device, loss: str) -> None:
    pred = torch.zeros(0, 4, device=device)
    assert FUNCTIONS[loss](pred, pred).shape == (0,)
    assert FUNCTIONS[loss](pred, pred, "mean") == 0
    assert FUNCTIONS[loss](pred, pred, "sum") == 0


@pytest.mark.parametrize("reduction", ["avg", "", None])
def test_an_unknown_reduction(device: torch.device, loss: str, reduction: str | None) -> None:
    pred, target = pred_and_target(device)
    with pytest.raises(ValueError, match=f"^Invalid Value for arg 'reduction': '{reduction} \n"):
        FUNCTIONS[loss](pred, target, reduction)  # type: ignore[arg-type]


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_beside_torchvision(device: torch.device, loss: str, reduction: str) -> None:
    try:
        theirs = getattr(torchvision_file(f"{loss}_loss"), FUNCTIONS[loss].__name__)
    except UnavailableError as reason:
        pytest.skip(str(reason))
    pred, target = pred_and_target(device, torch.float64)
    results = []
    for function in (FUNCTIONS[loss], theirs):
        p, t = pred.detach().requires_grad_(), target.detach().requires_grad_()
        result = function(p, t, reduction)
        gradients = torch.autograd.grad(result.sum(), (p, t))
        results.append([result.detach(), *gradients])
    # Each is within the bound of the formula, and no sum of eight is further off than each of them.
    bounds = pair_bounds({"pred": pred, "target": target, "loss": loss}).loss
    per_box = torch.cat(tuple(bounds.boxes.values()), -1).max()
    ours, others = results
    for actual, expected, error in zip(
        ours, others, (8 * bounds.error.max(), per_box, per_box), strict=True
    ):
        assert_within(actual, expected.cpu(), 2 * error, f"{loss}, {reduction}")
