# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What do the losses cost on the CPU, beside their peers and the memory's speed?

dense is GIoU of neighbouring pairs, beside sums over the same memory; losses is each loss beside
GIoU; retinanet and seed are few boxes in many slots, by mask and by each layout. Inputs are warm:
small ones stay in the cache. BOXLOSS_CPU_CAPABILITY=avx2 or baseline tries narrower vectors. Eager
calls leave the heap in disorder; glibc keeps its memory, so that new pages are not what is timed,
by MALLOC_TRIM_THRESHOLD_=68719476736 MALLOC_MMAP_THRESHOLD_=68719476736 MALLOC_TOP_PAD_=268435456.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from boxloss.torch import cpu_capability
from torch import Tensor

from ..common.cases import SEED_SHAPE, Case, dense_case, near, seed_case, true_boxes
from ..common.losses import Loss
from ..runner.clocks import Calls
from ..runner.run import BOTH, FORWARD, Run
from .box_loss import (
    Variant,
    boxloss,
    built_for,
    columns,
    dense_loss,
    load_dense_torchvision,
    load_right,
    losses_case,
    variants,
)

CPU = torch.device("cpu")
DEVICES = ("cpu",)

# --- Cases ---


@dataclass(frozen=True)
class Setting:
    """What is timed side by side."""

    kind: str
    case: Case
    variants: dict[str, Variant]  # the first is what ratios are taken to
    limits: Callable[[str], Calls] = lambda _: {}  # of a pass


def dense(pair: str, boxes: int) -> Setting:
    """Neighbouring pairs, beside the best that memory allows."""
    case = dense_case(pair, boxes, CPU)
    sizes = [case.pred.nbytes, *(each.nbytes for each in case.layouts["dense"])]
    return Setting("dense", case, _on_cpu(case), partial(reading, case, sizes))


def losses(boxes: int) -> Setting:
    """Each loss; GIoU first."""
    return Setting("losses", losses_case(boxes, CPU), variants("losses"))


def retinanet(anchors: int) -> Setting:
    """By mask, beside the boxes that the mask picks, and reading the mask."""
    case = retinanet_case(2, anchors, 0.002)
    found = {
        "boxloss": boxloss("mask"),
        **{name: boxloss("mask", name) for name in built_for(CPU)},
        "picked, eager": Variant(lambda _: _of_picked(dense_loss), layout="mask"),
        "picked, torchvision": Variant(
            lambda case: _of_picked(load_dense_torchvision(case)), layout="mask"
        ),
    }
    return Setting("retinanet", case, found, partial(reading_mask, case))


def seed(shape: tuple[int, int]) -> Setting:
    """Each layout, beside the padded formula."""
    case = seed_case("f32/f32", CPU, shape)
    return Setting("seed", case, _on_cpu(case))


def retinanet_case(images: int, anchors: int, foreground: float) -> Case:
    """Decoded boxes and the true box of each anchor, where the mask says that it has one."""
    generator = torch.Generator().manual_seed(0)
    count = round(images * anchors * foreground)
    mask = torch.zeros(images * anchors, dtype=torch.bool)
    mask[torch.randperm(len(mask), generator=generator)[:count]] = True
    mask = mask.view(images, anchors)
    truths = true_boxes(count, generator)
    # What leaks out of an anchor without a true box is found out by the agreement check.
    pred, target = torch.full((2, images, anchors, 4), torch.nan)
    pred[mask] = near(truths, generator)
    target[mask] = truths
    read = mask.nbytes + 2 * truths.nbytes
    return Case(
        "retinanet",
        "f32/f32",
        pred.clone().requires_grad_(),
        {"mask": (target.clone(), mask)},
        mask,
        count,
        read,
    )


def _on_cpu(case: Case) -> dict[str, Variant]:
    found = variants(case.kind, built_for(CPU))
    need_gpu = ("Triton", "torch-fast-box-ops")
    return {name: each for name, each in found.items() if not name.startswith(need_gpu)}


def _of_picked(loss: Loss) -> Loss:
    return lambda pred, target, mask: loss(pred[mask], target[mask])


# --- The memory's speed ---

SUMS, SUMS_AND_ZEROS = "sums", "sums and zeros"


