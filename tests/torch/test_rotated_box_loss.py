# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What rotated boxes have of their own; what all losses share is in the other tests' tables."""

import math

import pytest
import torch
from boxloss._options import ROTATED_LOSS_PARAMETERS
from boxloss.torch import rotated_box_loss
from comparison import run
from devices import Implementation
from problems import ROTATED_LOSSES, Problem, boxes, problem, with_overlaps
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

CPU = torch.device("cpu")
each_loss = pytest.mark.parametrize("loss", ROTATED_LOSSES)


# Of boxes of sides 2 and 2, 2 and 4, whose centres are 1 apart. As Gaussians their variances are 1
# and 1, 1 and 4, and for "probiou", with its floor of 1/4, 7/12 and 7/12, 7/12 and 19/12.
SHAPE = math.log(13 / 12 / math.sqrt(7 / 12 * 19 / 12)) / 2
COMMON = 4 * math.sqrt(0.4)
BY_HAND: dict[str, tuple[float, Problem]] = {
    "iou": (0.8, {"eps": 0.0}),
    "giou": (0.8 + 1 / 11, {"eps": 0.0}),
    "probiou": (math.sqrt(1 - math.exp(-12 / 56 - SHAPE)), {"floor": 0.25}),
    "kld": (1 - 1 / (1.5 + math.log1p(math.sqrt(2 - math.log(2)))), {"tau": 1.5}),
    "gwd": (1 - 1 / (2 + math.log1p(8**-0.25)), {"tau": 2.0}),
    "kfiou": (1 - COMMON / (12 - COMMON), {}),
}


@each_loss
def test_words_and_numbers_by_hand(implementation_or_aten: Implementation, loss: str) -> None:
    """All implementations are told by the same lines."""
    of_both = [[0.0, 0, 2, 2, 0], [1.0, 0, 2, 4, 0]]
    both = torch.tensor(of_both, device=implementation_or_aten.device, dtype=torch.float64)
    wanted, numbers = BY_HAND[loss]
    assert rotated_box_loss(*both, loss, **numbers).item() == pytest.approx(wanted, 1e-12)


@each_loss
def test_derivatives_of_both_orders(device: torch.device, loss: str) -> None:
    options = {"loss": loss, "angle_unit": "radians", "reduction": "none"}
    values = with_overlaps(problem("dense", device, *3 * (torch.float64,), grid=(6,), **options))
    leaves = [values.pop(name).requires_grad_() for name in ("pred", "target", "weight")]

    def losses(pred: Tensor, target: Tensor, weight: Tensor) -> Tensor:
        return rotated_box_loss(pred, target, weight=weight, **values)

    assert gradcheck(losses, leaves)
    assert gradgradcheck(losses, leaves)


@each_loss
def test_equal_boxes_and_boxes_without_area(
    implementation_or_aten: Implementation, loss: str
) -> None:
    box = torch.tensor([[3, 4, 5, 2, 0.3], [3, 4, 0, 2, 1], [3, 4, 0, 0, 1], [9, 9, 1, 1, 2]])
    box = box.to(implementation_or_aten.device)
    options = {"loss": loss, "angle_unit": "radians", "reduction": "none"}
    for other in (box, box[[1, 2, 3, 0]]):
        results = run({"pred": box, "target": other, **options})
        assert all(each.isfinite().all() for each in results.values())
    equal = run({"pred": box[[0, 3]], "target": box[[0, 3]], **options})
    assert (equal["loss"] - (2 / 3 if loss == "kfiou" else 0)).abs().max() <= 1e-6
    assert max(equal[name].abs().max() for name in ("pred", "target")) <= 1e-6
    leaf = box.clone().requires_grad_()
    (first,) = torch.autograd.grad(rotated_box_loss(leaf, box, loss), leaf, create_graph=True)
    assert torch.autograd.grad(first.sum(), leaf)[0].isfinite().all()


@each_loss
def test_standard_numbers_are_cores(loss: str) -> None:
    """Their names and values; those of them that are not given."""
    pred, target = (boxes((5,), CPU, box_format="radians", seed=seed) / 64 for seed in (1, 2))
    names = ROTATED_LOSS_PARAMETERS.get(loss, {})
    given = rotated_box_loss(pred, target, loss)
    for each in ({}, *({name: value} for name, value in names.items())):
        assert torch.equal(rotated_box_loss(pred, target, loss, **each), given)
    told = f"{len(names)}: {', '.join(names) or 'none'}$"
    with pytest.raises(ValueError, match=f"'{loss}' has {told}"):
        torch.ops.boxloss.rotated_box_loss(pred, target, loss, parameters=[1.0] * 3)
    with pytest.raises(TypeError, match=r"^rotated_box_loss\(\) got .* 'alpha'; loss '"):
        rotated_box_loss(pred, target, loss, alpha=1.0)
