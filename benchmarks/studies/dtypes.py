# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What does casting boxes to float32 first cost?

First the errors, against the formula in float64: of boxes kept in a dtype, and of what is computed
with them, by the side of the boxes. Then times and bytes of boxloss on boxes as they are, and
behind casts of both to float32, whose backward counts too: of the seed experiment's padded batch by
lengths, and of dense pairs. moved is what a variant has to read and write, peak what its call
allocates at a time. f32/f32, which has nothing to cast, shows how far equal times may be apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from boxloss.torch import giou_loss
from torch import Tensor

from ..common.cases import DTYPES, SEED_SHAPE, Case, dense_case, seed_case
from ..common.losses import EPS, Loss, giou
from ..runner.clocks import Call
from ..runner.counts import operator_bytes, peak_bytes_on
from ..runner.run import BOTH, Row, Run
from . import box_loss
from .box_loss import Variant, boxloss, columns, load_right
from .precision import (
    JITTER,
    PICTURE,
    ROUNDING,
    SIDES,
    PairLoss,
    corners,
    evaluate,
    from_corners,
    unit,
)

# --- Errors: of boxes that are kept in a dtype, and of what is computed with them ---

ERROR_PAIRS = {
    "xyxy": ("bf16/f32", "f16/f32", "bf16/bf16", "f32/u8"),
    "cxcywh": ("bf16/f32", "f16/f32"),
}
LONGEST = 5 / 4  # of the side
LARGEST_U8 = 255  # pixels
COUNT, QUICK_COUNT = 4096, 128  # boxes of each side

BOXLOSS = "boxloss"
STORING = "storing"
USUAL = "usual code"
WRAPPING = "usual code, areas in uint8"
LOSS_ERROR, GRADIENT_ERROR = "loss error", "gradient error"  # relative, of the median pair


def measure_errors(run: Run) -> None:
    """What is not finite has no row."""
    count = QUICK_COUNT if run.quick else COUNT
    for box_format, pairs in ERROR_PAIRS.items():
        of_format = {"case": "errors", "format": box_format}
        for pair in pairs:
            picture = LARGEST_U8 if pair.endswith("/u8") else PICTURE
            for side in (each for each in SIDES if LONGEST * each <= picture):
                boxes = exact_boxes(side, picture, box_format, count, run.device)
                about = of_format | {"dtypes": pair, "side": side}
                found = errors_of(*boxes, box_format, pair, side / unit(box_format))
                for (variant, quantity), error in found.items():
                    if torch.isfinite(error):
                        run.record(about | {"variant": variant}, quantity, "", error.item())
        frame = run.results.frame()
        frame = frame[frame["format"] == box_format]
        shown = frame.pivot(
            index=["dtypes", "quantity", "variant"], columns="side", values="median"
        )
        run.say(f"\n[bold]errors, {box_format}, by side[/]\n{shown.to_string(float_format='%.1e')}")


