# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Shows what the face detector benchmark measured: as tables, as a picture, as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from ..common.output import pyplot, save_figure
from .training import PARTS, Result
from .variants import BASELINE, VARIANTS


@dataclass(frozen=True)
class Report:
    command: str
    machine: dict[str, str]
    settings: dict[str, Any]
    agreed: dict[str, float]  # each variant's loss on the batch of the agreement check
    results: dict[str, Result]
    skipped: dict[str, str]  # variant: why

    def speed_up(self, name: str) -> float | None:
        """Over the loop, of the loss and its backward together; None where the loop did not run."""
        if BASELINE not in self.results:
            return None
        baseline = self.results[BASELINE].loss_milliseconds
        return baseline / self.results[name].loss_milliseconds


def times_table(report: Report) -> Table:
    table = Table(
        title="Milliseconds per step, medians",
        title_justify="left",
        caption=f"speed-up: loss and loss backward, over {BASELINE}",
        caption_justify="left",
    )
    table.add_column("variant", no_wrap=True)
    for part in PARTS:
        table.add_column(part, justify="right", no_wrap=True)
    table.add_column("speed-up", justify="right")
    for name, result in report.results.items():
        table.add_row(
            name,
            *(_three_digits(result.milliseconds[part]) for part in PARTS),
            _times(report.speed_up(name)),
        )
    return table


def training_table(report: Report) -> Table:
    table = Table(title="Training", title_justify="left")
    for column in ("variant", "loss, first -> last step", "held-out loss", "held-out mean GIoU"):
        table.add_column(column, justify="left" if column == "variant" else "right")
    for name, result in report.results.items():
        table.add_row(
            name,
            f"{result.losses[0]:.4f} -> {result.losses[-1]:.4f}",
            f"{result.held_out_loss:.4f}",
            f"{1 - result.held_out_loss:.4f}",
        )
    return table


def document(report: Report) -> dict[str, Any]:
    return {
        "command": report.command,
        "machine": report.machine,
        "settings": report.settings,
        "agreed_loss": report.agreed,
        "skipped": report.skipped,
        "variants": {
            name: {
                "summary": VARIANTS[name].summary,
                "milliseconds": result.milliseconds,
                "speed_up": report.speed_up(name),
                "training_losses": result.losses,
                "held_out_loss": result.held_out_loss,
                "held_out_mean_giou": 1 - result.held_out_loss,
            }
            for name, result in report.results.items()
        },
    }


def plot(report: Report, path: Path) -> None:
    """The table as bars: a panel for each part, one logarithmic axis for all of them."""
    names = list(report.results)
    times = [report.results[name].milliseconds for name in names]
    smallest = min(min(t[part] for part in PARTS) for t in times)
    largest = max(max(t[part] for part in PARTS) for t in times)
    figure, panels = pyplot().subplots(
        1, len(PARTS), sharey=True, figsize=(13, 1.6 + 0.42 * len(names)), layout="constrained"
    )
    for panel, part in zip(panels, PARTS, strict=True):
        measured = [t[part] for t in times]
        colours = ["#2a78b5" if name.startswith("fused") else "#b4bcc4" for name in names]
        bars = panel.barh(names, measured, color=colours, height=0.68)
        panel.bar_label(bars, [_three_digits(m) for m in measured], padding=3, fontsize=9)
        panel.set_xscale("log")
        panel.set_xlim(smallest / 2, largest * 6)  # room for the figures beside the bars
        panel.set_title(part, fontsize=11, loc="left")
        panel.tick_params(axis="x", labelsize=8, colors="#70777e")
        panel.tick_params(axis="y", length=0)
        panel.minorticks_off()
        panel.spines[["top", "right", "left"]].set_visible(False)
        panel.spines["bottom"].set_color("#b4bcc4")
    panels[0].invert_yaxis()
    panels[0].set_yticks(range(len(names)), [_label(report, name) for name in names])
    settings, machine = report.settings, report.machine
    figure.suptitle(
        f"Milliseconds per step (speed-up of the loss, forward and backward)\n"
        f"{settings['data']}, {settings['batch']} pictures of {settings['slots']} slots, "
        f"{machine.get('gpu', machine['cpu'])}, torch {machine['torch']}",
        fontsize=11,
        x=0.005,
        ha="left",
    )
    save_figure(figure, path)


def _label(report: Report, name: str) -> str:
    speed_up = report.speed_up(name)
    return name if speed_up is None else f"{name}  ({_times(speed_up)})"


def _three_digits(milliseconds: float) -> str:
    decimals = 3 if milliseconds < 1 else 2 if milliseconds < 10 else 1 if milliseconds < 100 else 0
    return f"{milliseconds:,.{decimals}f}"


def _times(ratio: float | None) -> str:
    if ratio is None:
        return "-"
    return f"{ratio:,.1f}x" if ratio < 100 else f"{ratio:,.0f}x"
