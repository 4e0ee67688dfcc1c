# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The article's table, as docs/results.md has it."""

from __future__ import annotations

from typing import Any

from ..common.bars import number
from ..common.page import measured, paragraphs, picture, spread, table
from .report import times
from .training import COLLATE, PARTS
from .variants import BASELINE

# Milliseconds of a step with one L4 and PyTorch 2.4, as the article gives them: copy, forward of
# the network, loss. It has no backward, and averages GIoU instead of 1 - GIoU.
ARTICLE = {
    "loop": (28.8, 119, 938),
    "concat": (52.2, 119, 25.4),
    "mask": (5.71, 132, 1.84),
    "its own kernel: padded, cast to float32, invalid boxes skipped": (5.69, 132, 0.623),
}
OURS, EAGER, SLOWEST = "boxloss ragged", BASELINE, "loop"


def in_short(report: dict[str, Any]) -> tuple[str, str]:
    def both(name: str) -> tuple[str, str]:
        each = report["variants"][name]
        return number(each["together"]["median"]), number(each["step"]["median"])

    (ours, with_ours), (eager, with_eager) = both(OURS), both(EAGER)
    compiled, triton = (both(name)[0] for name in ("torch.compile", "Triton"))
    return (
        "What does a training step gain?",
        f"The loss, backward and copies included, takes {ours} ms instead of {eager} with eager "
        f"padded code ({compiled} compiled, {triton} in Triton); the step {with_ours} instead of "
        f"{with_eager}, or of {both(SLOWEST)[1]} with a loop over the pictures.",
    )


def section(report: dict[str, Any]) -> str:
    variants, settings = report["variants"], report["settings"]
    network = sum(part["median"] for part in report["network_milliseconds"].values())
    ours = [each for name, each in variants.items() if name.startswith("boxloss")]
    fastest, slowest_of_ours = (
        number(choose(each["together"]["median"] for each in ours)) for choose in (min, max)
    )
    eager, slowest = (number(variants[name]["together"]["median"]) for name in (EAGER, SLOWEST))
    longer = {
        name: number(variants[name]["step"]["median"] / variants[OURS]["step"]["median"])
        for name in (EAGER, SLOWEST)
    }
    rows = [
        (
            _words(name, each["summary"]),
            *(spread(each["milliseconds"][part]) for part in (COLLATE, *PARTS)),
            spread(each["together"]),
            times(each["speed_up"]),
            spread(each["step"]),
        )
        for name, each in variants.items()
    ]
    headings = (
        "ms",
        "laid out",
        "copy of the boxes",
        "loss",
        "backward",
        "together",
        "speed-up",
        "whole step",
    )
    return paragraphs(
        "## A training step of the article",
        f"The loss of {settings['batch']:,} pictures with {settings['slots']} predicted boxes "
        "each, most of them without a true one, takes "
        f"{fastest} to {slowest_of_ours} ms with boxloss, where the usual padded and "
        f"masked formula takes {eager} and a loop over the pictures {slowest}: forward, backward "
        f"and copies. The network takes {number(network)} ms, so the loop makes a step "
        f"{longer[SLOWEST]} times as long as with boxloss, and the padded formula {longer[EAGER]} "
        "times: what is there to be saved depends on what was there before.",
        picture("Milliseconds of the loss and of the whole step", "h200/article.svg"),
        table(headings, rows),
        "Medians, quartiles in brackets, wall time. Each part waits for its own work on the GPU. "
        "All variants compute the loss of the same predictions, one after the other, in an order "
        "that is drawn anew in each step, and all agree in loss and gradient with the formula in "
        "float64. Laid out: the true boxes, by the data loader's workers, which no step waits for. "
        f"Speed-up: of copy, loss and backward, over `{EAGER}`. Whole step: the sum of "
        "these and of the network's forward, backward, update and copy of pictures; nobody waits "
        "in between in real training, where some launches of a loss hide behind the network, and "
        "autograd is started once for both. Layouts and implementations of boxloss are told apart "
        "by [GPU times](cuda.md#speed-and-what-limits-it): here the host decides, not the kernel.",
        "For context, the article's own figures, on another GPU, an L4, with PyTorch 2.4. It has "
        "no backward, and its loss is the mean GIoU:",
        table(
            ("ms", "copy", "network, forward", "loss"),
            [(name, *map(number, figures)) for name, figures in ARTICLE.items()],
        ),
        measured(report, "h200/article.json"),
    )


def _words(name: str, summary: str) -> str:
    """Both, without what both say."""
    said = name.partition(" ")[0] + ", "
    return summary if summary.startswith(name) else f"{name}: {summary.removeprefix(said)}"
