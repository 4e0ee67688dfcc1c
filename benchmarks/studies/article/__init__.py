# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What does each step of the article bring, and what does boxloss bring beside it?

The article's five losses as it describes them, forward only, on its own kind of batch and with its
network, beside boxloss and its peers; what they give on its own dtypes, which is wrong; launches,
waits and memory; its kernel with and without its branch, and what stands around it; a training step
with network and loss compiled together. Needs nvcc.
"""

from __future__ import annotations

import argparse
import dataclasses
import random
from functools import partial

import torch
from torch import Tensor

from ...common.losses import Loss, masked_loss
from ...common.nvcc import find_nvcc
from ...runner.agreement import DisagreementError, Truth
from ...runner.clocks import Calls
from ...runner.counts import operators
from ...runner.run import CALLS_IN_TRACE, Run, UnavailableError, compile_now
from ..face_detector import (
    SEED,
    Stopwatch,
    Targets,
    Variant,
    as_list,
    boxloss,
    padded,
    padded_with_lengths,
    probe,
    ragged,
    truth,
)
from ..face_detector import VARIANTS as USUAL
from ..face_detector.data import RandomPictures
from ..face_detector.model import SCALES, FaceDetector, Scale
from . import losses as its
from .losses import SLOTS, Kernel

DEVICES = ("cuda",)
BATCHES, STEPS = 4, 40
PARTS = COPY, FORWARD, LOSS = ("copy data", "forward", "calc loss")  # by the article's words
LOOP, CONCAT, MASK, KERNEL, BRANCH = ITS = (
    "its loop",
    "its concat",
    "its mask",
    "its kernel",
    "its kernel, with its branch",
)
SHARE = "share of the loss"
RAGGED = "boxloss ragged"
PEERS = ("torch.compile", "Triton", "boxloss padded", "boxloss lengths", RAGGED)
OVERHEAD = "torch.compile, reduce-overhead"

# --- Variants ---


def variants_of(kernel: Kernel) -> dict[str, Variant]:
    """The article's give the mean GIoU, the others the mean of 1 - GIoU."""
    return {
        LOOP: Variant(lambda _: its.loop, collate=as_list),
        CONCAT: Variant(lambda _: its.concat, collate=as_list),
        MASK: Variant(lambda _: its.mask, collate=padded),
        KERNEL: Variant(lambda _: kernel.loss(with_branch=False), collate=padded),
        BRANCH: Variant(lambda _: kernel.loss(with_branch=True), collate=padded),
        OVERHEAD: Variant(load_reduced_overhead, slow_to_start=True),
        **{name: USUAL[name] for name in PEERS},
    }


def load_reduced_overhead(_: torch.device) -> Loss:
    compiled = torch.compile(masked_loss, dynamic=False, mode="reduce-overhead")

    def loss(pred: Tensor, *targets: Tensor) -> Tensor:
        torch.compiler.cudagraph_mark_step_begin()
        return compiled(pred, *targets)

    return loss


# --- The batches ---


@dataclasses.dataclass(frozen=True)
class Batch:
    images: Tensor  # pinned, as are the boxes
    boxes: list[Tensor]

    def laid_out(self, variant: Variant) -> list[Tensor]:
        return [each.pin_memory() for each in variant.collate(self.boxes, SLOTS)]


def make_batch(pictures: RandomPictures, number: int, count: int) -> Batch:
    images, boxes = zip(*(pictures[number * count + index] for index in range(count)), strict=True)
    return Batch(torch.stack(images).pin_memory(), list(boxes))


def moved(targets: list[Tensor], device: torch.device) -> Targets:
    return tuple(each.to(device, non_blocking=True) for each in targets)


# --- Agreement ---


