# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What do a real detector's losses cost, with its own code and with boxloss in its place?

From a head's output to the gradient that it gets; no network is run. "criterion" is all of a
detector's losses, with YOLO's assigner; "matcher and boxes" is what of them has to do with boxes:
the matcher, GIoU and L1; "box loss" is RetinaNet's "giou" on decoded boxes. original is the
installed project's own code, boxloss is boxloss.torch.compat, and vectorized is that with plain
torch in place of boxloss. torch.compile is vectorized compiled for these very shapes, and "boxloss,
compiled" likewise. The assignment, without which there is no DETR, is part of every time: boxloss'
own, SciPy's elsewhere. GPU time is that of boxloss replayed in a CUDA graph, which has the true
boxes collated beforehand. A second pass counts what a call asks of the GPU. Needs SciPy for DETRs;
transformers (with PIL), torchvision and ultralytics, each for its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from boxloss.torch import collate_ragged
from boxloss.torch.compat.targets import collate_targets

from ...runner.agreement import GRADIENT_SHARE, Truth, compare, near_truth
from ...runner.clocks import Calls
from ...runner.run import Run, UnavailableError, Variant, compile_now
from .cases import MATCHER_AND_BOXES, PARTS, QUICK_SHAPES, SHAPES, Case, DetrCase, make_case
from .criteria import Operators, Step, fused_operators, our_step, own_step, plain_operators

CASES = tuple(PARTS)

# --- Variants ---


def load_boxloss(case: Case) -> Step:
    return our_step(case, fused_operators(case.counts))


def load_captured(case: DetrCase) -> Step:
    """What a CUDA graph can hold: the ground-truth boxes of all images are one list already."""
    collate = {"collate_ragged": collate_ragged, "collate_targets": collate_targets}
    known = {name: first_result_of(each) for name, each in collate.items()}
    step = our_step(case, {**fused_operators(case.counts), **known})
    step()
    return step


def first_result_of(function: Callable[..., Any]) -> Callable[..., Any]:
    found: list[Any] = []

    def known(*arguments: Any, **options: Any) -> Any:
        if not found:
            found.append(function(*arguments, **options))
        return found[0]

    return known


def load_vectorized(case: Case) -> Step:
    return our_step(case, plain_operators(case.counts))


def load_compiled(case: Case, operators: Callable[..., Operators]) -> Step:
    """For these very shapes. What is awaited, or is for the host, stands between the graphs."""
    step = our_step(case, operators(case.counts, compiled=True))
    compiled = torch.compile(lambda: step(), dynamic=False)
    compile_now(partial(_call, case, compiled))
    return compiled


# The first is what ratios are taken to.
VARIANTS: dict[str, Variant[Case, Step]] = {
    "boxloss": Variant(load_boxloss),
    "boxloss, compiled": Variant(partial(load_compiled, operators=fused_operators), True),
    "torch.compile": Variant(partial(load_compiled, operators=plain_operators), True),
    "vectorized": Variant(load_vectorized),
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
        for leaf, gradient in zip(exact.wanted, exact.gradients(loss), strict=True)
    }


def check(name: str, step: Step, case: Case, expected: Mapping[str, Truth]) -> None:
    """DisagreementError, unless the loss and all gradients are right on this case."""
    loss = step()
    for leaf, gradient in zip(case.wanted, case.gradients(loss), strict=True):
        about = f"{leaf} of {case.kind}, {case.part}"
        compare(name, loss.detach(), gradient, expected[leaf], about)


# --- Measuring ---


def measure(run: Run) -> None:
    chosen = chosen_cases(run)
    unavailable = set()
    for case in run.each(chosen):
        try:
            expected = truths(case)
        except UnavailableError as reason:
            unavailable.add(name_of(case.kind, case.part))
            run.skip(name_of(case.kind, case.part), str(reason))
            continue
        steps = run.load(VARIANTS, case)
        for name, step in steps.items():
            check(name, step, case, expected)
        has_graph = "boxloss" in steps and isinstance(case, DetrCase)
        captured = calls_of(case, {"boxloss": load_captured(case)} if has_graph else {})
        run.time(case.columns, calls_of(case, steps), ("stream", "gpu"), captured)
    found = {name: make for name, make in chosen.items() if name not in unavailable}
    for case in run.each(found if run.on_gpu else {}):
        calls = calls_of(case, run.load(VARIANTS, case))
        run.count(case.columns, calls)


def chosen_cases(run: Run) -> dict[str, Callable[[], Case]]:
    shapes = QUICK_SHAPES if run.quick else SHAPES

    def make(kind: str, part: str) -> Case:
        return make_case(kind, part, shapes[kind]).mapped(lambda each: each.to(run.device))

    return {
        name_of(kind, part): partial(make, kind, part)
        for kind, parts in PARTS.items()
        for part in parts
    }


def name_of(kind: str, part: str) -> str:
    return f"{kind}, {part}"


def calls_of(case: Case, steps: Mapping[str, Step]) -> Calls:
    return {name: partial(_call, case, step) for name, step in steps.items()}


def _call(case: Case, step: Step) -> object:
    return case.gradients(step())


# --- Picture ---

KINDS = {
    "detr": "DETR",
    "rtdetr": "RT-DETR",
    "rtdetr-dense": "RT-DETR, crowded",
    "fcos": "FCOS",
    "retinanet": "RetinaNet",
    "yolo": "YOLO11",
    "yolo-dense": "YOLO11, crowded",
}
IN_WORDS = {"criterion": "all losses", MATCHER_AND_BOXES: "matcher and box losses"}


def draw(frame: Any, machine: Mapping[str, str]) -> Any:
    """Each variant's part of the original's time."""
    from ...runner import pictures as drawing

    marked = {
        "vectorized": ("vectorized plain torch", drawing.GREY, "s"),
        "torch.compile": ("vectorized, compiled", drawing.DARK, "D"),
        "boxloss, compiled": ("boxloss, compiled", drawing.PALE_BLUE, "o"),
        "boxloss": ("boxloss", drawing.BLUE, "o"),
    }
    timed = drawing.pick(frame, quantity="stream")
    times = timed.pivot(index=["case", "part"], columns="variant", values="median")
    times = times.loc[list(dict.fromkeys(zip(timed["case"], timed["part"], strict=True)))]
    if "original" not in times:
        return None
    figure, panel = drawing.plt.subplots(figsize=(9, 0.9 + 0.5 * len(times)), layout="constrained")
    places = range(len(times))
    panel.axvline(1, color=drawing.DARK, linewidth=1)
    for name, (label, colour, marker) in marked.items():
        if name in times:
            parts = times[name] / times["original"]
            panel.plot(parts, places, marker, label=label, color=colour, markersize=7)
    labels = [f"{KINDS[kind]}\n{IN_WORDS.get(part, part)}" for kind, part in times.index]
    panel.set_yticks(places, labels)
    panel.invert_yaxis()
    panel.set_xlim(left=0)
    panel.set_xlabel("wall time, as a part of that of the detector's own code", fontsize=8)
    panel.grid(color=drawing.PALE, linewidth=0.6)
    drawing.quiet_axes(panel)
    panel.tick_params(left=False, bottom=False)
    figure.legend(loc="outside lower center", ncols=len(marked), fontsize=8, frameon=False)
    title = f"Losses of one training step, forward + backward: {drawing.where(machine)}"
    drawing.title_figure(figure, title)
    return figure


PICTURES = {"detectors": draw}
