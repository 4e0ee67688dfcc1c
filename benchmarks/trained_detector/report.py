# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What training with each variant came to: as figures, as a table, as JSON."""

from __future__ import annotations

import statistics
from typing import Any

from rich.table import Table

from ..common.bars import number
from ..common.spread import tenths
from .training import Run
from .variants import VARIANTS

PART_OF_BEST = 0.95
MEASURES = {"ap50": "AP50", "ap": "AP", "mean_iou": "mean IoU"}
STEPS_TOGETHER = 10  # whose losses JSON has the mean of

Figures = dict[str, Any]  # of a variant


def figures(run: Run) -> Figures:
    """Of a finished run, what JSON keeps."""
    return {
        "history": run.history,
        "step_ms": tenths(run.step_ms),
        "loss_ms": tenths(run.loss_ms),
        "steps_together": STEPS_TOGETHER,
        "box_losses": _means(run.box_losses),
        "objectness_losses": _means(run.objectness_losses),
        "before": run.before,
        "after": run.after,
    }


def _means(losses: list[float]) -> list[float]:
    starts = range(0, len(losses), STEPS_TOGETHER)
    return [round(statistics.fmean(losses[at : at + STEPS_TOGETHER]), 5) for at in starts]


def threshold(runs: dict[str, Figures]) -> float:
    """The AP50 that counts as trained: a part of the best that every variant reaches."""
    best: list[float] = [max(each["ap50"] for each in run["history"]) for run in runs.values()]
    return PART_OF_BEST * min(best)


def reached(run: Figures, ap50: float) -> dict[str, float]:
    """The first evaluation with this quality."""
    first: dict[str, float] = next(each for each in run["history"] if each["ap50"] >= ap50)
    return first


def table(runs: dict[str, Figures]) -> Table:
    enough = threshold(runs)
    shown = Table(
        title="Training with each variant of the box loss",
        title_justify="left",
        caption=(
            f"ms: medians; loss: of the boxes, forward and backward, within the step\n"
            f"trained: AP50 of held-out pictures is {enough:.3f}, {PART_OF_BEST:.0%} of the best "
            "that all reach"
        ),
        caption_justify="left",
    )
    shown.add_column("variant", no_wrap=True)
    for heading in ("loss ms", "step ms", "trained, step", "trained, s", "all, s"):
        shown.add_column(heading, justify="right")
    for heading in MEASURES.values():
        shown.add_column(heading, justify="right")
    for name, run in runs.items():
        last, trained = run["history"][-1], reached(run, enough)
        shown.add_row(
            f"{name}: {VARIANTS[name].summary}",
            number(run["loss_ms"]["median"]),
            number(run["step_ms"]["median"]),
            f"{trained['step']:,}",
            number(trained["seconds"]),
            number(last["seconds"]),
            *(f"{last[measure]:.3f}" for measure in MEASURES),
        )
    return shown


def line(name: str, run: Run) -> str:
    last = run.history[-1]
    return (
        f"{name}: step {last['step']:,}, {number(last['seconds'])} s, held-out "
        f"AP50 {last['ap50']:.3f}, AP {last['ap']:.3f}, mean IoU {last['mean_iou']:.3f}"
    )
