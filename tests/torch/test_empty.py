# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Nothing to compute: a mean or sum of 0, which can still be differentiated, and no matches."""

from typing import Any

import boxloss.torch
import pytest
import torch
from boxloss.torch import box_loss
from combinations import pairwise
from comparison import run
from devices import Implementation
from empty import empty_matches, empty_problems
from formula import shape_of_losses
from problems import REDUCTIONS, is_in_sets, only_pairing

pytestmark = pytest.mark.asan


@pytest.mark.parametrize(
    "case",
    pairwise(
        name=empty_problems(torch.device("meta")),
        reduction=(*REDUCTIONS, "normalizer"),
        weighted=(False, True),
        is_rotated=(False, True),
    ),
)
def test_zero_with_zero_gradients(implementation: Implementation, case: dict[str, Any]) -> None:
    reduction, weighted = case["reduction"], case["weighted"]
    values = empty_problems(implementation.device)[case["name"]]
    if case["is_rotated"]:
        values |= {name: values[name][..., [0, 1, 2, 3, 0]] for name in ("pred", "target")}
        values |= {"loss": "giou", "angle_unit": "degrees"}
    loss_shape = shape_of_losses(**only_pairing(values))
    reduced_shape = loss_shape[:1] if is_in_sets(values) else ()
    if reduction == "normalizer":
        values["normalizer"] = torch.tensor(0.0, device=implementation.device)
    else:
        values["reduction"] = reduction
    if weighted:
        values["weight"] = torch.full(loss_shape, 2.0, device=implementation.device)
    by = () if case["is_rotated"] else ("loss", "l1")
    result = run(values, by=by)
    assert "iou" not in result or result["iou"].shape == loss_shape
    for output in by or ("loss",):
        assert result[output].shape == (loss_shape if reduction == "none" else reduced_shape)
    for output in {"loss", "l1", "iou"} & result.keys():
        assert not result[output].any()
    assert torch.equal(run(values)["loss"], result["loss"])
    for gradient in ("pred", "target", *(["weight"] if weighted else [])):
        assert result[gradient].shape == values[gradient].shape
        assert not result[gradient].any()


@pytest.mark.parametrize("name", empty_problems(torch.device("meta")))
def test_twice_differentiable(device: torch.device, name: str) -> None:
    values = empty_problems(device)[name]
    values["normalizer"] = torch.tensor(0.0, device=device)
    values["pred"].requires_grad_()
    loss = sum(output.sum() for output in torch.ops.boxloss.box_losses(**values))
    (gradient,) = torch.autograd.grad(loss, values["pred"], create_graph=True)
    (second,) = torch.autograd.grad(gradient.sum(), values["pred"])
    assert not gradient.any()
    assert not second.any()


@pytest.mark.parametrize("name", empty_matches(torch.device("meta")))
def test_results_of_matches_are_written(implementation_or_aten: Implementation, name: str) -> None:
    function, values, numbers = empty_matches(implementation_or_aten.device)[name]
    is_loss = function.endswith("_loss")
    if is_loss:
        logits = values["logits"].requires_grad_()
    given = getattr(boxloss.torch, function)(**values)
    for result, number in zip(given if len(numbers) > 1 else (given,), numbers, strict=True):
        assert (result == number).all()
    if is_loss:
        assert given.shape == (logits.shape[:1] if logits.dim() == 4 else ())
        (gradient,) = torch.autograd.grad(given.sum(), logits, create_graph=True)
        (second,) = torch.autograd.grad(gradient.sum(), logits)
        for each in (gradient, second):
            assert each.shape == logits.shape
            assert not each.any()


def test_a_normalizer_of_0_where_boxes_count_is_divided_by(device: torch.device) -> None:
    # Of three images the first and the last have no boxes.
    pred = torch.tensor([0.0, 0.0, 1.0, 1.0], device=device).expand(3, 1, 4, 4)
    target = pred + 1
    lengths = torch.tensor([[0], [2], [0]], device=device)
    normalizer = torch.tensor(0.0, device=device)

    def loss(pred: torch.Tensor, target: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        return box_loss(pred, target, lengths=lengths, normalizer=normalizer)

    one_by_one = [loss(*each) for each in zip(pred, target, lengths, strict=True)]
    assert torch.vmap(loss)(pred, target, lengths).tolist() == [0, torch.inf, 0]
    assert [float(each) for each in one_by_one] == [0, torch.inf, 0]
    gradients = torch.vmap(torch.func.grad(loss))(pred, target, lengths)
    assert not gradients[0].any()
    assert not gradients[2].any()
