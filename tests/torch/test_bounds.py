# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The bounds themselves: they hold for another computation, and small mistakes lie beyond them."""

from collections.abc import Callable

import formulas
import pytest
import torch
from bounds import check, pair_bounds
from comparison import BOX_GRADIENT, LOSS, roundoff
from formulas import FORMULAS, LOSSES, Pair
from kinds import INVERTED, PAIRS, RANDOM_KINDS, WITHOUT_AREA, random_pairs, tensors
from problems import Problem, problem
from running import Dual, coordinates
from torch import Tensor

Formula = Callable[[Pair], Tensor]
CPU = torch.device("cpu")
EPS_MODES = ("add", "clamp")


def all_kinds(dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    pairs = [tensors(table, dtype) for table in (PAIRS, WITHOUT_AREA, INVERTED)]
    pairs += [random_pairs(kind, dtype) for kind in RANDOM_KINDS]
    return torch.cat([p for p, _ in pairs]), torch.cat([t for _, t in pairs])


def evaluate(loss: str, p: Tensor, t: Tensor, eps_mode: str) -> tuple[Tensor, Tensor, Tensor]:
    """The formula on tensors, and autograd's derivatives, (8, pairs)."""
    p, t = p.detach().requires_grad_(), t.detach().requires_grad_()
    eps = torch.tensor(0.25, dtype=p.dtype)
    value = FORMULAS[loss](Pair(p.unbind(-1), t.unbind(-1), eps, eps_mode))
    return value.detach(), *torch.autograd.grad(value.sum(), (p, t))


def bounded(loss: str, p: Tensor, t: Tensor, eps_mode: str) -> Dual:
    eps = torch.tensor(0.25).double()
    return FORMULAS[loss](Pair(*coordinates(p.double(), t.double(), p.dtype), eps, eps_mode))


@pytest.mark.parametrize("eps_mode", EPS_MODES)
@pytest.mark.parametrize("loss", LOSSES)
def test_derivatives_are_autograds(loss: str, eps_mode: str) -> None:
    p, t = all_kinds(torch.float64)
    value, by_p, by_t = evaluate(loss, p, t, eps_mode)
    dual = bounded(loss, p, t, eps_mode)
    assert torch.allclose(dual.primal.value, value, rtol=0, atol=1e-14)
    error = dual.tangent.error.nan_to_num(0.0, 0.0) + 1e-15
    assert torch.all((dual.tangent.value - torch.cat((by_p, by_t), -1).T).abs() <= error)


@pytest.mark.parametrize("eps_mode", EPS_MODES)
@pytest.mark.parametrize("loss", LOSSES)
def test_they_hold_for_torch_in_float32(loss: str, eps_mode: str) -> None:
    p, t = all_kinds(torch.float32)
    value, by_p, by_t = evaluate(loss, p, t, eps_mode)
    dual = bounded(loss, p, t, eps_mode)
    assert torch.all((value.double() - dual.primal.value).abs() <= dual.primal.error)
    difference = torch.cat((by_p, by_t), -1).T.double() - dual.tangent.value
    assert torch.all(difference.abs() <= dual.tangent.error)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("loss", LOSSES)
def test_they_are_some_roundings_of_ordinary_boxes(loss: str, dtype: torch.dtype) -> None:
    values = problem("dense", CPU, dtype, dtype, reduction="none", loss=loss)
    bounds = pair_bounds(values)
    # In double every step counts twice. -log(0) is 16, of the smallest iou here the derivative is
    # 20 by a side of 4.
    u = roundoff(dtype) * (2 if dtype == torch.float64 else 1)
    assert bounds.loss.error.max() < (80 if loss == "iou_log" else LOSS) * u
    for errors in bounds.loss.boxes.values():
        assert errors.max() < (500 if loss == "iou_log" else BOX_GRADIENT / 4) * u


def replaced(loss: str, name: str, change: Callable[[Pair], object]) -> Formula:
    """A loss of pairs that have something changed."""

    def formula(pair: Pair) -> Tensor:
        setattr(pair, name, change(pair))
        return FORMULAS_AS_THEY_ARE[loss](pair)

    return formula


def more(loss: str) -> Formula:
    return lambda pair: 1.00001 * FORMULAS_AS_THEY_ARE[loss](pair)


def ciou_through_alpha(pair: Pair) -> Tensor:
    v = formulas.aspect(pair)
    return formulas.diou(pair) + v * v / (1 - pair.iou + v + pair.eps)


FORMULAS_AS_THEY_ARE = dict(FORMULAS)
MISTAKES: dict[str, tuple[str, Formula]] = {
    **{f"{loss}, 1e-5 more": (loss, more(loss)) for loss in LOSSES},
    "iou is 1e-5 larger": ("siou", replaced("siou", "iou", lambda pair: 1.00001 * pair.iou)),
    "a width is 1e-5 larger": ("eiou", replaced("eiou", "cw", lambda pair: 1.00001 * pair.cw)),
    "ciou has no alpha": ("ciou", lambda pair: formulas.diou(pair) + formulas.aspect(pair)),
    "ciou's alpha has a gradient": ("ciou", ciou_through_alpha),
    "the gate is always open": ("ciou_gated", FORMULAS["ciou"]),
    "siou's centres without eps": (
        "siou",
        replaced("siou", "dx", lambda pair: pair.dx - pair.eps),
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_lie_beyond_them(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    loss, formula = MISTAKES[name]
    monkeypatch.setitem(FORMULAS, loss, formula)
    pred, target = random_pairs("overlapping", torch.float32)
    values: Problem = {"pred": pred, "target": target, "loss": loss, "reduction": "none"}
    with pytest.raises(AssertionError, match="too far from the formula's"):
        check({**values, "eps": 0.25})
