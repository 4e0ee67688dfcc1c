# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""GIoULoss, and torchvision's function by its name here."""

import copy
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from boxloss.torch import BoxLoss, CIoULoss, GIoULoss, generalized_box_iou_loss, giou_loss
from boxloss.torch.compat import MMDetLoss
from comparison import LOSS, assert_within, roundoff
from formula import box_loss as formula_loss
from problems import PAIRINGS, REDUCTIONS, boxes, problem

OPTIONS = {
    "pred_format": "xywh",
    "target_format": "cxcywh",
    "reduction": "sum",
    "eps": 1e-3,
    "eps_mode": "clamp",
}


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_the_module_is_the_function(device: torch.device, pairing: str) -> None:
    tensors = problem(pairing, device, weight=torch.float32)
    assert torch.equal(GIoULoss(**OPTIONS)(**tensors), giou_loss(**tensors, **OPTIONS))


def test_the_modules_defaults_are_the_functions(device: torch.device) -> None:
    tensors = problem("dense", device, normalizer=torch.tensor(3.0, device=device))
    assert torch.equal(GIoULoss()(**tensors), giou_loss(**tensors))


def test_a_module_tells_its_options() -> None:
    assert repr(GIoULoss(**OPTIONS)) == (
        "GIoULoss(pred_format='xywh', target_format='cxcywh', reduction='sum', eps=0.001, "
        "eps_mode='clamp')"
    )


@pytest.mark.parametrize("make", [GIoULoss, BoxLoss, partial(BoxLoss, "siou"), CIoULoss])
@pytest.mark.parametrize(
    ("option", "text"),
    [
        ({"reduction": "typo"}, "reduction is 'typo'; allowed: 'none', 'sum', 'mean'$"),
        ({"pred_format": "yxyx"}, "pred_format is 'yxyx'; allowed: 'xyxy', 'xywh', 'cxcywh'$"),
        ({"target_format": ""}, "target_format is ''; allowed: 'xyxy', 'xywh', 'cxcywh'$"),
        ({"eps": -1}, "eps is -1; it must be finite and not negative"),
        ({"eps_mode": "max"}, "eps_mode is 'max'; allowed: 'add', 'clamp'$"),
    ],
)
def test_a_bad_option_is_an_error_when_the_module_is_made(
    make: Callable[..., BoxLoss], option: dict[str, Any], text: str
) -> None:
    with pytest.raises(ValueError, match=f"^box_loss: {text}"):
        make(**option)


def test_an_unknown_loss_is_an_error_when_the_module_is_made() -> None:
    with pytest.raises(ValueError, match=r"^box_loss: loss is 'typo'; allowed: 'iou', .*'siou'"):
        BoxLoss("typo")
    with pytest.raises(ValueError, match=r"^box_loss: eps is nan; it must be finite"):
        MMDetLoss(eps=float("nan"))


def test_a_module_can_be_copied_and_stored() -> None:
    module = GIoULoss(**OPTIONS)
    assert repr(copy.deepcopy(module)) == repr(module)
    assert repr(pickle.loads(pickle.dumps(module))) == repr(module)
    assert not module.state_dict()


def test_torchvisions_default_reduction_is_none(device: torch.device) -> None:
    pred, target = boxes((5,), device, seed=1), boxes((5,), device, seed=2)
    assert generalized_box_iou_loss(pred, target).shape == (5,)
    assert generalized_box_iou_loss(pred[0], target[0]).shape == ()


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_values_of_torchvisions_function(device: torch.device, reduction: str) -> None:
    pred, target = boxes((5,), device, seed=1), boxes((5,), device, seed=2)
    actual = generalized_box_iou_loss(pred, target, reduction, 1e-3)
    exact = (pred.cpu().double(), target.cpu().double())
    expected = formula_loss(*exact, reduction=reduction, eps=1e-3, compute=torch.float32)
    error = LOSS * roundoff(torch.float32) * (5 if reduction == "sum" else 1) + 2e-6 * expected
    assert_within(actual, expected, error, "loss")


@pytest.mark.parametrize("reduction", ["avg", "", None])
def test_torchvisions_error(device: torch.device, reduction: str | None) -> None:
    pred = boxes((5,), device)
    with pytest.raises(ValueError, match=f"^Invalid Value for arg 'reduction': '{reduction} \n"):
        generalized_box_iou_loss(pred, pred, reduction)