def reading(case: Case, sizes: Sequence[int], measured: str) -> Calls:
    """Reading so many bytes, by torch's sum of ones: of boxes' bytes some would be subnormal. For
    backward reading them again and making zeros as large as the gradient."""
    tensors = [torch.ones(size // 4) for size in sizes]

    def read() -> None:
        for each in tensors:
            each.sum()

    def read_and_make() -> Tensor:
        read()
        read()
        return torch.zeros_like(case.pred.detach())

    return {SUMS: read} if measured == FORWARD else {SUMS_AND_ZEROS: read_and_make}


def reading_mask(case: Case, measured: str) -> Calls:
    """The mask alone; and what torch takes to count it."""
    _, mask = case.layouts["mask"]
    counting: Calls = {"mask.sum()": mask.sum} if measured == FORWARD else {}
    return counting | reading(case, [mask.nbytes], measured)


# --- Measuring ---

CASES = ("dense", "losses", "retinanet", "seed")
SMALL, MIDDLE, LARGE = 2**18, 2_000_000, 2**23
DENSE_SIZES = {
    "f32/f32": (SMALL, MIDDLE, LARGE),
    "bf16/u8": (SMALL, LARGE),
    "bf16/bf16": (SMALL, LARGE),
    "f64/f64": (SMALL, LARGE),
}
ANCHORS = 159_882
QUICK_BOXES, QUICK_SHAPE, QUICK_ANCHORS = 2000, (64, 32), 2000


def measure(run: Run) -> None:
    for setting in run.each(settings(run)):
        case, found = setting.case, setting.variants
        run.time_passes(
            {"capability": cpu_capability(), **columns(case), "case": setting.kind},
            load_right(run, found, case),
            case.pred,
            ("wall",),
            setting.limits,
            case.moved if setting.kind == "dense" else None,
            found,
        )


def settings(run: Run) -> dict[str, Callable[[], Setting]]:
    """By what is shown; the largest take much memory."""
    quick = run.quick
    found: dict[str, Callable[[], Setting]] = {
        f"dense, {pair}, {boxes:,} boxes": partial(dense, pair, boxes)
        for pair, sizes in DENSE_SIZES.items()
        for boxes in ((QUICK_BOXES,) if quick else sizes)
    }
    found["losses"] = partial(losses, QUICK_BOXES if quick else SMALL)
    found["retinanet"] = partial(retinanet, QUICK_ANCHORS if quick else ANCHORS)
    found["seed"] = partial(seed, QUICK_SHAPE if quick else SEED_SHAPE)
    return found


# --- Pictures ---

LIMITS = {SUMS: "as many bytes summed", SUMS_AND_ZEROS: "summed twice, zeros made"}


def picture(frame: Any, machine: Mapping[str, str]) -> Any:
    """The time for a pair, beside what the memory allows; of the most boxes, which are the
    likeliest to be in no cache."""
    from ..runner import pictures

    shown = frame[frame["case"] == "dense"]
    if shown.empty:
        return None
    most = int(shown["boxes"].max())
    shown = shown[shown["boxes"] == most]
    pairs = list(shown["dtypes"].unique())
    figure, panels = pictures.plt.subplots(
        len(pairs),
        2,
        squeeze=False,
        figsize=(10, 0.6 + len(pairs) * (0.75 + 3 * pictures.BAR)),
        layout="constrained",
    )
    for row, pair in zip(panels, pairs, strict=True):
        for panel, measured in zip(row, (FORWARD, BOTH), strict=True):
            of_panel = pictures.pick(shown, **{"dtypes": pair, "pass": measured})
            times = pictures.medians(of_panel, variant=["boxloss", "torch.compile", *LIMITS])
            for_a_pair = {LIMITS.get(name, name): 1e3 * times[name] / most for name in times}
            pictures.bars(panel, for_a_pair, "wall time for a pair, ns", LIMITS.values())
            panel.set_xticks([])  # each bar has its number
            moved = int(of_panel["bytes"].iloc[0]) // most
            title = f"{pictures.dtypes(pair)}, {measured}: {moved} bytes"
            panel.set_title(title, fontsize=9, loc="left")
    title = f"GIoU of {most:,} pairs, and the bytes that a pair needs at least"
    pictures.title_figure(figure, f"{title}\n{pictures.where(machine)}")
    return figure


PICTURES = {"cpu": picture}
