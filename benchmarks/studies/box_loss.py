# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What does the GIoU loss alone cost, beside its peers and the hardware's limits?

seed is a padded batch, few boxes in many slots, by each layout of its ground-truth boxes; dense is
neighbouring pairs, which memory limits; losses is each loss beside GIoU; retinanet is few boxes
among many anchors, by a mask. Where several implementations of boxloss are built for the device,
each is timed by its name, too. torch-fast-box-ops takes part where Python finds it
(PYTHONPATH=ITS_CHECKOUT). Inputs are warm: small ones stay in the cache.

On a CPU the hardware's limits are sums over the same memory, and BOXLOSS_CPU_CAPABILITY=avx2 or
baseline tries narrower vectors. Eager calls leave the heap in disorder; glibc keeps its memory, so
that new pages are not what is timed, by MALLOC_TRIM_THRESHOLD_=68719476736
MALLOC_MMAP_THRESHOLD_=68719476736 MALLOC_TOP_PAD_=268435456.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import get_args

import torch
from boxloss.torch import box_loss, cpu_capability, implementations
from boxloss.torch.losses import Loss as Word
from torch import Tensor

from ..common import losses as usual
from ..common.cases import (
    DENSE_PAIRS,
    SEED_PAIRS,
    SEED_SHAPE,
    Case,
    boxloss_giou,
    dense_case,
    near,
    seed_case,
    true_boxes,
)
from ..common.exact import check, truth
from ..common.loss_parameters import PARAMETERS
from ..common.losses import Loss
from ..runner import run as runner
from ..runner.clocks import Calls
from ..runner.run import BOTH, Row, Run, UnavailableError

# --- Variants: each takes predictions and what its layout holds, and returns the mean loss ---


@dataclass(frozen=True)
class Variant(runner.Variant[Case, Loss]):
    layout: str = "dense"  # of the case, as its loss takes the ground-truth boxes


def boxloss(layout: str, implementation: str | None = None) -> Variant:
    loss = boxloss_giou(layout)
    return Variant(lambda _: loss, implementation=implementation, layout=layout)


def by_word(word: Word) -> Variant:
    return Variant(lambda _: partial(box_loss, loss=word, **PARAMETERS.get(word, {})))


def of_lengths(load: Callable[[], Loss], slow_to_start: bool = False) -> Variant:
    return Variant(lambda _: load(), slow_to_start, layout="lengths")


# Of the seed's layouts.
LABELS = {"padded": "padded", "lengths": "lengths", "ragged": "offsets", "mask": "mask"}


def triton(layout: str) -> Variant:
    """Written by hand."""
    return Variant(lambda case: usual.load_triton(case.pred.device, layout), layout=layout)