def exact_boxes(
    side: int, picture: int, box_format: str, count: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Predictions and true boxes in float64, as no dtype holds them. Drawn on the CPU: the same on
    every device."""
    generator = torch.Generator().manual_seed(0)
    first, sides = torch.rand(2, count, 2, generator=generator, dtype=torch.float64)
    sides = side * (3 + 2 * sides) / 4
    first = first * (picture - sides)
    truths = torch.cat([first, first + sides], dim=1)
    jitter = JITTER * side * torch.randn(truths.shape, generator=generator, dtype=truths.dtype)
    pred, target = (from_corners(each, box_format) for each in (truths + jitter, truths))
    return pred.to(device), target.to(device)


def errors_of(
    pred: Tensor, target: Tensor, box_format: str, pair: str, scale: float
) -> dict[tuple[str, str], Tensor]:
    """Of storing against exact boxes; of each way to compute against the formula in float64 on the
    very boxes that are stored."""
    formula = partial(usual_loss, box_format)
    guesses, truths = (
        stored(each, DTYPES[dtype])
        for each, dtype in zip((pred, target), pair.split("/"), strict=True)
    )
    best = evaluate(formula, guesses.double(), truths.double(), scale)
    is_uint8 = truths.dtype == torch.uint8
    usual = evaluate(formula, guesses, truths.to(guesses.dtype) if is_uint8 else truths, scale)
    ours = evaluate(boxloss_of(box_format), guesses, truths, scale)
    found = {
        (STORING, LOSS_ERROR): relative(best[0], evaluate(formula, pred, target, scale)[0]),
        (BOXLOSS, LOSS_ERROR): relative(ours[0], best[0]),
        (USUAL, LOSS_ERROR): relative(usual[0], best[0]),
        (BOXLOSS, GRADIENT_ERROR): relative(ours[1], best[1]),
        (ROUNDING, GRADIENT_ERROR): relative(best[1].to(guesses.dtype).double(), best[1]),
    }
    if is_uint8:
        wrapping, _ = evaluate(formula, guesses, truths, scale)
        found[WRAPPING, LOSS_ERROR] = relative(wrapping, best[0])
    return found


def stored(boxes: Tensor, dtype: torch.dtype) -> Tensor:
    return (boxes if dtype.is_floating_point else boxes.round()).to(dtype)


def usual_loss(box_format: str, pred: Tensor, target: Tensor) -> Tensor:
    """Corners, sides and areas in the dtypes that the boxes have."""
    return 1 - giou(corners(pred, box_format), corners(target, box_format))


def boxloss_of(box_format: Any) -> PairLoss:
    return partial(
        giou_loss,
        reduction="none",
        eps=EPS / unit(box_format) ** 2,
        eps_mode="clamp",
        pred_format=box_format,
        target_format=box_format,
    )


def relative(result: Tensor, exact: Tensor) -> Tensor:
    """Of the median pair. Equal is without error, zeros too."""
    differences, sizes = (
        each.abs() if each.dim() == 1 else each.norm(dim=1) for each in (result - exact, exact)
    )
    errors = torch.where(differences == 0, 0.0, differences / sizes)
    return errors.nan_to_num(nan=torch.inf, posinf=torch.inf).quantile(0.5, interpolation="higher")


# --- Times and bytes: boxes as they are, and cast first ---

CAST = "cast, then boxloss"
EAGER = "cast, then eager"
COMPILED = "torch.compile"  # of casts and formula

SEED_PAIRS = ("f32/f32", "bf16/f32", "f32/u8", "bf16/u8")
DENSE_PAIRS = ("f32/f32", "bf16/f32", "f16/f32", "bf16/bf16", "f32/u8", "bf16/u8", "f16/u8")
COMPILED_PAIRS = ("bf16/f32", "bf16/u8")  # of the largest cases: it takes seconds each time
QUICK_PAIRS = ("f32/f32", "bf16/u8")
LARGE = 2**25
DENSE_SIZES, DENSE_SIZES_ON_CPU, QUICK_SIZES = (2**18, LARGE), (2**18, 2**20), (1000, 4000)
QUICK_SHAPE = (64, 32)


def measure(run: Run) -> None:
    measure_errors(run)
    for case in run.each(cases(run)):
        losses = load_right(run, variants(case), case)
        run.time_passes(columns(case), losses, case.pred, ("stream", "gpu"))
        # Times may come after these counts: on a GPU they need no profiler.
        run.count_passes(columns(case), losses, case.pred, partial(bytes_of, case))


def cases(run: Run) -> dict[str, Callable[[], Case]]:
    on_gpu = run.device.type == "cuda"
    shape = QUICK_SHAPE if run.quick else SEED_SHAPE
    sizes = QUICK_SIZES if run.quick else DENSE_SIZES if on_gpu else DENSE_SIZES_ON_CPU
    found: dict[str, Callable[[], Case]] = {}
    for pair in QUICK_PAIRS if run.quick else SEED_PAIRS:
        found[f"seed, {pair}"] = partial(seed_case, pair, run.device, shape)
    for pair in QUICK_PAIRS if run.quick else DENSE_PAIRS:
        for boxes in sizes:
            found[f"dense, {pair}, {boxes:,}"] = partial(dense_case, pair, boxes, run.device)
    return found


def variants(case: Case) -> dict[str, Variant]:
    known, layout = box_loss.variants(case.kind), layout_of(case)
    found = {BOXLOSS: boxloss(layout), CAST: cast_first(layout), EAGER: known["eager"]}
    if case.boxes == LARGE and case.pair in COMPILED_PAIRS:
        found[COMPILED] = known["torch.compile"]
    return found


def layout_of(case: Case) -> str:
    return "dense" if case.kind == "dense" else "lengths"


def cast_first(layout: str) -> Variant:
    def load(case: Case) -> Loss:
        loss = boxloss(layout).load(case)
        return lambda pred, target, *where: loss(pred.float(), target.float(), *where)

    return Variant(layout, load)


def bytes_of(case: Case, name: str, call: Call) -> dict[str, float]:
    moved = least_bytes(name, case, torch.is_grad_enabled(), call)
    return {"least_bytes": moved, "peak_bytes": peak_bytes_on(case.pred.device, call)}


def least_bytes(name: str, case: Case, with_backward: bool, call: Call) -> int:
    """What a variant has to move, were there no cache. Each of torch's operators moves all of its
    tensors; a kernel of the loss, what it cannot do without. Compiled code is taken to be the best
    that a compiler can make: such a kernel in each pass."""
    if name == EAGER:
        return operator_bytes(call)
    boxes = (case.pred, case.layouts[layout_of(case)][0])
    if name != CAST:
        sizes = [each.element_size() for each in boxes]
        return _of_kernels(case, *sizes, with_backward)
    casts = [_of_cast(each) for each in boxes]
    moved = _of_kernels(case, torch.float32.itemsize, torch.float32.itemsize, with_backward)
    return moved + sum(casts) + with_backward * casts[0]  # autograd casts the gradient back


def _of_cast(boxes: Tensor) -> int:
    if boxes.dtype == torch.float32:
        return 0
    return boxes.numel() * (boxes.element_size() + torch.float32.itemsize)


def _of_kernels(case: Case, pred_size: int, target_size: int, with_backward: bool) -> int:
    """Of the loss and, with it, of the gradient, which reads the boxes once more."""
    reads = 4 * case.boxes * (pred_size + target_size)
    reads += sum(each.nbytes for each in case.layouts[layout_of(case)][1:])
    return 2 * reads + case.pred.numel() * pred_size if with_backward else reads


# --- Pictures ---

# By format and dtypes: variants, their labels, the sides these stand at and how far above the line.
LINES = {
    ("xyxy", "bf16/bf16"): (
        (STORING, "storing boxes in bfloat16", 16, 9),
        (USUAL, "the formula in bfloat16 adds", 16, -15),
        (BOXLOSS, "boxloss adds", 16, -15),
    ),
    ("cxcywh", "bf16/f32"): (
        (STORING, "storing predictions in bfloat16", 16, 9),
        (USUAL, "corners formed in bfloat16 add", 32, -27),
        (BOXLOSS, "boxloss adds", 16, -15),
    ),
    ("xyxy", "f32/u8"): (
        (STORING, "storing true boxes in uint8", 64, -17),
        (WRAPPING, "areas in uint8 add", 64, 9),
        (BOXLOSS, "boxloss adds", 16, -15),
    ),
}
ERROR_RANGE = (5e-9, 100)
THICKNESS = 0.36


def picture(frame: Any, machine: Mapping[str, str]) -> Any:
    """Bars of the largest dense case, then the errors on one scale."""
    from ..runner import pictures

    figure, panels = pictures.plt.subplots(2, 2, figsize=(11, 8), layout="constrained")
    bars_panel, *others = panels.flat
    _bars(bars_panel, frame)
    for panel, ((box_format, pair), lines) in zip(others, LINES.items(), strict=True):
        of_panel = pictures.pick(frame, format=box_format, dtypes=pair, quantity=LOSS_ERROR)
        _lines(panel, of_panel, lines)
        title = f"{pictures.dtypes(pair)}, {box_format}: relative error of the loss, median"
        panel.set_title(title, fontsize=9, loc="left")
    where = pictures.where(machine)
    pictures.title_figure(figure, f"What dtypes save and cost: GIoU loss, {where}")
    return figure


def _bars(panel: Any, frame: Any) -> None:
    from ..runner import pictures

    dense = pictures.pick(frame, case="dense", variant=[BOXLOSS, CAST], **{"pass": BOTH})
    boxes = int(dense["boxes"].max())
    clock = "gpu" if "gpu" in set(dense["quantity"]) else "stream"
    times = pictures.pick(dense, boxes=boxes, quantity=clock)
    for variant, colour, shift in (
        (BOXLOSS, pictures.BLUE, -THICKNESS / 2),
        (CAST, pictures.GREY, THICKNESS / 2),
    ):
        rows = pictures.pick(times, variant=variant)
        places = [place + shift for place in range(len(rows))]
        drawn = panel.barh(places, rows["median"] / 1e3, THICKNESS, color=colour)
        labels = [pictures.number(time / 1e3) for time in rows["median"]]
        labels[0] += f"  {variant}"
        panel.bar_label(drawn, labels, padding=3, fontsize=8)
    pairs = times["dtypes"].unique()
    panel.set_yticks(range(len(pairs)), [pictures.dtypes(pair) for pair in pairs])
    panel.set_xticks([])  # each bar has its number
    panel.invert_yaxis()
    panel.set_xlim(0, 1.2 * panel.get_xlim()[1])  # room for the numbers
    words = {"gpu": "GPU time", "stream": "wall time in a stream"}[clock]
    panel.set_title(f"{boxes:,} pairs, forward + backward: {words}, ms", fontsize=9, loc="left")
    pictures.quiet_axes(panel)


def _lines(panel: Any, errors: Any, lines: tuple[tuple[str, str, int, int], ...]) -> None:
    from ..runner import pictures

    exact = []
    for (variant, label, side, above), colour in zip(
        lines, (pictures.DARK, pictures.LINES[1], pictures.BLUE), strict=True
    ):
        by_side: Row = pictures.medians(errors, "side", variant=variant)
        exact += [f"{label} 0 at {side:.0f} pixels" for side, error in by_side.items() if not error]
        shown = {side: error for side, error in by_side.items() if error}  # the axis has no zero
        panel.plot(list(shown), list(shown.values()), color=colour)
        if side in shown:
            panel.annotate(
                label,
                (side, shown[side]),
                xytext=(0, above),
                textcoords="offset points",
                color=colour,
                fontsize=8,
            )
    panel.text(
        0.03, 0.3, "\n".join(exact), fontsize=8, color=pictures.DARK, transform=panel.transAxes
    )
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    panel.set_xlim(SIDES[0] / 1.2, SIDES[-1] * 1.2)
    panel.set_ylim(*ERROR_RANGE)
    panel.set_xticks(SIDES[1::2], [str(side) for side in SIDES[1::2]])
    panel.set_yticks([1e-8, 1e-4, 1], ["10⁻⁸", "10⁻⁴", "100 %"])
    panel.set_xlabel("side of the box, pixels", fontsize=8, color=pictures.DARK)
    panel.grid(axis="y", color=pictures.PALE, linewidth=0.6)
    pictures.quiet_axes(panel)


PICTURES = {"dtypes": picture}
