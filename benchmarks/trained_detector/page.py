# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The section of docs/results.md that says what training came to."""

from __future__ import annotations

from typing import Any

from ..common.bars import number
from ..common.page import measured, paragraphs, picture, spread, table
from .report import MEASURES, PART_OF_BEST, Figures, reached, threshold
from .variants import EAGER, FUSED, SLOWEST, VARIANTS

HEADINGS = ("box loss", "loss, ms", "step, ms", "trained: step", "seconds", "all steps, s")


def section(report: dict[str, Any]) -> str:
    runs = _runs(report)
    enough = threshold(runs)
    headings = [*HEADINGS, *MEASURES.values()]
    return paragraphs(
        "## A detector, trained",
        _answer(runs, enough),
        picture(
            "Held-out pictures with true and predicted boxes, before and after training",
            "h200/trained-pictures.png",
        ),
        picture(
            "Average precision over seconds of training, and training losses over steps",
            "h200/trained.svg",
        ),
        table(headings, [_row(name, run, enough) for name, run in runs.items()]),
        "loss: of the boxes, forward and backward, within the step. Medians, in brackets the 10th "
        f"and 90th percentile. Trained: AP50 is {enough:.3f}, {PART_OF_BEST:.0%} of the best that "
        "all three have.",
        _explanation(runs, report["settings"], enough),
        measured(report, "h200/trained.json"),
    )


def _answer(runs: dict[str, Figures], enough: float) -> str:
    last = runs[FUSED]["history"][-1]
    seconds = _seconds(runs, enough)
    return (
        f"A detector trained with boxloss finds faces in held-out pictures with an average "
        f"precision of {last['ap50']:.2f} at IoU 0.5 ({last['ap']:.2f} over 0.5 to 0.95) and a "
        f"mean IoU of {last['mean_iou']:.2f}. To the same quality, AP50 {enough:.2f}, training "
        f"takes {seconds[FUSED]} s; with the eager padded loss {seconds[EAGER]} s, with a loop "
        f"over the pictures {seconds[SLOWEST]} s."
    )


def in_short(report: dict[str, Any]) -> tuple[str, str]:
    runs = _runs(report)
    enough = threshold(runs)
    seconds = _seconds(runs, enough)
    ours, eager = (runs[name]["history"][-1] for name in (FUSED, EAGER))
    return (
        "Does a detector train as well, and sooner?",
        f"To an AP50 of {enough:.2f} in {seconds[FUSED]} s instead of {seconds[EAGER]} with eager "
        f"padded code, or of {seconds[SLOWEST]} with a loop; at the end AP50 is "
        f"{ours['ap50']:.3f} beside {eager['ap50']:.3f}, AP {ours['ap']:.3f} beside "
        f"{eager['ap']:.3f} (one seed).",
    )


def _runs(report: dict[str, Any]) -> dict[str, Figures]:
    return {name: report["variants"][name] for name in (SLOWEST, EAGER, FUSED)}


def _seconds(runs: dict[str, Figures], enough: float) -> dict[str, str]:
    """To the quality that is enough."""
    return {name: number(reached(run, enough)["seconds"]) for name, run in runs.items()}


def _row(name: str, run: Figures, enough: float) -> list[str]:
    last, trained = run["history"][-1], reached(run, enough)
    return [
        VARIANTS[name].summary,
        spread(run["loss_ms"]),
        spread(run["step_ms"]),
        f"{trained['step']:,}",
        number(trained["seconds"]),
        number(last["seconds"]),
        *(f"{last[measure]:.3f}" for measure in MEASURES),
    ]


def _explanation(runs: dict[str, Figures], settings: dict[str, Any], enough: float) -> str:
    steps = [reached(run, enough)["step"] for run in runs.values()]
    when = (
        f"all get there at step {min(steps):,}"
        if min(steps) == max(steps)
        else f"get there between steps {min(steps):,} and {max(steps):,}"
    )
    share = {
        name: f"{run['loss_ms']['median'] / run['step_ms']['median']:.0%}"
        for name, run in runs.items()
    }
    return (
        f"The three train from the same weights on the same batches of {settings['batch']} "
        f"pictures, and {when}. They differ in what a step costs: the box loss is "
        f"{share[SLOWEST]} of it in the loop, {share[EAGER]} padded, {share[FUSED]} with boxloss. "
        "The network is small and not compiled, so the host sets the pace: of a larger one the "
        f"loss is a smaller part. {_parting(runs)} The {settings['test_pictures']:,} "
        "held-out pictures have people and photographs that training has not; they are judged "
        f"every {settings['steps_between']} steps. The clock stands still meanwhile, and while "
        "batches are laid out; all pictures lie on the GPU. Faces that others cover count, so "
        "nobody reaches 1."
    )


def _parting(runs: dict[str, Figures]) -> str:
    """How the curves of quality differ."""
    curves = {
        name: [tuple(each[measure] for measure in MEASURES) for each in run["history"]]
        for name, run in runs.items()
    }
    gaps = ", ".join(
        f"{words} {max(ends) - min(ends):.3f}"
        for words, ends in zip(
            MEASURES.values(),
            zip(*(curve[-1] for curve in curves.values()), strict=True),
            strict=True,
        )
    )
    same = (
        "The loop and the padded loss have the same curves of quality, to the last digit; boxloss' "
        "gradients differ in theirs, which training amplifies"
        if curves[SLOWEST] == curves[EAGER] != curves[FUSED]
        else "Their gradients differ in the last digits, which training amplifies"
    )
    return (
        f"{same}: at the end the three are apart by {gaps}. What another seed changes was not "
        "measured."
    )