def _float(pred: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Both in the dtype that boxloss computes in."""
    dtype = torch.promote_types(torch.promote_types(pred.dtype, target.dtype), torch.float32)
    return pred.to(dtype), target.to(dtype)


def dense_loss(pred: Tensor, target: Tensor) -> Tensor:
    return (1 - usual.giou(*_float(pred, target))).mean()


def load_dense_torchvision(case: Case) -> Loss:
    generalized_box_iou_loss = usual.torchvision_giou()
    return lambda pred, target: generalized_box_iou_loss(*_float(pred, target), reduction="mean")


def _load_fast_box_ops(case: Case) -> Loss:
    if case.pair != "f32/f32":
        raise UnavailableError("both box tensors must have the same dtype; timed in fp32 only")
    try:
        from torch_fast_box_ops import generalized_box_iou_loss
    except (ImportError, OSError, StopIteration) as error:  # StopIteration: it was not built
        raise UnavailableError(f"not installed, or not built ({error!r})") from error
    # Its backward has no choice but to write the gradient of the ground-truth boxes too.
    return partial(generalized_box_iou_loss, reduction="mean")


def variants(kind: str, built: Sequence[str] = ()) -> dict[str, Variant]:
    """Those of a kind of case; the first is what ratios are taken to. `built` are implementations
    of boxloss that are chosen by their names."""
    if kind == "losses":
        words: list[Word] = sorted(get_args(Word), key=lambda word: word != "giou")
        return {word: by_word(word) for word in words}
    if kind == "seed":
        return {
            **{
                f"{name or 'boxloss'} {label}": boxloss(layout, name)
                for name in (None, *built)
                for label, layout in LABELS.items()
            },
            "Triton padded": triton("padded"),
            "Triton lengths": triton("lengths"),
            "torch.compile": of_lengths(usual.load_compiled, True),
            "eager": of_lengths(lambda: usual.masked_loss),
            "torchvision": of_lengths(usual.load_torchvision),
        }
    if kind == "retinanet":
        return {
            "boxloss": boxloss("mask"),
            **{name: boxloss("mask", name) for name in built},
            "picked, eager": Variant(lambda _: of_picked(dense_loss), layout="mask"),
            "picked, torchvision": Variant(
                lambda case: of_picked(load_dense_torchvision(case)), layout="mask"
            ),
        }
    return {
        "boxloss": boxloss("dense"),
        **{name: boxloss("dense", name) for name in built},
        "Triton": triton("dense"),
        "torch-fast-box-ops": Variant(_load_fast_box_ops),
        "torch.compile": Variant(lambda _: torch.compile(dense_loss, dynamic=False), True),
        "eager": Variant(lambda _: dense_loss),
        "torchvision": Variant(load_dense_torchvision),
    }


def of_picked(loss: Loss) -> Loss:
    """Of the boxes that the mask picks."""
    return lambda pred, target, mask: loss(pred[mask], target[mask])


def built_for(device: torch.device) -> list[str]:
    """The implementations that there are to compare, fewer than two being none."""
    found = []
    for name in implementations():
        memory, _, own = name.partition("/")
        # The reference is slow on purpose; "aten", which has no memory of its own, is eager code.
        if own not in ("", "reference") and (memory == "cpu") == (device.type == "cpu"):
            found.append(name)
    return found if len(found) > 1 else []


# What the hardware allows


def limits(case: Case, measured: str) -> Calls:
    """The usual way to move as many bytes."""
    device, moved = case.pred.device, case.moved[measured]
    if device.type == "cpu":
        return sums(case, measured)
    half = torch.ones(moved // 2, dtype=torch.uint8, device=device)
    return {"copy": partial(_copy, half, torch.ones_like(half))}


def sums(case: Case, measured: str) -> Calls:
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


def _copy(source: Tensor, target: Tensor) -> None:
    # In pieces: one memcpy of more than a gigabyte runs at two thirds of the speed in a graph.
    for piece, into in zip(source.split(2**26), target.split(2**26), strict=True):
        into.copy_(piece)


# --- Measuring ---

CASES = ("seed", "dense", "losses", "retinanet")
SMALL, MIDDLE, LARGE = 2**18, 2_000_000, 2**23
SIZES = dict.fromkeys(DENSE_PAIRS, (10_000, SMALL, 2**25))
SIZES_ON_CPU = {
    "f32/f32": (SMALL, MIDDLE, LARGE),
    **dict.fromkeys(("bf16/u8", "bf16/bf16", "f64/f64"), (SMALL, LARGE)),
}
ANCHORS = 159_882
QUICK_SHAPE, QUICK_SIZE = (64, 32), 1000


def measure(run: Run) -> None:
    for case in run.each(cases(run)):
        found = variants(case.kind, built_for(run.device))
        run.time_passes(
            columns(case),
            load_right(run, found, case),
            case.pred,
            ("wall", "gpu"),
            partial(limits, case),
            case.moved,
            found,
        )


def cases(run: Run) -> dict[str, Callable[[], Case]]:
    """By what is shown; the largest take much memory."""
    shape = QUICK_SHAPE if run.quick else SEED_SHAPE
    sizes = SIZES if run.on_gpu else SIZES_ON_CPU
    if run.quick:
        sizes = dict.fromkeys(SEED_PAIRS, (QUICK_SIZE,))
    found: dict[str, Callable[[], Case]] = {
        f"seed, {pair}": partial(seed_case, pair, run.device, shape) for pair in SEED_PAIRS
    }
    for pair, each in sizes.items():
        for boxes in each:
            name = f"dense, {pair}, {boxes:,} boxes"
            found[name] = partial(dense_case, pair, boxes, run.device)
    anchors = QUICK_SIZE if run.quick else ANCHORS
    of_losses = QUICK_SIZE if run.quick else SIZES["f32/f32"][-1] if run.on_gpu else SMALL
    return {
        **found,
        "losses": partial(dense_case, "f32/f32", of_losses, run.device, kind="losses"),
        "retinanet": partial(retinanet_case, 2, anchors, 0.002, run.device),
    }


def retinanet_case(images: int, anchors: int, foreground: float, device: torch.device) -> Case:
    """Decoded boxes, and the ground-truth box of each anchor that has one by the mask. Drawn on the
    CPU."""
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
    pred, target, mask = (each.to(device).clone() for each in (pred, target, mask))
    read = mask.nbytes + 2 * truths.nbytes
    layouts = {"mask": (target, mask)}
    return Case("retinanet", "f32/f32", pred.requires_grad_(), layouts, mask, count, read)


def columns(case: Case) -> Row:
    on_cpu = case.pred.device.type == "cpu"
    about: Row = {"capability": cpu_capability()} if on_cpu else {}
    return about | {"case": case.kind, "dtypes": case.pair, "boxes": case.boxes}


def load_right(run: Run, found: dict[str, Variant], case: Case) -> dict[str, Callable[[], Tensor]]:
    """Those that can run here, on the case's boxes; DisagreementError if one is wrong."""
    losses, expected = {}, truth(case)
    for name, loss in run.load(found, case).items():
        losses[name] = case.on(loss, found[name].layout)
        if case.kind == "losses" and name != "giou":
            continue  # boxloss' own, whose formulas the conformance suite checks
        with found[name].chosen():
            check(name, losses[name], case, expected)
    return losses
