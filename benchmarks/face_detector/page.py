# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The article's table, as docs/results.md has it."""

from __future__ import annotations

from typing import Any

from ..common.bars import number
from ..common.page import measured, paragraphs, spread, table
from .report import times
from .training import PARTS

# Milliseconds of a step with one L4 and PyTorch 2.4, as the article gives them: copy, forward of
# the network, loss. It has no backward, and averages GIoU instead of 1 - GIoU.
ARTICLE = {
    "loop": (28.8, 119, 938),
    "concat": (52.2, 119, 25.4),
    "mask": (5.71, 132, 1.84),
}
ARTICLES_KERNEL = (5.69, 132, 0.623)  # padded, cast to float32, reduced eagerly
BEST, EAGER, SLOWEST = "boxloss ragged", "mask", "loop"


def section(report: dict[str, Any]) -> str:
    variants, settings = report["variants"], report["settings"]
    network = report["network_milliseconds"]
    best, eager, slowest = (variants[name]["together"]["median"] for name in (BEST, EAGER, SLOWEST))
    with_best, with_eager, with_slowest = (
        variants[name]["step"]["median"] for name in (BEST, EAGER, SLOWEST)
    )
    passes = network["forward"]["median"] + network["update"]["median"]
    rows = [
        (
            name,
            *(spread(each["milliseconds"][part]) for part in PARTS),
            spread(each["together"]),
            times(each["speed_up"]),
            number(each["step"]["median"]),
            " / ".join(number(figure) for figure in ARTICLE[name]) if name in ARTICLE else "",
        )
        for name, each in variants.items()
    ]
    kernel = " / ".join(number(figure) for figure in ARTICLES_KERNEL)
    rows.append(("the article's own kernel", "", "", "", "", "", "", kernel))
    headings = (
        "milliseconds of a step",
        "copy of the boxes",
        "loss",
        "backward",
        "together",
        "speed-up",
        "whole step",
        "article, L4: copy / network / loss",
    )
    return paragraphs(
        "## A training step of the article",
        f"The loss of {settings['batch']:,} pictures with {settings['slots']} predicted boxes "
        f"each, most of them without a true box, takes {number(best)} ms with boxloss, "
        "forward, backward and copies, where the usual padded and masked formula takes "
        f"{number(eager)} and a loop over the pictures {number(slowest)}. The network's own "
        f"forward, backward and update take {number(passes)} ms, so the loop makes a step "
        f"{number(with_slowest / with_best)} times as long as it has to be, and the padded formula "
        f"{number(with_eager / with_best)} times.",
        "![Milliseconds of the loss and of the whole step](../benchmarks/results/h200/article.svg)",
        table(headings, rows),
        "Medians, quartiles in brackets; each part waits for its own work on the GPU, all variants "
        "compute the loss of the same predictions one after the other, in an order that is drawn "
        "anew in each step, and all agree in loss and gradient with the formula in float64. "
        f"Speed-up: of copy, loss and backward, over `{EAGER}`. The article's figures are another "
        "GPU's, beside for context.",
        measured(report, "h200/article.json"),
    )
