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

from collections.abc import Callable
from functools import partial

import torch
from boxloss.torch import cpu_capability
from torch import Tensor

from ..common.cases import SEED_SHAPE, Case, dense_case, near, seed_case, true_boxes
from ..common.losses import Loss
from ..runner.clocks import Calls
from ..runner.run import BOTH, Run
from . import box_loss
from .box_loss import Variant, boxloss, built_for, dense_loss, load_dense_torchvision

CPU = torch.device("cpu")
DEVICES = ("cpu",)
CASES = ("dense", "losses", "retinanet", "seed")

# --- Cases, and who takes part ---

SMALL, MIDDLE, LARGE = 2**18, 2_000_000, 2**23
DENSE_SIZES = {
    "f32/f32": (SMALL, MIDDLE, LARGE),
    "bf16/u8": (SMALL, LARGE),
    "bf16/bf16": (SMALL, LARGE),
    "f64/f64": (SMALL, LARGE),
}
ANCHORS = 159_882
QUICK_BOXES, QUICK_SHAPE = 2000, (64, 32)


def cases(quick: bool) -> dict[str, Callable[[], Case]]:
    """By what is shown; the largest take much memory."""
    found = {
        f"dense, {pair}, {boxes:,} boxes": partial(dense_case, pair, boxes, CPU)
        for pair, sizes in DENSE_SIZES.items()
        for boxes in ((QUICK_BOXES,) if quick else sizes)
    }
    anchors = QUICK_BOXES if quick else ANCHORS
    return {
        **found,
        "losses": partial(
            dense_case, "f32/f32", QUICK_BOXES if quick else SMALL, CPU, kind="losses"
        ),
        "retinanet": partial(retinanet_case, 2, anchors, 0.002),
        "seed": partial(seed_case, "f32/f32", CPU, QUICK_SHAPE if quick else SEED_SHAPE),
    }


def retinanet_case(images: int, anchors: int, foreground: float) -> Case:
    """Decoded boxes, and the ground-truth box of each anchor that has one by the mask."""
    generator = torch.Generator().manual_seed(0)
    count = round(images * anchors * foreground)
    mask = torch.zeros(images * anchors, dtype=torch.bool)
    mask[torch.randperm(len(mask), generator=generator)[:count]] = True
    mask = mask.view(images, anchors)
    truths = true_boxes(count, generator)
    # What leaks out of an anchor without a ground-truth box is found out by the agreement check.
    pred, target = torch.full((2, images, anchors, 4), torch.nan)
    pred[mask] = near(truths, generator)
    target[mask] = truths
    leaf = pred.clone().requires_grad_()
    read = mask.nbytes + 2 * truths.nbytes
    layouts = {"mask": (target.clone(), mask)}
    return Case("retinanet", "f32/f32", leaf, layouts, mask, count, read)


def variants(kind: str) -> dict[str, Variant]:
    """The first is what ratios are taken to."""
    if kind != "retinanet":
        return box_loss.variants(kind, built_for(CPU))
    return {
        "boxloss": boxloss("mask"),
        **{name: boxloss("mask", name) for name in built_for(CPU)},
        "picked, eager": Variant(lambda _: of_picked(dense_loss), layout="mask"),
        "picked, torchvision": Variant(
            lambda case: of_picked(load_dense_torchvision(case)), layout="mask"
        ),
    }


def of_picked(loss: Loss) -> Loss:
    """Of the boxes that the mask picks."""
    return lambda pred, target, mask: loss(pred[mask], target[mask])


# --- The memory's speed ---


def limits(case: Case, measured: str) -> Calls:
    """Reading the boxes, or their mask, by torch's sum of ones: of boxes' bytes some would be
    subnormal. For backward reading them again and making zeros as large as the gradient."""
    if case.kind not in ("dense", "retinanet"):
        return {}
    read_all = [case.pred, *case.layouts["dense"]] if case.kind == "dense" else [case.counted]
    tensors = [torch.ones(each.nbytes // 4) for each in read_all]

    def read() -> None:
        for each in tensors:
            each.sum()

    def read_and_make() -> Tensor:
        read()
        read()
        return torch.zeros_like(case.pred.detach())

    if measured == BOTH:
        return {"sums and zeros": read_and_make}
    counting: Calls = {"mask.sum()": case.counted.sum} if case.kind == "retinanet" else {}
    return {**counting, "sums": read}


# --- Measuring ---


def measure(run: Run) -> None:
    for case in run.each(cases(run.quick)):
        found = variants(case.kind)
        run.time_passes(
            {"capability": cpu_capability(), **box_loss.columns(case)},
            box_loss.load_right(run, found, case),
            case.pred,
            ("wall",),
            partial(limits, case),
            case.moved if case.kind == "dense" else None,
            found,
        )
