# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""python docs/draw_losses.py: draws losses.svg, how each loss sees a box slide, and shrink."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import torch
from boxloss.torch import box_loss
from boxloss.torch.losses import Loss
from torch import Tensor

mpl.use("Agg")
mpl.rcParams["svg.fonttype"] = "none"  # text stays text
mpl.rcParams["svg.hashsalt"] = "boxloss"  # the same lines make the same file
import matplotlib.pyplot as plt  # noqa: E402

TARGET = (-1.0, -0.5, 1.0, 0.5)

# Okabe and Ito's colours. Where losses run together, thin and broken lines lie on thick ones.
STYLES: dict[Loss, tuple[str, Any, float]] = {
    "iou": ("0.78", "-", 7),
    "iou_squared": ("#000000", (0, (5, 2)), 1.5),
    "iou_log": ("#000000", (0, (1, 1.5)), 1.5),
    "giou": ("#d55e00", "-", 1.5),
    "diou": ("#56b4e9", "-", 4.5),
    "ciou": ("#0072b2", (0, (5, 2)), 1.5),
    "ciou_gated": ("#0072b2", (0, (1, 1.5)), 2.5),
    "eiou": ("#009e73", "-", 1.5),
    "siou": ("#cc79a7", (0, (6, 2, 1, 2)), 2),
}


def pieces(*ends: float) -> Tensor:
    """Points between the ends, which are where gradients jump, and NaN at them."""
    margin = 1e-6 * (ends[-1] - ends[0])
    parts = []
    for start, end in itertools.pairwise(ends):
        parts.append(torch.linspace(start + margin, end - margin, 61, dtype=torch.float64))
        parts.append(torch.full((1,), torch.nan, dtype=torch.float64))
    return torch.cat(parts)


def slid(x: Tensor) -> Tensor:
    """Unit boxes whose centres lie x beside the target's."""
    half = torch.full_like(x, 0.5)
    return torch.stack([x - half, -half, x + half, half], -1)


def narrowed(width: Tensor) -> Tensor:
    """Boxes on the target's centre, as high as it and `width` times as wide."""
    half = torch.full_like(width, 0.5)
    return torch.stack([-width, -half, width, half], -1)


def curve(loss: Loss, boxes: Callable[[Tensor], Tensor], at: Tensor) -> tuple[Tensor, Tensor]:
    """The losses, and how fast they change."""
    at = at.clone().requires_grad_()
    pred = boxes(at)
    target = torch.tensor(TARGET, dtype=at.dtype).expand_as(pred)
    losses = box_loss(pred, target, loss, reduction="none")
    (slopes,) = torch.autograd.grad(losses.sum(), at)
    return losses.detach(), slopes.abs()


def main() -> None:
    columns = [
        (slid, pieces(-4, -1.5, -0.5, 0.5, 1.5, 4), "centre of a 1 × 1 box, from the target's"),
        (narrowed, pieces(3, 1, 0), "its width, in widths of the target"),
    ]
    figure, axes = plt.subplots(
        2, 2, figsize=(10, 8), sharex="col", sharey="row", layout="constrained"
    )
    for loss, (color, style, width) in STYLES.items():
        for column, (boxes, at, _) in enumerate(columns):
            for row, values in enumerate(curve(loss, boxes, at)):
                axes[row, column].plot(
                    at,
                    values,
                    color=color,
                    linestyle=style,
                    linewidth=width,
                    label=loss,
                    solid_capstyle="butt",
                    zorder=3 - width / 10,
                )
    for column, (_, at, label) in enumerate(columns):
        axes[1, column].set(xlabel=label, xlim=(at[0].round().item(), at[-2].round().item()))
    axes[0, 0].set(ylabel="loss", ylim=(0, 2.5))
    axes[1, 0].set(ylabel="size of its gradient along the x axis", ylim=(0, 2.5))
    axes[0, 0].set_title("A box slides over a target of 2 × 1")
    axes[0, 1].set_title("A box narrows to nothing on the target's centre")
    for panel in axes.flat:
        panel.grid(color="0.9")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, handlelength=3.5)
    figure.savefig(Path(__file__).with_name("losses.svg"), metadata={"Date": None})


if __name__ == "__main__":
    main()
