# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""How much of a box loss' gradient is left under mixed precision?

Under AMP a head gives float16 or bfloat16 boxes. Pairs of a prediction, rounded to that dtype, and
a true box in float32 go to each project's own loss under autocast, and, as the same numbers in
float64, once more to the same loss. An error is |result - exact| / |exact|: of all pairs of a size
together, of the median pair. The gradient has the prediction's dtype: rounding the exact one to it
is the least error that any loss can have. cxcywh is divided by the picture's size, as in DETR;
other boxes are xyxy in pixels, Ultralytics' in cells of its finest grid. Nothing is timed. Needs
transformers, torchvision, Ultralytics and mmdetection's files for their losses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from boxloss.torch import ciou_loss, giou_loss
from torch import Tensor

from ..common.losses import (
    isolate_ultralytics,
    torchvision_file,
    torchvision_giou,
    transformers_loss,
)
from ..common.mmdet import mmdet_losses
from ..runner.run import Run, UnavailableError

PairLoss = Callable[[Tensor, Tensor], Tensor]  # (n, 4) predictions and true boxes -> (n) losses

DTYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16}  # what autocast knows
SIDES = (4, 8, 16, 32, 64, 128, 256, 512)  # pixels
LARGE = 400  # pixels; float16 ends at 65504, the area of 256 x 256
PAIRS, QUICK_PAIRS = 4096, 128
PICTURE = 1024  # pixels
JITTER = 0.1  # of the side
STRIDE = 8  # pixels in a cell, Ultralytics' unit, on its finest grid
CHUNK = 128  # of pairs, of which transformers' N x N stays small

# --- Variants: losses as detectors call them ---


@dataclass(frozen=True)
class Variant:
    format: str  # "cxcywh", divided by the picture's size, or "xyxy" in pixels
    load: Callable[[], PairLoss]  # raises UnavailableError


def _boxloss(loss: Callable[..., Tensor], **options: str | float) -> PairLoss:
    return partial(loss, reduction="none", **options)


def _load_transformers() -> PairLoss:
    module = transformers_loss("loss_for_object_detection")

    def loss(pred: Tensor, target: Tensor) -> Tensor:
        corners = (module.center_to_corners_format(each) for each in (pred, target))
        chunks = zip(*(each.split(CHUNK) for each in corners), strict=True)
        return torch.cat([1 - torch.diag(module.generalized_box_iou(*chunk)) for chunk in chunks])

    return loss


def _load_torchvision_ciou() -> PairLoss:
    return torchvision_file("ciou_loss").complete_box_iou_loss  # type: ignore[no-any-return]


def _load_ultralytics(pixels: int) -> PairLoss:
    """`pixels` in the unit that boxes have."""
    isolate_ultralytics()
    try:
        from ultralytics.utils.metrics import bbox_iou
    except ImportError as error:
        raise UnavailableError(f"Ultralytics is not installed ({error})") from error

    def loss(pred: Tensor, target: Tensor) -> Tensor:
        # By a power of two: exact in any of the dtypes.
        iou = bbox_iou(pred / pixels, target / pixels, xywh=False, CIoU=True)
        return 1 - iou.squeeze(-1)

    return loss


def _load_mmdet(name: str) -> PairLoss:
    return mmdet_losses().__dict__[name](reduction="none")  # type: ignore[no-any-return]


ROUNDING = "rounding the exact gradient"
ROUNDED = "boxloss GIoU, cxcywh"  # its exact gradient, rounded, has the least error possible
BOXLOSS = {
    # With DETR's eps.
    ROUNDED: Variant(
        "cxcywh",
        lambda: _boxloss(giou_loss, eps=0.0, pred_format="cxcywh", target_format="cxcywh"),
    ),
    "boxloss GIoU": Variant("xyxy", lambda: _boxloss(giou_loss)),
    "boxloss CIoU": Variant("xyxy", lambda: _boxloss(ciou_loss)),
}
ORIGINALS = {
    "transformers GIoU, cxcywh": Variant("cxcywh", _load_transformers),
    "torchvision GIoU": Variant("xyxy", torchvision_giou),
    "torchvision CIoU": Variant("xyxy", _load_torchvision_ciou),
    "Ultralytics CIoU": Variant("xyxy", partial(_load_ultralytics, STRIDE)),
    "mmdetection GIoU": Variant("xyxy", partial(_load_mmdet, "GIoULoss")),
    "mmdetection CIoU": Variant("xyxy", partial(_load_mmdet, "CIoULoss")),
}
VARIANTS = {**BOXLOSS, **ORIGINALS}
# Tried on large boxes only: on small ones its errors are the same as in cells.
IN_PIXELS = {"Ultralytics CIoU, in pixels": Variant("xyxy", partial(_load_ultralytics, 1))}

