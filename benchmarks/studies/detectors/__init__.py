# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What do a real detector's losses cost, with its own code and with boxloss in its place?

From a head's output to the gradient that it gets; no network is run. "criterion" is all of a
detector's losses, with YOLO's assigner; "box loss" is RetinaNet's "giou" on decoded boxes. original
is the installed project's own code, boxloss is boxloss.torch.compat, and vectorized is that with
plain torch in place of boxloss. torch.compile is vectorized compiled for these very shapes, and
"boxloss, compiled" likewise. The assignment, without which there is no DETR, is part of every time:
boxloss' own, SciPy's elsewhere. A second pass counts what a call asks of the GPU. Needs SciPy for
DETRs; transformers (with PIL), torchvision and ultralytics, each for its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import torch

from ...runner.agreement import GRADIENT_SHARE, Truth, compare, near_truth
from ...runner.clocks import Calls
from ...runner.run import Run, UnavailableError, Variant, compile_now
from .cases import QUICK_SHAPES, SHAPES, Case, make_case
from .criteria import Operators, Step, fused_operators, our_step, own_step, plain_operators

CASES = tuple(SHAPES)

# --- Variants ---


def load_compiled(case: Case, operators: Callable[..., Operators]) -> Step:
    """For these very shapes. What is awaited, or is for the host, stands between the graphs."""
    step = our_step(case, operators(case.counts, compiled=True))
    compiled = torch.compile(lambda: step(), dynamic=False)
    compile_now(partial(_call, case, compiled))
    return compiled


# The first is what ratios are taken to.
VARIANTS: dict[str, Variant[Case, Step]] = {
    "boxloss": Variant(lambda case: our_step(case, fused_operators(case.counts))),
    "boxloss, compiled": Variant(partial(load_compiled, operators=fused_operators), True),
    "torch.compile": Variant(partial(load_compiled, operators=plain_operators), True),
    "vectorized": Variant(lambda case: our_step(case, plain_operators(case.counts))),
    "original": Variant(own_step),
}

# --- Agreement: the sum of losses and all gradients, beside the plain criterion in fp64 ---

# A score of YOLO's assigner has an overlap to the power of 6, and that of its box's best anchor in
# the divisor: it is as wrong as those are.
YOLO_SHARE = 13 * GRADIENT_SHARE


def truths(case: Case) -> dict[str, Truth]:
    """Of each leaf. A pair that another matcher chose shows in its gradients."""
    exact = case.in_double()
    loss = our_step(exact, plain_operators(exact.counts))()
    share = YOLO_SHARE if case.kind.startswith("yolo") else GRADIENT_SHARE
    return {
        leaf: near_truth(loss, gradient, torch.float32, share)
        for leaf, gradient in zip(exact.leaves, exact.gradients(loss), strict=True)
    }


def check(name: str, step: Step, case: Case, expected: Mapping[str, Truth]) -> None:
    """DisagreementError, unless the loss and all gradients are right on this case."""
    loss = step()
    for leaf, gradient in zip(case.leaves, case.gradients(loss), strict=True):
        compare(name, loss.detach(), gradient, expected[leaf], f"{leaf} of {case.kind}")


# --- Measuring ---


def measure(run: Run) -> None:
    shapes = QUICK_SHAPES if run.quick else SHAPES

    def make(kind: str) -> Case:
        return make_case(kind, shapes[kind]).mapped(lambda each: each.to(run.device))

    def agreed(case: Case) -> Calls:
        try:
            expected = truths(case)
        except UnavailableError as reason:
            run.skip(case.kind, str(reason))
            return {}
        steps = run.load(VARIANTS, case)
        for name, step in steps.items():
            check(name, step, case, expected)
        return {name: partial(_call, case, step) for name, step in steps.items()}

    run.time_and_count({kind: partial(make, kind) for kind in shapes}, agreed)


def _call(case: Case, step: Step) -> object:
    return case.gradients(step())
