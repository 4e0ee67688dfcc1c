# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Shows what the face detector benchmark measured: in words, as a table and a picture, as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from ..common.bars import number
from ..common.losses import giou
from ..common.output import BLUE, DARK, GREY, LINES, pyplot, quiet_axes, save_figure
from .training import COLLATE, HELD_OUT_BATCHES, PARTS, Result
from .variants import BASELINE, SLOWEST, VARIANTS, label

SHOWN = 6  # held-out pictures


@dataclass(frozen=True)
class Report:
    command: str
    machine: dict[str, str]
    settings: dict[str, Any]
    agreed: dict[str, float]  # each variant's loss on the batch of the agreement check
    result: Result
    skipped: dict[str, str]  # variant: why

    @property
    def names(self) -> list[str]:
        return list(self.result.variants)

    def speed_up(self, name: str) -> float | None:
        """Over BASELINE, of all that the loss takes; None where BASELINE did not run."""
        if BASELINE not in self.names:
            return None
        return self.result.together(BASELINE) / self.result.together(name)


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
    parts = ", ".join(f"{part} {number(network[part])}" for part in network)
    table = Table(
        box=SIMPLE_HEAD,  # all of it has room in 80 columns
        pad_edge=False,
        collapse_padding=True,
        title="Milliseconds of a training step, medians",
        title_justify="left",
        caption=(
            f"{COLLATE}: laying out the true boxes, which the data loader does meanwhile\n"
            f"together: copy, loss, backward; speed-up: over {label(BASELINE)}'s together\n"
            f"step: together and the network's {number(sum(network.values()))} ms, "
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
            *(number(result.variants[name][part]) for part in (COLLATE, *PARTS)),
            number(result.together(name)),
            _times(report.speed_up(name)),
            number(result.step(name)),
        )
    return table


def training_line(report: Report) -> str:
    losses = report.result.losses
    return (
        f"Trained: loss {losses[0]:.3f} -> {losses[-1]:.3f}; the variants' losses differ by "
        f"{report.result.largest_difference:.1g} at most in a step. "
        f"Held-out mean GIoU {1 - report.result.held_out_loss:.3f}."
    )


def document(report: Report) -> dict[str, Any]:
    result = report.result
    return {
        "command": report.command,
        "machine": report.machine,
        "settings": report.settings,
        "skipped": {label(name): why for name, why in report.skipped.items()},
        "network_milliseconds": result.network,
        "variants": {
            label(name): {
                "summary": VARIANTS[name].summary,
                "agreed_loss": report.agreed[name],
                "milliseconds": result.variants[name],
                "together": result.together(name),
                "speed_up": report.speed_up(name),
            }
            for name in report.names
        },
        "training_losses": result.losses,
        "largest_difference": result.largest_difference,
        "held_out_loss": result.held_out_loss,
        "held_out_mean_giou": 1 - result.held_out_loss,
    }


def plot_times(report: Report, path: Path) -> None:
    """The loss alone, and the whole step, as bars. The slowest runs out of the picture, or the
    others' bars would all be alike."""
    names, result = report.names, report.result
    figure, panels = pyplot().subplots(
        1, 2, sharey=True, figsize=(10, 1.5 + 0.34 * len(names)), layout="constrained"
    )
    colours = [BLUE if name.startswith("boxloss") else GREY for name in names]
    for panel, title, milliseconds in (
        (panels[0], "the loss, forward and backward, ms", [result.together(n) for n in names]),
        (panels[1], "the whole step, network and loss, ms", [result.step(n) for n in names]),
    ):
        shown = [each for n, each in zip(names, milliseconds, strict=True) if n != SLOWEST]
        edge = 1.25 * max(shown or milliseconds)
        bars = panel.barh(names, [min(each, edge) for each in milliseconds], color=colours)
        labels = [number(each) if each < edge else "" for each in milliseconds]
        panel.bar_label(bars, labels, padding=3, fontsize=9)
        for place, each in enumerate(milliseconds):
            if each >= edge:
                panel.text(edge, place, f"{number(each)} → ", ha="right", va="center")
        panel.set_xlim(0, edge)
        panel.set_title(title, fontsize=10, loc="left")
        quiet_axes(panel)
    panels[0].invert_yaxis()
    panels[0].set_yticks(range(len(names)), [_with_speed_up(report, name) for name in names])
    settings, machine = report.settings, report.machine
    figure.suptitle(
        f"A training step with {settings['batch']} pictures of {settings['slots']} predicted boxes:"
        f" {machine.get('gpu', machine['cpu'])}, torch {machine['torch']}",
        fontsize=10,
        x=0.005,
        ha="left",
    )
    save_figure(figure, path)


def plot_pictures(report: Report, path: Path) -> None:
    """The first held-out pictures that have a true box."""
    shown = report.result.shown[:SHOWN]
    figure, panels = pyplot().subplots(
        1, SHOWN, squeeze=False, figsize=(2.2 * SHOWN, 3), layout="constrained"
    )
    for panel in panels[0]:
        panel.set_axis_off()
    for panel, each in zip(panels[0], shown, strict=False):
        panel.imshow(each.picture.numpy(), cmap="gray", vmin=0, vmax=255)
        for boxes, colour, style in (
            (each.boxes, LINES[2], "-"),
            (each.predictions, LINES[1], "--"),
        ):
            for x1, y1, x2, y2 in boxes.tolist():
                corner, width, height = (x1 - 0.5, y1 - 0.5), x2 - x1, y2 - y1
                panel.add_patch(
                    pyplot().Rectangle(
                        corner, width, height, fill=False, edgecolor=colour, linestyle=style, lw=1.8
                    )
                )
        mean = giou(each.predictions, each.boxes.float()).mean().item()
        panel.set_title(f"GIoU {mean:.2f}", fontsize=9)
    steps, mean = report.settings["steps"], 1 - report.result.held_out_loss
    batch = report.settings["batch"]
    figure.suptitle(
        f"After {steps} training steps, held-out pictures: mean GIoU {mean:.2f} "
        f"(of {HELD_OUT_BATCHES * batch} pictures; 1 is perfect)\n"
        "true boxes solid, predicted ones dashed; the toy is told how many faces there are",
        fontsize=10,
        color=DARK,
    )
    save_figure(figure, path)


def _with_speed_up(report: Report, name: str) -> str:
    speed_up = report.speed_up(name)
    return label(name) if speed_up is None else f"{label(name)}  ({_times(speed_up)})"


def _times(ratio: float | None) -> str:
    if ratio is None:
        return "-"
    digits = 2 if ratio < 1 else 1 if ratio < 100 else 0
    return f"{ratio:,.{digits}f}x"
