# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The dispatcher's rules, by torch's own checks: schema, autograd, fake tensors, traced graphs."""

from typing import Any

import pytest
import torch
from boxloss.torch import giou_loss
from problems import PAIRINGS, Problem, problem

OPERATORS = torch.ops.boxloss
TENSORS = ("pred", "target", "weight", "normalizer", "lengths", "mask", "offsets")
OPTIONS = {
    "zero_padded": False,
    "pred_format": "xyxy",
    "target_format": "xyxy",
    "reduction": "mean",
    "eps": 1e-7,
    "eps_mode": "add",
}


def positional(values: Problem) -> tuple[Any, ...]:
    """What the private operators want, which have no defaults."""
    pred, target, *tensors = (values.get(name) for name in TENSORS)
    return (
        pred,
        target,
        "giou",
        *tensors,
        *(values.get(name, default) for name, default in OPTIONS.items()),
    )


def varied_problems(device: torch.device) -> dict[str, Problem]:
    half, double = torch.float16, torch.float64
    number = torch.tensor(3.0, device=device)
    wide = torch.ones(3, 5, 9, device=device)
    return {
        **{pairing: problem(pairing, device) for pairing in PAIRINGS},
        **{
            f"{pairing}, none, weight": problem(
                pairing, device, weight=torch.float32, reduction="none"
            )
            for pairing in PAIRINGS
        },
        "half and uint8": problem("dense", device, half, torch.uint8, half, reduction="sum"),
        "double": problem("mask", device, double, double, double, pred_format="cxcywh"),
        "normalizer": problem("offsets", device, normalizer=number, eps_mode="clamp"),
        "wider rows": {**problem("dense", device), "pred": wide[..., :4]},
    }


NAMES = list(varied_problems(torch.device("cpu")))


@pytest.mark.parametrize("operator", ["box_loss", "giou_loss"])
@pytest.mark.parametrize("name", NAMES)
def test_the_public_operators(device: torch.device, name: str, operator: str) -> None:
    values = varied_problems(device)[name]
    pred, target = values.pop("pred"), values.pop("target")
    function = getattr(OPERATORS, operator).default
    torch.library.opcheck(function, (pred, target), values)
    pred = pred.detach().requires_grad_()
    torch.library.opcheck(function, (pred, target), values)


@pytest.mark.parametrize("name", NAMES)
def test_the_private_operators(device: torch.device, name: str) -> None:
    values = varied_problems(device)[name]
    arguments = positional(values)
    torch.library.opcheck(OPERATORS._box_loss_forward.default, arguments)
    loss, scale = OPERATORS._box_loss_forward(*arguments)
    is_floating = values["target"].is_floating_point()
    for wanted in ([True, False, False], [True, is_floating, "weight" in values]):
        gradient = (torch.ones_like(loss), scale, *arguments, wanted)
        torch.library.opcheck(OPERATORS._box_loss_backward.default, gradient)
        results = OPERATORS._box_loss_backward(*gradient)
        inputs = (values["pred"], values["target"], values.get("weight"))
        for result, like, is_wanted in zip(results, inputs, wanted, strict=True):
            assert result.shape == (like.shape if is_wanted else (0,))


@pytest.mark.parametrize("name", NAMES)
def test_meta_tensors_have_the_shapes_and_dtypes_of_real_ones(
    device: torch.device, name: str
) -> None:
    values = varied_problems(device)[name]
    on_meta = {n: v.to("meta") if isinstance(v, torch.Tensor) else v for n, v in values.items()}
    real, meta = giou_loss(**values), giou_loss(**on_meta)
    assert meta.is_meta
    assert (real.shape, real.dtype) == (meta.shape, meta.dtype)


def test_fake_tensors_keep_the_device(device: torch.device) -> None:
    values = problem("offsets", device, torch.bfloat16, torch.uint8, reduction="none")
    with torch._subclasses.FakeTensorMode() as mode:
        fake = {
            n: mode.from_tensor(v) if isinstance(v, torch.Tensor) else v for n, v in values.items()
        }
        fake["pred"].requires_grad_()
        loss = giou_loss(**fake)
        loss.sum().backward()
    assert loss.device == values["pred"].device
    assert loss.shape == (12,)
    assert loss.dtype == torch.float32
    assert fake["pred"].grad.dtype == torch.bfloat16


def test_the_private_backward_cannot_be_differentiated_in_silence(device: torch.device) -> None:
    values = problem("dense", device)
    arguments = positional(values)
    loss, scale = OPERATORS._box_loss_forward(*arguments)
    values["pred"].requires_grad_()
    gradient, _, _ = OPERATORS._box_loss_backward(loss, scale, *arguments, [True, False, False])
    with pytest.raises(RuntimeError, match="boxloss::_box_loss_backward"):
        gradient.sum().backward()
