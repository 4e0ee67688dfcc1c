# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Shows what the face detector benchmark measured: in words, as a table, as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from ..common.bars import number
from ..common.spread import summary
from .training import COLLATE, PARTS, Result
from .variants import BASELINE, Variant, label


@dataclass(frozen=True)
class Report:
    command: str
    machine: dict[str, str]
    settings: dict[str, Any]
    agreed: dict[str, float]  # each variant's loss on the batch of the agreement check
    result: Result
    variants: dict[str, Variant]
    skipped: dict[str, str]  # variant: why

    @property
    def names(self) -> list[str]:
        return list(self.result.variants)

    def speed_up(self, name: str) -> float | None:
        """Over BASELINE, of all that the loss takes; None where BASELINE did not run."""
        if BASELINE not in self.names:
            return None
        return median(self.result.together(BASELINE)) / median(self.result.together(name))


def conditions(machine: dict[str, str], settings: dict[str, Any]) -> Iterator[str]:
    """Lines for people; JSON has them all."""
    packages = ("boxloss", "torch", "torchvision", "python")
    yield ", ".join(machine[key] for key in ("gpu", "cpu") if key in machine)
    yield ", ".join(f"{name} {machine[name]}" for name in packages)
    yield (
        f"{settings['steps']} steps of {settings['batch']} pictures ({settings['data']}), "
        f"{settings['slots']} predicted boxes each, {settings['predictions']}, "
        f"seed {settings['seed']}"
    )


def times_table(report: Report) -> Table:
    result, network = report.result, report.result.network
    parts = ", ".join(f"{part} {number(median(network[part]))}" for part in network)
    table = Table(
        box=SIMPLE_HEAD,  # all of it has room in 80 columns
        pad_edge=False,
        collapse_padding=True,
        title="Milliseconds of a training step, medians",
        title_justify="left",
        caption=(
            f"{COLLATE}: laying out the true boxes, which the data loader does meanwhile\n"
            f"together: copy, loss, backward; speed-up: of that, over {label(BASELINE)}\n"
            f"step: together and the network's {number(median(result.network_together()))} ms, "
            f"the same for all and measured once:\n{parts}"
        ),
        caption_justify="left",
    )
    table.add_column("variant", no_wrap=True)
    for heading in (COLLATE, *PARTS, "together", "speed-up", "step"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name in report.names:
        table.add_row(
            label(name),
            *(number(median(result.variants[name][part])) for part in (COLLATE, *PARTS)),
            number(median(result.together(name))),
            times(report.speed_up(name)),
            number(median(result.step(name))),
        )
    return table


def training_line(report: Report) -> str:
    losses = report.result.losses
    return (
        f"Trained: loss {losses[0]:.3f} -> {losses[-1]:.3f}; the variants' losses differ by "
        f"{report.result.largest_difference:.1g} at most in a step. "
        f"Held-out mean GIoU {report.result.held_out_mean_giou:.3f}."
    )


def document(report: Report) -> dict[str, Any]:
    result = report.result
    return {
        "command": report.command,
        "machine": report.machine,
        "settings": report.settings,
        "skipped": {label(name): why for name, why in report.skipped.items()},
        "network_milliseconds": {part: summary(each) for part, each in result.network.items()},
        "variants": {
            label(name): {
                "summary": report.variants[name].summary,
                "agreed_loss": report.agreed[name],
                "milliseconds": {
                    part: summary(each) for part, each in result.variants[name].items()
                },
                "together": summary(result.together(name)),
                "step": summary(result.step(name)),
                "speed_up": report.speed_up(name),
            }
            for name in report.names
        },
        "training_losses": result.losses,
        "largest_difference": result.largest_difference,
        "held_out_loss": result.held_out_loss,
        "held_out_mean_giou": result.held_out_mean_giou,
    }


def times(ratio: float | None) -> str:
    if ratio is None:
        return "-"
    if ratio < 0.1:
        return f"{ratio:.1g}x"
    digits = 2 if ratio < 1 else 1 if ratio < 100 else 0
    return f"{ratio:,.{digits}f}x"
