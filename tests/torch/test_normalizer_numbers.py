# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""A normalizer that is a number."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from boxloss.torch import BoxLoss, box_loss, box_losses, giou_loss, siou_loss
from problems import PAIRINGS, boxes, problem

FUNCTIONS = [box_loss, box_losses, giou_loss, siou_loss, BoxLoss("ciou")]


def both(device: torch.device, dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, ...]:
    return boxes((5,), device, dtype, seed=1), boxes((5,), device, seed=2)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("number", [3, 0.1, 2**40])
def test_a_number_is_its_tensor(
    device: torch.device, function: Callable[..., Any], dtype: torch.dtype, number: float
) -> None:
    pred, target = both(device, dtype)
    compute = torch.float64 if dtype == torch.float64 else torch.float32
    results = function(pred, target, normalizer=number)
    wanted = function(pred, target, normalizer=torch.tensor(number, dtype=compute, device=device))
    for result, each in (
        zip(results, wanted, strict=True) if function is box_losses else ((results, wanted),)
    ):
        assert torch.equal(result, each)


def test_a_double_target_makes_a_double_of_it(device: torch.device) -> None:
    pred, target = both(device)
    tenth = torch.tensor(0.1, dtype=torch.float64, device=device)
    loss = box_loss(pred, target.double(), normalizer=0.1)
    assert torch.equal(loss, box_loss(pred, target.double(), normalizer=tenth))


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_with_every_pairing(device: torch.device, pairing: str) -> None:
    values = problem(pairing, device)
    seven = torch.tensor(7.0, device=device)
    wanted = giou_loss(**values, normalizer=seven)
    assert torch.equal(giou_loss(**values, normalizer=7), wanted)


def test_nobody_waits_for_the_gpu(device: torch.device) -> None:
    if device.type != "cuda":
        pytest.skip("only a GPU is waited for")
    pred, target = both(device)
    wanted = box_loss(pred, target, normalizer=3)
    torch.cuda.set_sync_debug_mode("error")
    try:
        loss = box_loss(pred, target, normalizer=3)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert torch.equal(loss, wanted)


@pytest.mark.parametrize("number", [True, "3", [3]])
def test_what_is_no_number(device: torch.device, number: Any) -> None:
    kind = type(number).__name__
    for function in (box_loss, box_losses, giou_loss):
        text = f"^{function.__name__}: normalizer is {kind}; it must be a tensor or a number$"
        with pytest.raises(TypeError, match=text):
            function(*both(device), normalizer=number)


def test_a_number_needs_the_mean(device: torch.device) -> None:
    with pytest.raises(ValueError, match=r"^box_loss: normalizer needs reduction 'mean'"):
        box_loss(*both(device), normalizer=3, reduction="sum")


def test_compiled_whole(device: torch.device, fresh_compiler: None) -> None:
    pred, target = both(device)
    pred.requires_grad_()
    function = torch.compile(giou_loss, fullgraph=True, backend="aot_eager")
    for number in (3, 4, 5, 0.5, 0.25):
        loss = function(pred, target, normalizer=number)
        assert torch.equal(loss, giou_loss(pred, target, normalizer=number))


def test_inside_a_transform(device: torch.device) -> None:
    pred, target = both(device)
    results = [
        torch.func.vmap(lambda pred, given=given: giou_loss(pred, target, normalizer=given))(
            pred[None]
        )
        for given in (3, torch.tensor(3.0, device=device))
    ]
    assert torch.equal(*results)
