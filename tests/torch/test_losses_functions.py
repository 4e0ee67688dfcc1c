# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The functions and modules that are named after their loss, and BoxLoss."""

import copy
import inspect
import pickle
from typing import Any

import boxloss.torch
import pytest
import torch
from boxloss.torch import BoxLoss, box_loss
from formulas import LOSSES
from problems import PAIRINGS, problem, with_overlaps

# Losses with a function or a module of their own. giou_loss, an operator, has tests of its own.
NAMED = [loss for loss in LOSSES if loss != "giou" and f"{loss}_loss" in boxloss.torch.__all__]
MODULES = {
    name.removesuffix("Loss").lower(): name
    for name in boxloss.torch.__all__
    if name.endswith("Loss") and name != "BoxLoss"
}
OPTIONS: dict[str, Any] = {
    "pred_format": "xywh",
    "target_format": "cxcywh",
    "reduction": "sum",
    "eps": 1e-3,
    "eps_mode": "clamp",
}
TOLD = "pred_format='xywh', target_format='cxcywh', reduction='sum', eps=0.001, eps_mode='clamp'"


def function_of(loss: str) -> Any:
    return getattr(boxloss.torch, f"{loss}_loss")


def module_of(loss: str) -> Any:
    return getattr(boxloss.torch, MODULES[loss])


def test_no_two_words_name_one_loss(device: torch.device) -> None:
    tensors = with_overlaps(problem("dense", device))
    values = {float(box_loss(**tensors, loss=loss)) for loss in LOSSES}
    assert len(values) == len(LOSSES)
    assert box_loss(**tensors) == box_loss(**tensors, loss="giou")


@pytest.mark.parametrize("pairing", PAIRINGS)
@pytest.mark.parametrize("loss", NAMED)
def test_a_function_is_box_loss(device: torch.device, loss: str, pairing: str) -> None:
    tensors = with_overlaps(problem(pairing, device, weight=torch.float32))
    function = function_of(loss)
    assert torch.equal(function(**tensors), box_loss(**tensors, loss=loss))
    assert torch.equal(function(**tensors, **OPTIONS), box_loss(**tensors, **OPTIONS, loss=loss))


@pytest.mark.parametrize("loss", NAMED)
def test_a_functions_signature_is_box_losss_without_the_word(loss: str) -> None:
    ours, all_of_them = (inspect.signature(f).parameters for f in (function_of(loss), box_loss))
    assert list(ours) == [name for name in all_of_them if name != "loss"]
    assert all(ours[name] == all_of_them[name] for name in ours)
    assert function_of(loss).__name__ == f"{loss}_loss"
    assert function_of(loss).__doc__


@pytest.mark.parametrize("loss", NAMED)
def test_options_are_told_by_name(device: torch.device, loss: str) -> None:
    values = problem("dense", device, weight=torch.float32)
    with pytest.raises(TypeError):
        function_of(loss)(values["pred"], values["target"], values["weight"])
    with pytest.raises(TypeError):
        box_loss(values["pred"], values["target"], loss, values["weight"])  # type: ignore[misc]
    with pytest.raises(TypeError):
        BoxLoss(loss, "xyxy")  # type: ignore[arg-type, misc]


@pytest.mark.parametrize("pairing", PAIRINGS)
@pytest.mark.parametrize("loss", MODULES)
def test_a_module_is_box_loss(device: torch.device, loss: str, pairing: str) -> None:
    tensors = with_overlaps(problem(pairing, device, weight=torch.float32))
    for module, options in (
        (module_of(loss)(), {}),
        (module_of(loss)(**OPTIONS), OPTIONS),
        (BoxLoss(loss), {}),
        (BoxLoss(loss, **OPTIONS), OPTIONS),
    ):
        assert torch.equal(module(**tensors), box_loss(**tensors, **options, loss=loss))


def test_box_loss_defaults_to_giou(device: torch.device) -> None:
    tensors = problem("dense", device)
    assert torch.equal(BoxLoss()(**tensors), box_loss(**tensors))


@pytest.mark.parametrize("loss", MODULES)
def test_a_module_tells_its_options(loss: str) -> None:
    assert repr(module_of(loss)(**OPTIONS)) == f"{MODULES[loss]}({TOLD})"


@pytest.mark.parametrize("loss", LOSSES)
def test_box_loss_tells_its_loss_too(loss: str) -> None:
    assert repr(BoxLoss(loss, **OPTIONS)) == f"BoxLoss('{loss}', {TOLD})"


@pytest.mark.parametrize("loss", MODULES)
def test_modules_can_be_copied_and_stored(device: torch.device, loss: str) -> None:
    tensors = problem("dense", device)
    for module in (module_of(loss)(**OPTIONS), BoxLoss(loss, **OPTIONS)):
        for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
            assert type(other) is type(module)
            assert repr(other) == repr(module)
            assert torch.equal(other(**tensors), module(**tensors))
        assert not module.state_dict()


def test_an_unknown_word_is_an_error(device: torch.device) -> None:
    tensors = problem("dense", device)
    for unknown in ("IoU", "", "ciou "):
        with pytest.raises(ValueError, match=f"^box_loss: loss is '{unknown}'; allowed: 'iou', "):
            BoxLoss(unknown)(**tensors)  # type: ignore[arg-type]