def check_values(run: Run, article: Article, dtype: torch.dtype) -> None:
    """All are right on float32 boxes; on its own dtypes, whose areas wrap, the article's are wrong,
    but for its kernel."""
    printed = article.batches[0].boxes
    for pred_dtype, boxes in (
        (torch.float32, [each.float() for each in printed]),
        (dtype, printed),
    ):
        # Slots without a true box have finite predictions: a mask that multiplies lets NaN through.
        pred = probe(boxes, SLOTS, pred_dtype).nan_to_num(nan=7.0)
        expected = truth(pred, boxes)
        dtypes = f"{pred_dtype}/{boxes[0].dtype}".replace("torch.", "")
        columns = {"case": "values", "dtypes": dtypes}
        run.record(columns | {"variant": "the formula in fp64"}, "GIoU", "", 1 - expected.loss)
        wraps = boxes[0].dtype is torch.uint8
        for name, loss in article.losses.items():
            targets = moved(list(article.variants[name].collate(boxes, SLOTS)), run.device)
            leaf = pred.to(run.device).requires_grad_()
            value = loss(leaf, *targets).item()
            giou = value if name in ITS else 1 - value
            run.record(columns | {"variant": name}, "GIoU", "", giou)
            if not (wraps and name in (LOOP, CONCAT, MASK)):
                check_mean(name, giou, expected, dtypes)
    run.show({"case": "values", "dtypes": dtypes})


def check_mean(name: str, giou: float, expected: Truth, dtypes: str) -> None:
    if not abs((1 - giou) - expected.loss) <= expected.loss_allowed:  # NaN must fail
        raise DisagreementError(
            f"{name}: a mean GIoU of {giou:.9g}, but the formula in fp64 gives "
            f"{1 - expected.loss:.9g}; {dtypes}"
        )


# --- Measuring ---