# --- Pairs of boxes with predictions in half precision ---


@dataclass(frozen=True)
class Pairs:
    pred: Tensor  # (n, 4), float16 or bfloat16
    target: Tensor  # (n, 4), float32
    scale: float  # of losses, as a GradScaler's: gradients are about 1, which half dtypes hold best


def make_pairs(
    side: int, box_format: str, dtype: torch.dtype, count: int, device: torch.device
) -> Pairs:
    """Drawn on the CPU: the same on every device."""
    generator = torch.Generator().manual_seed(0)
    found: list[tuple[Tensor, Tensor]] = []
    while sum(len(pred) for pred, _ in found) < count:
        truth = _true_boxes(side, count, generator)
        jitter = JITTER * side * torch.randn(truth.shape, generator=generator, dtype=truth.dtype)
        pred = from_corners(truth + jitter, box_format).to(dtype)
        rounded = corners(pred.double(), box_format)
        # Drawn again: boxes that rounding nearly closes, and common edges, where losses have kinks.
        usable = _sides(rounded) >= _sides(truth) / 2
        usable = usable.all(dim=1) & (rounded != truth).all(dim=1)
        found.append((pred[usable], from_corners(truth, box_format).float()[usable]))
    pred, target = (torch.cat(each)[:count].to(device) for each in zip(*found, strict=True))
    return Pairs(pred, target, side / unit(box_format))


def _true_boxes(side: int, count: int, generator: torch.Generator) -> Tensor:
    """Sides are 3/4 to 5/4 of `side`. Corners are odd eighths of a pixel: float32 holds them
    exactly in both formats, and few edges of half predictions are equal to them."""
    first, sides = torch.rand(2, count, 2, generator=generator, dtype=torch.float64)
    sides = (side * (3 + 2 * sides)).round() / 4
    first = (4 * first * (PICTURE - sides)).floor() / 4 + 1 / 8
    return torch.cat([first, first + sides], dim=1)


def unit(box_format: str) -> int:
    """Pixels in the format's unit."""
    return PICTURE if box_format == "cxcywh" else 1


def from_corners(boxes: Tensor, box_format: str) -> Tensor:
    if box_format == "xyxy":
        return boxes
    centres = (boxes[:, :2] + boxes[:, 2:]) / 2
    return torch.cat([centres, _sides(boxes)], dim=1) / PICTURE


def corners(boxes: Tensor, box_format: str) -> Tensor:
    """In pixels."""
    if box_format == "xyxy":
        return boxes
    centres, sides = (boxes * PICTURE).chunk(2, dim=1)
    return torch.cat([centres - sides / 2, centres + sides / 2], dim=1)


def _sides(boxes: Tensor) -> Tensor:
    return boxes[:, 2:] - boxes[:, :2]


# --- Errors ---

# Errors are of the gradient but for `LOSS`.
ALL_PAIRS, MEDIAN_PAIR, LOSS = "all pairs", "median pair", "loss"
MEAN_LOSS, EXACT_MEAN_LOSS = "mean loss", "exact mean"
Result = tuple[Tensor, Tensor]  # losses and gradient, in float64


def errors(loss: PairLoss, pairs: Pairs) -> dict[str, float]:
    """By quantity; NaN or infinite where a result is."""
    return _errors(evaluate(loss, pairs.pred, pairs.target, pairs.scale), exact(loss, pairs))


def rounding_errors(loss: PairLoss, pairs: Pairs) -> dict[str, float]:
    """Of the exact gradient, rounded to the prediction's dtype."""
    losses, gradient = exact(loss, pairs)
    return _errors((losses, gradient.to(pairs.pred.dtype).double()), (losses, gradient))


def exact(loss: PairLoss, pairs: Pairs) -> Result:
    return evaluate(loss, pairs.pred.double(), pairs.target.double(), pairs.scale)


def evaluate(loss: PairLoss, pred: Tensor, target: Tensor, scale: float) -> Result:
    """The losses, and the gradient by pred of their sum times `scale`; of half predictions under
    autocast."""
    leaf = pred.detach().requires_grad_()
    half = pred.dtype in DTYPES.values()
    with torch.autocast(pred.device.type, pred.dtype, enabled=half):
        losses = loss(leaf, target)
    (gradient,) = torch.autograd.grad(losses, leaf, torch.full_like(losses, scale))
    return losses.detach().double(), gradient.double()


