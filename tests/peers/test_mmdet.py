# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""boxloss.torch.compat.MMDetLoss beside mmdetection's losses.

Theirs always run in double, on the same numbers.
"""

from functools import partial
from inspect import signature
from typing import Any

import pytest
import torch
from boxloss.torch.compat import MMDetLoss
from boxloss.torch.compat import mmdet as own
from comparison import UNIT_ROUNDOFF
from mmdet_files import mmdet_losses
from torch import Tensor

mmdet = mmdet_losses()

# By MMDetLoss' words: the class in both, and its options.
NAMES: dict[str, tuple[str, dict[str, Any]]] = {
    "iou_log": ("IoULoss", {}),
    "iou": ("IoULoss", {"mode": "linear"}),
    "iou_squared": ("IoULoss", {"mode": "square"}),
    "giou": ("GIoULoss", {}),
    "diou": ("DIoULoss", {}),
    "ciou_gated": ("CIoULoss", {}),
    "siou": ("SIoULoss", {"neg_gamma": True}),
}
THEIRS, OURS = (
    {word: partial(getattr(file, name), **options) for word, (name, options) in NAMES.items()}
    for file in (mmdet, own)
)
WEIGHTS = {"no weight": None, "(n)": (), "(n, 4)": (4,)}
N, SHORTEST, FURTHEST, EPS = 60, 8.0, 128.0, 1e-6
# How theirs takes an average factor: as a number, or as a tensor of any dtype.
TENSORS = [torch.tensor(12), torch.tensor(37.5), torch.tensor(12.5).half()]
AVERAGES = [None, 37, 0.25, 0.0, *TENSORS, torch.tensor([12.5], dtype=torch.float64)]


def problem(loss: str, seed: int, dtype: torch.dtype, n: int = N) -> tuple[Tensor, Tensor]:
    """Boxes of at least 8 pixels and ground truth in float32; every sixth pair is far apart."""
    torch.manual_seed(seed)
    first = 64 * torch.rand(n, 2)
    sides = SHORTEST * 1.5 + 32 * torch.rand(n, 2)
    pred = torch.cat((first, first + sides), 1)
    target = pred + 0.15 * (sides * (torch.rand(2, n, 2) - 0.5)).transpose(0, 1).flatten(1)
    if loss != "siou":  # which theirs holds at 2
        target[::6] += FURTHEST
    return pred.to(dtype), target


def run(loss: Any, values: list[Tensor | None], *rest: Any) -> tuple[Tensor, ...]:
    """The loss, and the gradients of its sum by pred and weight."""
    leaves = [None if each is None else each.clone().requires_grad_() for each in values]
    pred, target, weight = leaves
    value = loss(pred, target.detach(), weight, *rest)
    value.sum().backward()
    return value.detach(), pred.grad, None if weight is None else weight.grad


def assert_near(
    results: tuple[Tensor, ...],
    expected: tuple[Tensor, ...],
    dtype: torch.dtype,
    factor: float,
    is_sum: bool,
) -> None:
    # In u of what boxloss computes in; in double theirs rounds, too: twice. -log(iou) is the worst:
    # iou > 0.5 is right to 17 of tests/torch/comparison.py, so its logarithm to 34, and with eps
    # for iou it is 13.9, right to 2 u of that. By sides a gradient is right to 2 * 154 and, of CIoU
    # and SIoU, 250 more: see test_torchvision.py; SIoU's angle has s, right to 3 u of a coordinate.
    # Theirs adds eps to heights, in CIoU and SIoU: 6 e of a loss, 60 e / side of a gradient with
    # e = eps / side, see test_yolo.py; and it holds iou at eps, which is 2 eps of 1 - iou^2.
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    u = UNIT_ROUNDOFF[wide] * (2 if wide == dtype == torch.float64 else 1)
    e = EPS / SHORTEST
    of_loss = (100 + 3 * FURTHEST / SHORTEST) * u + 6 * e + 2 * EPS
    of_gradient = ((560 + 9 * FURTHEST / SHORTEST) * u + 60 * e) / SHORTEST
    value, by_pred, by_weight = results
    wanted, wanted_by_pred, wanted_by_weight = expected
    assert value.dtype == wide
    assert value.shape == wanted.shape
    atol = factor * of_loss * (N if is_sum else 1)
    torch.testing.assert_close(value.double(), wanted, atol=atol, rtol=(N if is_sum else 4) * u)
    assert by_pred.dtype == dtype
    stored = UNIT_ROUNDOFF[dtype]
    torch.testing.assert_close(
        by_pred.double(), wanted_by_pred, atol=factor * of_gradient, rtol=2 * stored
    )
    if by_weight is not None:
        # A weight's gradient is a loss; mean(-1) gives it four times a fourth.
        torch.testing.assert_close(
            by_weight.double(), wanted_by_weight, atol=factor * of_loss, rtol=8 * u
        )


@pytest.mark.parametrize("dtype", UNIT_ROUNDOFF, ids=str)
@pytest.mark.parametrize("shape", WEIGHTS)
@pytest.mark.parametrize("loss", THEIRS)
def test_values_and_gradients(loss: str, shape: str, dtype: torch.dtype) -> None:
    pred, target = problem(loss, 0, dtype)
    last = WEIGHTS[shape]
    weight = None if last is None else torch.rand(N, *last)
    if weight is not None:
        weight[::7] = 0
    doubles = [each if each is None else each.double() for each in (pred, target, weight)]
    ours, theirs = OURS[loss](loss_weight=2.0), THEIRS[loss](loss_weight=2.0)
    for override in ("none", "sum", "mean", None):
        for average in AVERAGES if override != "sum" else [None]:
            if dtype == torch.float16 and type(average) is float and average == 0:
                continue  # gradients are beyond its range
            rest = (average, override)
            results = run(ours, [pred, target, weight], *rest)
            expected = run(theirs, doubles, *rest)
            if isinstance(average, Tensor):
                expected = (expected[0].reshape(results[0].shape), *expected[1:])
            divisor = {"none": 1.0, "sum": 1.0}.get(override, N)
            if average is not None and override != "none":
                divisor = float(average) + torch.finfo(torch.float32).eps
            is_sum = override != "none"
            assert_near(results, expected, dtype, 2.0 / divisor, is_sum)
            assert expected[1].ne(0).any()


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("shape", ["(n)", "(n, 4)"])
@pytest.mark.parametrize("loss", THEIRS)
def test_no_positive_weight(loss: str, shape: str, reduction: str) -> None:
    pred, target = problem(loss, 0, torch.float64)
    values = [pred, target.double(), torch.zeros(N, *WEIGHTS[shape], dtype=torch.float64)]
    value, by_pred, _ = run(MMDetLoss(loss, reduction=reduction), values)
    wanted, wanted_by_pred, _ = run(THEIRS[loss](reduction=reduction), values)
    assert value == wanted == 0
    assert by_pred.eq(0).all()
    assert wanted_by_pred.eq(0).all()
    assert MMDetLoss(loss, reduction="none")(*values).eq(torch.zeros(N)).all()


@pytest.mark.parametrize("loss", THEIRS)
def test_no_boxes(loss: str) -> None:
    pred, target = problem(loss, 0, torch.float64, n=0)
    target = target.double()
    value, by_pred, _ = run(MMDetLoss(loss), [pred, target, None], 3)
    assert value == THEIRS[loss]()(pred, target, avg_factor=3) == 0
    assert by_pred.shape == (0, 4)
    value, by_pred, _ = run(MMDetLoss(loss), [pred, target, pred.new_zeros(0)])
    assert value == THEIRS[loss]()(pred, target, pred.new_zeros(0)) == 0
    assert MMDetLoss(loss)(pred, target) == 0  # theirs is NaN


@pytest.mark.parametrize("loss", THEIRS)
def test_options_of_classes(loss: str) -> None:
    ours, theirs = (
        [(each.name, each.default) for each in signature(of[loss]).parameters.values()]
        for of in (OURS, THEIRS)
    )
    assert ours == theirs
    given = {"eps": 1e-3, "reduction": "sum", "loss_weight": 3.0}
    pred, target = problem(loss, 0, torch.float32)
    wanted = MMDetLoss(loss, **given)(pred, target)
    assert torch.equal(OURS[loss](**given)(pred, target), wanted)


def test_what_classes_do_not_have() -> None:
    assert own.IoULoss(linear=True).loss == "iou"
    with pytest.raises(ValueError, match=r"mode is 'cubic'; it must be one of \('linear'"):
        own.IoULoss(mode="cubic")
    with pytest.raises(ValueError, match="neg_gamma is False; boxloss has SIoULoss with True"):
        own.SIoULoss()


def test_avg_factor_is_not_for_sums() -> None:
    pred, target = problem("giou", 0, torch.float32)
    for module in (MMDetLoss(), mmdet.GIoULoss()):
        with pytest.raises(ValueError, match="avg_factor"):
            module(pred, target, avg_factor=2, reduction_override="sum")
