# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The article's exercises: from how much work on a branch over invalid slots pays, and what casting
boxes to float32 first costs."""

from __future__ import annotations

from functools import partial

import torch
from boxloss.torch import giou_loss
from torch import Tensor

from ...common.cases import SHORTEST_SIDE, dense_case, near, true_boxes
from ...common.losses import giou
from ...runner.agreement import GIOU_ERROR, DisagreementError
from ...runner.clocks import Call, Calls
from ...runner.counts import peak_bytes_on
from ...runner.run import Run
from .. import box_loss
from .losses import SLOTS, Kernel

IMAGES = (1024, 32_768)  # the article's, which fits into a GPU's cache, and one that does not
SHARES = (0.0, 0.01, 0.03, 0.125, 0.25, 0.5, 0.75, 1.0)
REPETITIONS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
LAYOUTS = FRONT, SCATTERED = ("front", "scattered")
VARIANTS = ("no branch", "branch before reading")  # the prediction

PAIRS = ("f32/f32", "bf16/f32", "f16/f32", "bf16/bf16", "f32/u8", "bf16/u8", "f16/u8")
SIZES = (2**18, 2**25)


def valid_slots(images: int, layout: str, share: float, device: torch.device) -> Tensor:
    """(images * SLOTS): both layouts of a share have as many in each image."""
    generator = torch.Generator(device).manual_seed(0)
    slots = images * SLOTS
    valid = torch.zeros(slots, dtype=torch.bool, device=device)
    chosen = torch.randperm(slots, generator=generator, device=device)
    valid[chosen[: round(share * slots)]] = True
    if layout == SCATTERED:
        return valid
    lengths = valid.view(-1, SLOTS).sum(dim=1, keepdim=True)
    return (torch.arange(SLOTS, device=device) < lengths).flatten()


def time_branch(run: Run, kernel: Kernel) -> None:
    """GPU time of a kernel that repeats the GIoU of each slot, with and without the branch."""
    repetitions = (1, 16) if run.quick else REPETITIONS
    for images in (64,) if run.quick else IMAGES:
        generator = torch.Generator(run.device).manual_seed(0)
        truths = true_boxes(images * SLOTS, generator)
        pred = near(truths, generator)
        # Repetitions move their sides by up to 2 pixels, and shall not turn them over.
        pred[:, 2:] = torch.maximum(pred[:, 2:], pred[:, :2] + SHORTEST_SIDE)
        losses = torch.empty(2, len(pred), device=run.device)
        for layout in LAYOUTS:
            for share in SHARES:
                valid = valid_slots(images, layout, share, run.device)
                target = truths * valid[:, None]
                for times in repetitions:
                    calls: Calls = {
                        name: partial(kernel.launch_repeated, branch, pred, target, to, times)
                        for name, branch, to in zip(VARIANTS, (False, True), losses, strict=True)
                    }
                    for call in calls.values():
                        call()
                    check_branch(losses, pred, target, valid, times)
                    about = {"case": "branch", "images": images, "layout": layout}
                    about |= {"valid": f"{100 * share:g} %", "repetitions": times}
                    run.time(about, calls, ("gpu",))


def check_branch(losses: Tensor, pred: Tensor, target: Tensor, valid: Tensor, times: int) -> None:
    """DisagreementError, unless both give the same bits, and once those of the formula."""
    if not torch.equal(*losses):
        raise DisagreementError(f"the branch changes a loss, {times} times")
    if times == 1:
        expected = torch.where(valid, 1 - giou(pred.double(), target.double()), 0.0)
        if not bool(((losses[0] - expected).abs() <= GIOU_ERROR).all()):
            raise DisagreementError("the repeated kernel's losses are not the formula's")


def cast_first(pred: Tensor, target: Tensor) -> Tensor:
    return giou_loss(pred.float(), target.float())


def time_casts(run: Run) -> None:
    """Time and memory of boxloss on boxes as they are, and behind casts of both, whose backward
    counts too. f32/f32, which has nothing to cast, shows how far equal times may be apart."""
    known = box_loss.variants("dense")
    variants = {
        "boxloss": known["boxloss"],
        "cast, then boxloss": box_loss.Variant(lambda _: cast_first),
        "cast, then eager": known["eager"],
        "torch.compile": known["torch.compile"],
    }

    sizes = (1000,) if run.quick else SIZES
    cases = {
        f"casts, {pair}, {boxes:,} boxes": partial(dense_case, pair, boxes, run.device)
        for pair in PAIRS
        for boxes in sizes
    }
    for case in run.each(cases):
        losses = box_loss.load_right(run, variants, case)
        about = {**box_loss.columns(case), "case": "casts"}
        run.time_passes(about, losses, case.pred, ("gpu",))
        run.count_passes(about, losses, case.pred, partial(peak, run.device))


def peak(device: torch.device, name: str, call: Call) -> dict[str, float]:
    return {"peak_bytes": peak_bytes_on(device, call)}