def check_options(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    try:
        find_nvcc()
    except UnavailableError as reason:
        parser.error(str(reason))


def measure(run: Run) -> None:
    scale = SCALES["small" if run.quick else "seed"]
    scale = dataclasses.replace(scale, slots=SLOTS)
    pictures = RandomPictures("train", SEED, SLOTS - 1)
    batches = [make_batch(pictures, number, scale.batch) for number in range(BATCHES)]
    kernel = Kernel(run.device)
    variants = variants_of(kernel)
    network = Network(scale, run.device)
    article = Article(kernel, variants, run.load(variants, run.device), network, batches)
    check_values(run, article, scale.predictions)
    describe_batches(run, article)
    time_parts(run, article)
    time_steps(run, article)
    count_parts(run, article)


class Network:
    def __init__(self, scale: Scale, device: torch.device) -> None:
        with device:
            self.model = FaceDetector(scale)
        self.model.initialise(SEED)
        self.scale = scale
        self.compiled = torch.compile(self.model) if scale.compiled else self.model

    def autocast(self) -> torch.autocast:
        enabled = self.scale.predictions is torch.bfloat16
        return torch.autocast("cuda", torch.bfloat16, enabled=enabled)

    def __call__(self, images: Tensor) -> Tensor:
        with self.autocast():
            return self.compiled(images)


@dataclasses.dataclass(frozen=True)
class Article:
    kernel: Kernel
    variants: dict[str, Variant]
    losses: dict[str, Loss]  # of those that can run here
    network: Network
    batches: list[Batch]


def describe_batches(run: Run, article: Article) -> None:
    about = {"case": "batches", "variant": "all"}
    counts_of = [len(each) for batch in article.batches for each in batch.boxes]
    run.record(about, "valid", "%", 100 * sum(counts_of) / (len(counts_of) * SLOTS))
    run.record(about, "most boxes of a picture", "", max(counts_of))
    run.record(about, "pictures without a box", "%", 100 * counts_of.count(0) / len(counts_of))
    for name in (CONCAT, MASK, "boxloss lengths", RAGGED):
        targets = article.variants[name].collate(article.batches[0].boxes, SLOTS)
        size = sum(each.nbytes for each in targets)
        run.record(about | {"variant": name}, "true boxes", "bytes", size)


def time_parts(run: Run, article: Article) -> None:
    """As the article fences them, but all variants in each step, in an order that is drawn anew;
    copy data has the pictures, too."""
    order, clock = random.Random(SEED), Stopwatch(run.device)
    losses = article.losses
    laid_out = [
        {name: batch.laid_out(article.variants[name]) for name in losses}
        for batch in article.batches
    ]
    for step in range(6 if run.quick else STEPS):
        batch = article.batches[step % BATCHES]
        for name in order.sample(list(losses), len(losses)):
            with clock(name, COPY):
                images = batch.images.to(run.device, non_blocking=True)
                targets = moved(laid_out[step % BATCHES][name], run.device)
            with clock(name, FORWARD):
                pred = article.network(images)
            leaf = pred.detach().requires_grad_()
            with clock(name, LOSS):
                losses[name](leaf, *targets)
            del pred
    milliseconds = clock.milliseconds()
    for name in losses:
        about = {"case": "parts", "variant": name}
        of_parts = {part: milliseconds[name, part] for part in PARTS}
        for part, samples in of_parts.items():
            run.record(about, part, "ms", samples)
        steps = zip(*of_parts.values(), strict=True)
        run.record(about, SHARE, "%", [100 * step[-1] / sum(step) for step in steps])
    run.show({"case": "parts"}, variants=list(losses), ratios=(LOSS,))


def time_steps(run: Run, article: Article) -> None:
    """Forward, loss and backward through the network, all boxes on the device."""
    network, batch = article.network, article.batches[0]
    images = batch.images.to(run.device)
    lengths, flat = (
        tuple(each.to(run.device) for each in layout(batch.boxes, SLOTS))
        for layout in (padded_with_lengths, ragged)
    )
    ours = boxloss("offsets")

    def compiled_together(loss: Loss, mode: str | None = None) -> Loss:
        def both(images: Tensor, *targets: Tensor) -> Tensor:
            return loss(network.model(images), *targets)

        return torch.compile(both, dynamic=False, mode=mode)

    def apart(loss: Loss) -> Loss:
        return lambda images, *targets: loss(network(images), *targets)

    def step(loss: Loss, targets: Targets) -> Tensor:
        torch.compiler.cudagraph_mark_step_begin()
        network.model.zero_grad(set_to_none=True)
        with network.autocast():
            value = loss(images, *targets)
        value.backward()
        return value

    slow = [] if run.quick else [None, "reduce-overhead"]
    calls: Calls = {
        "mask": partial(step, apart(masked_loss), lengths),
        RAGGED: partial(step, apart(ours), flat),
    }
    for mode in slow:
        words = f"compiled together{f', {mode}' if mode else ''}"
        calls[f"mask, {words}"] = partial(step, compiled_together(masked_loss, mode), lengths)
        calls[f"{RAGGED}, {words}"] = partial(step, compiled_together(ours, mode), flat)
    for name, call in list(calls.items()):
        try:
            compile_now(call)
        except UnavailableError as reason:
            run.skip(name, str(reason))
            del calls[name]
    run.time({"case": "training step"}, calls, ("wall",))


def count_parts(run: Run, article: Article) -> None:
    """What each loss asks of torch and of the GPU; and the parts of its kernel's loss."""
    kernel, network, batch = article.kernel, article.network, article.batches[0]
    variants, losses = article.variants, article.losses
    images = batch.images.to(run.device)
    leaf = network(images).detach().requires_grad_()
    about = {"case": "batches", "variant": "network"}
    run.record(about, "peak", "bytes", peak_of(network, images))
    on_device = {name: moved(batch.laid_out(each), run.device) for name, each in variants.items()}
    for name in (LOOP, CONCAT, MASK, KERNEL, RAGGED):
        count = operators(partial(losses[name], leaf, *on_device[name]))
        run.record({"case": "counts", "variant": name}, "operators", "", count)
    # A trace of many launches is large: one call of these is enough.
    calls_in_trace = dict.fromkeys((LOOP, CONCAT), 1)
    for name, loss in losses.items():
        call = partial(loss, leaf, *on_device[name])
        run.count({"case": "counts"}, {name: call}, calls_in_trace.get(name, CALLS_IN_TRACE))
    (target,) = on_device[MASK]
    boxes = its.cast(leaf, target)
    written = kernel.launch(False, *boxes)
    parts: Calls = {
        "casts": partial(its.cast, leaf, target),
        KERNEL: partial(kernel.launch, False, *boxes),
        BRANCH: partial(kernel.launch, True, *boxes),
        "reductions": partial(its.reduced, *written),
    }
    run.count({"case": "parts of its kernel's loss"}, parts)


def peak_of(network: Network, images: Tensor) -> int:
    torch.cuda.reset_peak_memory_stats()
    pred = network(images)
    torch.cuda.synchronize()
    del pred
    return torch.cuda.max_memory_allocated()
