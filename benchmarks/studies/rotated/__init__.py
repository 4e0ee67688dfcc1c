# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""How fast are the losses of rotated boxes, beside others'?

The mean loss of a million pairs (on the CPU a tenth of that, for losses by areas) and its gradient,
of boxes as a detector learns them. Each is held to float64's; set glibc's variables as the study
box_loss says.

Ultralytics takes part where it is installed. mmrotate's losses are written from the papers'
formulas, with mmrotate's bounds. clipping sorts 24 points, as it is usually written in plain
PyTorch; edges cut sorts nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from boxloss.torch import rotated_box_loss
from torch import Tensor

from ...runner.agreement import DisagreementError
from ...runner.run import Run, Variant, compile_now
from . import exact, peers
from .exact import Loss
from .pairs import draw

CASES = tuple(exact.LOSSES)
BY_AREAS = ("iou", "giou")
QUICK_PAIRS, FEW_PAIRS, PAIRS = 1000, 100_000, 1_000_000
# Relative, of the mean loss; and of each box' gradient, which a few may miss: nearly equal boxes.
LOSS_SHARE, GRADIENT_SHARE, MAY_MISS = 1e-4, 1e-2, 1e-3


@dataclass(frozen=True)
class Case:
    word: str
    pred: Tensor  # a leaf that requires its gradient
    target: Tensor

    @property
    def columns(self) -> dict[str, Any]:
        return {"case": "time", "loss": self.word, "pairs": len(self.pred)}


MeanLoss = Callable[[], Tensor]


def make_case(word: str, count: int, device: torch.device) -> Case:
    pred, target = draw("jitter", count, device)
    return Case(word, pred.requires_grad_(), target)


def load_mean(case: Case, load: Callable[[], Loss], is_compiled: bool = False) -> MeanLoss:
    loss = load()

    def mean() -> Tensor:
        return loss(case.pred, case.target).mean()

    if not is_compiled:
        return mean
    compiled: MeanLoss = torch.compile(mean, dynamic=False)
    compile_now(lambda: torch.autograd.grad(compiled(), case.pred))
    return compiled


# What gives the loss of each pair.
OTHERS: dict[str, dict[str, Callable[[], Loss]]] = {
    "iou": {"clipping": lambda: peers.clipped_iou, "edges cut": lambda: exact.iou},
    "giou": {"clipping": lambda: peers.clipped_giou, "edges cut": lambda: exact.giou},
    "probiou": {"Ultralytics": peers.load_ultralytics},
    "kld": {"mmrotate's formula": lambda: peers.kld},
    "gwd": {"mmrotate's formula": lambda: peers.gwd},
}


def variants(case: Case) -> dict[str, Variant[Case, MeanLoss]]:
    """The first is what ratios are taken to."""
    mean = partial(rotated_box_loss, case.pred, case.target, case.word, reduction="mean")
    found: dict[str, Variant[Case, MeanLoss]] = {"boxloss": Variant(lambda _: mean)}
    for name, load in OTHERS[case.word].items():
        plain = partial(load_mean, load=load)
        found[f"{name}, compiled"] = Variant(partial(plain, is_compiled=True), True)
        found[name] = Variant(plain)
    return found


def check(name: str, loss: MeanLoss, case: Case, expected: tuple[float, Tensor]) -> None:
    """DisagreementError, unless the mean and nearly all gradients are right."""
    value = loss()
    (gradient,) = torch.autograd.grad(value, case.pred)
    mean, right = expected
    if not abs(value.item() - mean) <= LOSS_SHARE * mean:
        raise DisagreementError(f"{name}: {case.word} {value.item():.7g}, in fp64 {mean:.7g}")
    is_near = (gradient - right).abs().amax(-1) <= GRADIENT_SHARE * right.abs().amax(-1)
    missed = 1 - is_near.double().mean().item()
    if missed > MAY_MISS:
        raise DisagreementError(f"{name}: {100 * missed:.2g} % of gradients of {case.word}")


def expected_of(case: Case) -> tuple[float, Tensor]:
    """The mean loss, and its gradient."""
    pred = case.pred.detach().double().requires_grad_()
    mean = exact.LOSSES[case.word](pred, case.target.double()).mean()
    (gradient,) = torch.autograd.grad(mean, pred)
    return mean.item(), gradient


# --- Measuring ---


def measure(run: Run) -> None:
    def count(word: str) -> int:
        many = FEW_PAIRS if word in BY_AREAS and not run.on_gpu else PAIRS
        return QUICK_PAIRS if run.quick else many

    cases = {word: partial(make_case, word, count(word), run.device) for word in CASES}
    for case in run.each(cases):
        losses = run.load(variants(case), case)
        expected = expected_of(case)
        for name, loss in losses.items():
            check(name, loss, case, expected)
        del expected  # large
        run.time_passes(case.columns, losses, case.pred, ("wall", "gpu"))
