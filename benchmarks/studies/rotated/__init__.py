# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Who computes the losses of rotated boxes right, on which boxes, and how fast?

accuracy is the error of each pair's loss in float32, by families of pairs: random pixels, nearly
equal boxes, thin ones, those in [0, 1] and others. The truth is float64's, of the same float32
numbers. An error of 1 or more, or NaN, counts as 1. boxloss' eps and floor are 0 here, since they
change the loss. time is the mean loss of a million pairs (on the CPU a tenth of that, for losses by
areas), and its gradient; set glibc's variables as the study box_loss says.

torchvision (with its own operators, detectron2's kernel) and Ultralytics take part where they are
installed. mmrotate's losses are written from the papers' formulas, with mmrotate's bounds. clipping
sorts 24 points, as it is usually written in plain PyTorch; edges cut sorts nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from boxloss.torch import rotated_box_loss
from torch import Tensor

from ...runner import run as runner
from ...runner.agreement import DisagreementError
from ...runner.results import number
from ...runner.run import Run, compile_now
from . import exact, peers
from .exact import Loss
from .pairs import FAMILIES, JITTER, Pairs, draw, in_degrees, in_radians

CASES = ("accuracy", "time")

# --- Accuracy ---

QUICK_PAIRS, PAIRS, PAIRS_ON_GPU = 1000, 100_000, 1_000_000
ALLOWED = 1e-4  # of boxloss: another formula's error is larger
EXACTLY: dict[str, Any] = {"eps": 0.0}
GAUSSIANS = ("probiou", "kld", "gwd")


@dataclass(frozen=True)
class Variant(runner.Variant[None, Loss]):
    takes_degrees: bool = False


def boxloss(word: str) -> Variant:
    own = EXACTLY | ({"floor": 0.0} if word in GAUSSIANS else {})
    return Variant(lambda _: partial(rotated_box_loss, loss=word, reduction="none", **own))


def variants() -> dict[str, dict[str, Variant]]:
    """By losses. Each gives the loss of each pair."""

    def of(loss: Loss) -> Variant:
        return Variant(lambda _: loss)

    others = {
        "iou": {
            "torchvision": Variant(lambda _: peers.load_torchvision(), takes_degrees=True),
            "clipping": of(peers.clipped_iou),
            "edges cut": of(exact.iou),
        },
        "giou": {"clipping": of(peers.clipped_giou), "edges cut": of(exact.giou)},
        "probiou": {"Ultralytics": Variant(lambda _: peers.load_ultralytics())},
        "kld": {"mmrotate's formula": of(peers.kld)},
        "gwd": {"mmrotate's formula": of(peers.gwd)},
    }
    return {word: {"boxloss": boxloss(word), **each} for word, each in others.items()}


def compare(run: Run, family: str, losses: Mapping[str, Mapping[str, Loss]]) -> None:
    """DisagreementError if boxloss is wrong."""
    count = QUICK_PAIRS if run.quick else PAIRS_ON_GPU if run.on_gpu else PAIRS
    pairs = draw(family, count, run.device)
    known = variants()
    for word, by_name in losses.items():
        truth = exact.LOSSES[word](*(each.double() for each in pairs))
        for name, loss in by_name.items():
            if not known[word][name].takes_degrees:
                error = errors(loss, pairs, truth)
            else:  # of the numbers that it is given
                given = in_degrees(pairs[0]), in_degrees(pairs[1])
                radians = in_radians(given[0].double()), in_radians(given[1].double())
                error = errors(loss, given, exact.LOSSES[word](*radians))
            columns = {"case": "accuracy", "family": family, "loss": word, "pairs": count}
            about = columns | {"variant": name}
            largest = error.max().item()
            run.record(about, "largest error", "", largest)
            run.say(f"{word}, {name}: at most {number(largest)}")
            if name == "boxloss" and not largest <= ALLOWED:
                raise DisagreementError(f"{word}: off by {largest:.2g}; {family}")


@torch.no_grad()
def errors(loss: Loss, pairs: Pairs, truth: Tensor) -> Tensor:
    """Of each pair."""
    return (loss(*pairs) - truth).abs().nan_to_num(nan=1.0).clamp(max=1)


# --- Time ---

TIMED_PAIRS, FEW_PAIRS = 1_000_000, 100_000
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


def time_case(word: str, count: int, device: torch.device) -> Case:
    pred, target = draw(JITTER, count, device)
    return Case(word, pred.requires_grad_(), target)


def load_mean(case: Case, variant: Variant, is_compiled: bool = False) -> MeanLoss:
    loss = variant.load(None)

    def mean() -> Tensor:
        return loss(case.pred, case.target).mean()

    if not is_compiled:
        return mean
    compiled: MeanLoss = torch.compile(mean, dynamic=False)
    compile_now(lambda: torch.autograd.grad(compiled(), case.pred))
    return compiled


def timed(case: Case) -> dict[str, runner.Variant[Case, MeanLoss]]:
    """The first is what ratios are taken to."""
    mean = partial(rotated_box_loss, case.pred, case.target, case.word, reduction="mean")
    found: dict[str, runner.Variant[Case, MeanLoss]] = {"boxloss": runner.Variant(lambda _: mean)}
    for name, variant in variants()[case.word].items():
        if name not in found and not variant.takes_degrees:
            load = partial(load_mean, variant=variant)
            found[f"{name}, compiled"] = runner.Variant(partial(load, is_compiled=True), True)
            found[name] = runner.Variant(load)
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


def time(run: Run, case: Case) -> None:
    losses = run.load(timed(case), case)
    expected = expected_of(case)
    for name, loss in losses.items():
        check(name, loss, case, expected)
    del expected  # large
    run.time_passes(case.columns, losses, case.pred, ("wall", "gpu"))


# --- Measuring ---


def measure(run: Run) -> None:
    losses = {word: run.load(found, None) for word, found in variants().items()}
    for case in run.each(cases(run)):
        if isinstance(case, str):
            compare(run, case, losses)
        else:
            time(run, case)


def cases(run: Run) -> dict[str, Callable[[], str | Case]]:
    """Families of pairs, and what is timed."""

    def count(word: str) -> int:
        if run.quick:
            return QUICK_PAIRS
        return TIMED_PAIRS if run.on_gpu or word in GAUSSIANS else FEW_PAIRS

    families = {f"accuracy, {family}": partial(str, family) for family in FAMILIES}
    timed = {
        f"time, {word}": partial(time_case, word, count(word), run.device) for word in exact.LOSSES
    }
    return {**families, **timed}