def _errors(result: Result, expected: Result) -> dict[str, float]:
    (losses, gradient), (exact_losses, exact_gradient) = result, expected
    difference = gradient - exact_gradient
    found = {
        ALL_PAIRS: difference.norm() / exact_gradient.norm(),
        MEDIAN_PAIR: (difference.norm(dim=1) / exact_gradient.norm(dim=1)).median(),
        LOSS: (losses - exact_losses).norm() / exact_losses.norm(),
        MEAN_LOSS: losses.mean(),
        EXACT_MEAN_LOSS: exact_losses.mean(),
    }
    return {quantity: each.item() for quantity, each in found.items()}


# --- Measuring ---


def measure(run: Run) -> None:
    losses: dict[str, PairLoss] = {}
    for name, variant in {**VARIANTS, **IN_PIXELS}.items():
        try:
            losses[name] = variant.load()
        except UnavailableError as reason:
            run.skip(name, str(reason))
    for dtype in DTYPES:
        for side in SIDES:
            _measure(run, dtype, side, [name for name in VARIANTS if name in losses], losses)
    _measure(run, "float16", LARGE, list(losses), losses)


def _measure(
    run: Run, dtype: str, side: int, names: list[str], losses: Mapping[str, PairLoss]
) -> None:
    count = QUICK_PAIRS if run.quick else PAIRS
    columns = {"dtype": dtype, "side": side}

    def pairs(name: str) -> Pairs:
        box_format = {**VARIANTS, **IN_PIXELS}[name].format
        return make_pairs(side, box_format, DTYPES[dtype], count, run.device)

    found = {name: errors(losses[name], pairs(name)) for name in names}
    found[ROUNDING] = rounding_errors(losses[ROUNDED], pairs(ROUNDED))
    for name, each in found.items():
        for quantity, error in each.items():
            run.record(columns | {"variant": name}, quantity, "", error)
    run.show(columns)


# --- The picture ---

PLOTTED = {ALL_PAIRS: "all pairs together", MEDIAN_PAIR: "median pair"}
PERCENTS = (0.01, 0.1, 1, 10, 100)
# Lines that may lie on each other, each in the others' gaps.
DASHES = {
    name: {"linestyle": (start, (4, 8)), "linewidth": 2.5}
    for name, start in (("torchvision GIoU", 0), ("torchvision CIoU", 4), ("mmdetection GIoU", 8))
}


def draw(frame: Any, machine: Mapping[str, str]) -> Any:
    """A column for each dtype, a line for each original; boxloss' is that of its worst variant."""
    from ..runner.pictures import DARK, plt, title_figure

    figure, panels = plt.subplots(
        len(PLOTTED), len(DTYPES), sharex=True, sharey=True, figsize=(10, 8), layout="constrained"
    )
    frame = frame[frame["side"].isin(SIDES)]
    for line, (quantity, title) in zip(panels, PLOTTED.items(), strict=True):
        for panel, dtype in zip(line, DTYPES, strict=True):
            _draw_lines(panel, frame, dtype, quantity)
            panel.set_title(f"{dtype}, {title}", fontsize=10, loc="left")
        line[0].set_ylabel("relative error of the gradient, %", fontsize=9, color=DARK)
    for panel in panels[-1]:
        panel.set_xlabel("side of the box, pixels", fontsize=9, color=DARK)
    figure.legend(
        *panels[0, 0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=4,
        fontsize=8,
        handlelength=4,
        frameon=False,
    )
    words = f"What half precision leaves of a loss' gradient, torch {machine['torch']}"
    title_figure(figure, words, fontsize=11)
    return figure


def _draw_lines(panel: Any, frame: Any, dtype: str, quantity: str) -> None:
    from ..runner.pictures import BLUE, LINES, PALE, pick, quiet_axes

    chosen = pick(frame, dtype=dtype, quantity=quantity)
    percents = 100 * chosen.pivot(index="side", columns="variant", values="median")
    ours = percents[list(BOXLOSS)].max(axis=1)
    label = "boxloss, the worst of its variants"
    panel.plot(ours, label=label, color=BLUE, alpha=0.5, linewidth=8)
    for name, colour in zip(ORIGINALS, LINES[1:], strict=True):
        if name in percents:
            panel.plot(percents[name], label=name, color=colour, **DASHES.get(name, {}))
    panel.plot(percents[ROUNDING], label=ROUNDING, color="black", linewidth=0.8)
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    panel.set_ylim(PERCENTS[0], 2 * PERCENTS[-1])
    panel.set_xticks(SIDES[::2], [str(side) for side in SIDES[::2]])
    panel.set_yticks(PERCENTS, [f"{percent:g}" for percent in PERCENTS])
    panel.grid(axis="y", color=PALE, linewidth=0.6)
    quiet_axes(panel)
    panel.tick_params(left=False, bottom=False)


PICTURES = {"precision": draw}
