# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Does it pay to skip invalid slots by a branch?

One CUDA kernel with the library's GIoU loss, repeated 1 to 256 times for each pair of a padded
batch, in variants that write the same: all slots are computed and the invalid ones' losses replaced
by 0; a branch around the formula; a branch around it and the reading of the prediction; the same
with a block's warps in turn at its image's first slots. Valid slots are in front of each image or
scattered, and their share is from none to all. GPU time, inputs warm. Needs nvcc.
"""

from __future__ import annotations

import argparse
import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ...common.cases import SHORTEST_SIDE, near, true_boxes
from ...common.losses import EPS, giou
from ...common.nvcc import find_nvcc, load_library
from ...runner.agreement import LOSS_ROUNDINGS, UNIT, DisagreementError, steepness
from ...runner.clocks import Calls
from ...runner.run import Run, UnavailableError

DEVICES = ("cuda",)
IMAGES = (1024, 32_768)  # the article's, which fits into a GPU's cache, and one that does not
SLOTS = 256
SHARES = (0.0, 0.01, 0.03, 0.125, 0.25, 0.5, 0.75, 1.0)
REPETITIONS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
QUICK_IMAGES, QUICK_SHARES, QUICK_REPETITIONS = (64,), (0.0, 0.125, 1.0), (1, 16, 256)
LAYOUTS = FRONT, SCATTERED = ("front", "scattered")
WARP = 32  # threads that take their branches together, on every GPU that CUDA knows

# --- Cases: padded batches in which a share of the slots is valid ---


@dataclass(frozen=True)
class Batch:
    """Predictions, and a true box for every slot, of which a case takes some."""

    images: int
    pred: Tensor  # (slots of all images, 4)
    truths: Tensor


@dataclass(frozen=True)
class Case:
    layout: str
    share: float
    valid: Tensor  # (slots of all images)
    target: Tensor  # zeros where not valid

    @property
    def active_warps(self) -> float:
        """The share of the warps that have a valid slot."""
        return self.valid.view(-1, WARP).any(dim=1).double().mean().item()


def make_batch(images: int, device: torch.device, seed: int = 0) -> Batch:
    generator = torch.Generator(device).manual_seed(seed)
    truths = true_boxes(images * SLOTS, generator)
    pred = near(truths, generator)
    # Their sides shrink by up to 2 pixels, and shall not turn over.
    pred[:, 2:] = torch.maximum(pred[:, 2:], pred[:, :2] + SHORTEST_SIDE)
    return Batch(images, pred, truths)


def make_case(batch: Batch, layout: str, share: float, seed: int = 0) -> Case:
    """Both layouts of a share have as many valid slots in each image."""
    generator = torch.Generator(batch.pred.device).manual_seed(seed)
    slots = len(batch.pred)
    chosen = torch.randperm(slots, generator=generator, device=generator.device)
    valid = torch.zeros(slots, dtype=torch.bool, device=generator.device)
    valid[chosen[: round(share * slots)]] = True
    if layout == FRONT:
        lengths = valid.view(-1, SLOTS).sum(dim=1, keepdim=True)
        valid = (torch.arange(SLOTS, device=valid.device) < lengths).flatten()
    return Case(layout, share, valid, batch.truths * valid[:, None])


# --- Variants ---
#
# What CUDA 13.0's compiler makes of them for sm_90, as `cuobjdump -sass` shows it: all kernels have
# the same loop of 55 instructions, once for each repetition, not unrolled and with nothing moved
# out of it, and 24 registers a thread. "no branch" has no branch but that loop's and the exit of
# threads behind the last slot. The others have one more around the loop, on which the threads of a
# warp may part (BSSY, BSYNC); the prediction is read before it, or behind it.

SOURCE = Path(__file__).with_name("repeated_giou.cu")

# In the order of the source.
NO_BRANCH, AROUND_FORMULA, BEFORE_READING, IN_TURN = VARIANTS = (
    "no branch",
    "branch around the formula",
    "branch before reading",  # the prediction
    "branch before reading, warps in turn",  # an image's first slots are not always the first's
)
STEP = 2.0**-8  # pixels by which a loss of 1 moves two sides of either box

# (pred, target, losses, times): what a variant does
Launch = Callable[[Tensor, Tensor, Tensor, int], None]


class Kernels:
    """The kernels, for one device, which is the current one."""

    def __init__(self, device: torch.device) -> None:
        self._library = load_library(SOURCE, device)
        pointer, number = ctypes.c_void_p, ctypes.c_int
        self._library.launch.argtypes = [
            *(number, pointer, pointer, pointer, ctypes.c_int64),
            *(ctypes.c_double, ctypes.c_double, number, pointer),
        ]
        self._library.words.restype = ctypes.c_char_p

    def launch(self, variant: str) -> Launch:
        kernel = VARIANTS.index(variant)

        def launched(pred: Tensor, target: Tensor, losses: Tensor, times: int) -> None:
            stream = torch.cuda.current_stream().cuda_stream
            boxes = (pred.data_ptr(), target.data_ptr(), losses.data_ptr())
            slots = losses.numel()
            self._check(self._library.launch(kernel, *boxes, slots, EPS, STEP, times, stream))

        return launched

    def describe(self, variant: str) -> dict[str, int]:
        """Registers of a thread, and how many threads a multiprocessor holds at once."""
        return {
            "registers": self._asked(self._library.registers, variant),
            "threads at once": self._asked(self._library.threads_at_once, variant),
        }

    def _asked(self, question: Callable[..., int], variant: str) -> int:
        answer = ctypes.c_int()
        self._check(question(VARIANTS.index(variant), ctypes.byref(answer)))
        return answer.value

    def _check(self, error: int) -> None:
        if error:
            raise RuntimeError(f"CUDA: {self._library.words(error).decode()}")


# --- Agreement with the formula in fp64, repeated as often; and all give the same bits ---

# A loss' derivative by a coordinate is a sum of terms of at most 5 side / U together (see
# runner.agreement), and 4 coordinates move. Twice that, because the boxes for which side / U is
# taken are not quite those of the kernel.
SLOPES = 2 * 4 * 5


def repeated(pred: Tensor, target: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """The losses (n) after each repetition, and how far float32 may be from them: a coordinate
    that is moved by a loss is as wrong as that loss, times STEP, and is rounded."""
    p, t = (boxes.to(torch.float64, copy=True) for boxes in (pred, target))
    astray = torch.zeros(len(p), dtype=p.dtype, device=p.device)
    while True:
        losses = 1 - giou(p, t)
        # A loss is at most 2.
        allowed = 2 * LOSS_ROUNDINGS * UNIT + SLOPES * steepness(p, t) * astray
        yield losses, allowed
        shift = STEP * losses
        p[:, 0] += shift
        p[:, 3] += shift
        t[:, 1] += shift
        t[:, 2] += shift
        furthest = torch.maximum(p.abs(), t.abs()).amax(dim=1)
        astray = astray + STEP * allowed + UNIT * furthest


def check(
    launches: Mapping[str, Launch], batch: Batch, case: Case, repetitions: Sequence[int]
) -> None:
    """DisagreementError, unless all variants are right after each number of repetitions."""
    results = torch.empty((len(launches), len(case.valid)), device=case.valid.device)
    references = repeated(batch.pred[case.valid], case.target[case.valid])
    for times, (expected, allowed) in enumerate(islice(references, max(repetitions)), start=1):
        if times not in repetitions:
            continue
        where = f"{batch.images:,} images, {case.share:.1%} valid, {case.layout}, {times} times"
        results.fill_(torch.nan)
        for launch, losses in zip(launches.values(), results, strict=True):
            launch(batch.pred, case.target, losses, times)
        for name, losses in zip(launches, results, strict=True):
            if not bool((losses[~case.valid] == 0).all()):
                raise DisagreementError(f"{name}: not 0 in a slot without a true box; {where}")
            error = (losses[case.valid].double() - expected).abs()
            if not bool((error <= allowed).all()):  # NaN must fail
                worst = error.nan_to_num(nan=torch.inf).max().item()
                raise DisagreementError(
                    f"{name}: up to {worst:.2g} from the formula in fp64, beyond what float32 "
                    f"explains; {where}"
                )
            if not torch.equal(losses, results[0]):
                first = next(iter(launches))
                raise DisagreementError(f"{name}: not the same bits as '{first}'; {where}")


# --- Measuring ---


def check_options(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if torch.version.cuda is None:
        parser.error("needs a torch for CUDA")
    try:
        find_nvcc()
    except UnavailableError as reason:
        parser.error(str(reason))


def measure(run: Run) -> None:
    repetitions = QUICK_REPETITIONS if run.quick else REPETITIONS
    kernels = Kernels(run.device)
    launches = {name: kernels.launch(name) for name in VARIANTS}
    for name in VARIANTS:
        for quantity, value in kernels.describe(name).items():
            run.record({"case": "kernel", "variant": name}, quantity, "", value)
    for images in QUICK_IMAGES if run.quick else IMAGES:
        batch = make_batch(images, run.device)
        for layout in LAYOUTS:
            for share in QUICK_SHARES if run.quick else SHARES:
                columns = {"images": images, "layout": layout, "valid": percent(share)}
                if run.has(**columns, repetitions=repetitions[-1]):
                    continue
                case = make_case(batch, layout, share)
                check(launches, batch, case, repetitions)
                active = columns | {"variant": "all"}
                run.record(active, "warps with work", "", case.active_warps)
                losses = torch.empty(len(case.valid), device=run.device)
                for times in repetitions:
                    calls: Calls = {
                        name: partial(launch, batch.pred, case.target, losses, times)
                        for name, launch in launches.items()
                    }
                    run.time(columns | {"repetitions": times}, calls, ("gpu",))
    # One warp alone waits for each repetition's result.
    batch, losses = make_batch(1, run.device), torch.empty(WARP, device=run.device)
    for times in repetitions:
        call = partial(launches[NO_BRANCH], batch.pred, batch.truths, losses, times)
        run.time({"case": "one warp", "repetitions": times}, {NO_BRANCH: call}, ("gpu",))


def percent(share: float) -> str:
    return f"{100 * share:g} %"


# --- Picture ---

LABEL_GAP = 0.06
TITLES = {FRONT: "in front of each image", SCATTERED: "scattered at random"}


def draw(frame: Any, machine: dict[str, str]) -> Any:
    """A row for each batch, a column for each layout, a line for each share of valid slots."""
    import matplotlib.pyplot as plt
    from matplotlib.colors import LinearSegmentedColormap

    from ...runner.pictures import BLUE, DARK, LINES, PALE, pick, quiet_axes, title_figure, where

    cells = frame[(frame["quantity"] == "gpu") & frame["layout"].notna()]
    keys = ["images", "layout", "valid", "repetitions"]
    table = cells.pivot_table(index=keys, columns="variant", values="median", sort=False)
    ratios = (table[BEFORE_READING] / table[NO_BRANCH]).rename("ratio").reset_index()
    images, repetitions = ratios["images"].unique(), sorted(ratios["repetitions"].unique())
    shares = list(ratios["valid"].unique())
    highest = max(1.2, 1.05 * ratios["ratio"].max())
    ramp = LinearSegmentedColormap.from_list("", [BLUE, LINES[1]])
    figure, panels = plt.subplots(
        len(images),
        len(LAYOUTS),
        sharex=True,
        sharey=True,
        squeeze=False,
        figsize=(10, 1 + 3.6 * len(images)),
        layout="constrained",
    )
    for line, count in zip(panels, images, strict=True):
        for panel, layout in zip(line, LAYOUTS, strict=True):
            ends = []
            for place, share in enumerate(shares):
                colour = ramp(place / max(len(shares) - 1, 1))
                drawn = pick(ratios, images=count, layout=layout, valid=share)
                panel.plot(drawn["repetitions"], drawn["ratio"], color=colour, linewidth=1.8)
                ends.append((share, drawn["ratio"].iloc[-1], colour))
            for words, height, colour in labels(ends):
                at = 1.15 * repetitions[-1]
                panel.text(at, height, words, color=colour, fontsize=8, va="center")
            panel.axhspan(1, highest, color=PALE, alpha=0.5, linewidth=0, zorder=0)
            words = "the branch costs"
            panel.text(1, highest - 0.03, words, fontsize=8, color=DARK, va="top")
            panel.hlines(1, 1, repetitions[-1], color=DARK, linewidth=0.8)
            title = f"{count:,.0f} × {SLOTS} slots, valid ones {TITLES[layout]}"
            panel.set_title(title, fontsize=9, loc="left")
            panel.set_xscale("log", base=2)
            panel.set_xlim(0.9, 3 * repetitions[-1])  # room for the labels
            panel.set_xticks(repetitions, [f"{each:.0f}" for each in repetitions])
            panel.set_ylim(0, highest)
            quiet_axes(panel)
        line[0].set_ylabel("time with a branch / without", fontsize=9, color=DARK)
    for panel in panels[-1]:
        panel.set_xlabel("repetitions of the formula for each pair", fontsize=9, color=DARK)
    title_figure(
        figure,
        "What a branch over invalid slots leaves of a kernel's time, by the share of valid slots\n"
        f"{where(machine)}",
    )
    return figure


def labels(ends: Sequence[tuple[str, float, Any]]) -> list[tuple[str, float, Any]]:
    """Of lines by their shares; those that end together have one."""
    together = [[ends[0]]]
    for end in ends[1:]:
        if abs(end[1] - together[-1][-1][1]) < LABEL_GAP / 2:
            together[-1].append(end)
        else:
            together.append([end])
    found: list[tuple[str, float, Any]] = []
    for group in sorted(together, key=lambda group: group[0][1]):
        first, last = group[0][0], group[-1][0]
        words = first if first == last else f"{first.removesuffix(' %')} to {last}"
        height = group[len(group) // 2][1]
        lowest = found[-1][1] + LABEL_GAP if found else height
        found.append((words, max(height, lowest), group[-1][2]))
    return found


PICTURES = {"conditional": draw}
