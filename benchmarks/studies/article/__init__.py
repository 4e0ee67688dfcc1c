# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What does each step of the article bring, and what does boxloss bring beside it?

The article's five losses as it describes them, forward only, on its own kind of batch and with its
network, beside boxloss and its peers; what each gives on three kinds of predictions; launches,
waits and memory; its kernels, and what stands around them; a training step with network and loss
compiled together, and with a synchronization after each part. On a CPU only the values, without its
kernels; on a GPU it needs nvcc.

`giou.cu` has the kernels of its two texts, written anew. --printed takes the article's own source
of the operator, one file for each text.
"""

from __future__ import annotations

import argparse
import dataclasses
import random
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor, nn

from ...common.losses import Loss, masked_loss
from ...runner.agreement import DisagreementError, Truth
from ...runner.clocks import Call, Calls
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
from ..face_detector.data import PICTURE, RandomPictures
from ..face_detector.model import SCALES, Scale
from . import losses as its
from .losses import SLOTS, find_nvcc, load_kernel, load_kernels, load_printed

BATCHES, STEPS = 4, 40
PARTS = COPY, FORWARD, LOSS = ("copy data", "forward", "calc loss")  # by the article's words
LOOP, CONCAT, MASK = EAGER = ("its loop", "its concat", "its mask")
EARLIER_EAGER = ("its earlier loop", "its earlier concat", "its earlier mask")
EARLIER, KERNEL, BRANCH = "its earlier kernel", "its kernel", "its kernel, with its branch"
SHARE = "share of the loss"
RAGGED = "boxloss ragged"
PEERS = ("torch.compile", "Triton", "boxloss padded", "boxloss lengths", RAGGED)
OVERHEAD = "torch.compile, reduce-overhead"
OF_ONE_MINUS_GIOU = (OVERHEAD, *PEERS)  # the article's are of GIoU

# --- Variants ---


def variants_of(printed: list[Path]) -> dict[str, Variant]:
    def kernel(clamps: bool, branch: bool) -> Variant:
        return Variant(partial(load_kernel, clamps=clamps, branch=branch), collate=padded)

    return {
        **eager(EAGER, clamps=True),
        EARLIER: kernel(clamps=False, branch=False),
        KERNEL: kernel(clamps=True, branch=False),
        BRANCH: kernel(clamps=True, branch=True),
        **{
            f"as printed: {each.stem}": Variant(partial(load_printed, each), collate=padded)
            for each in printed
        },
        OVERHEAD: Variant(load_reduced_overhead, slow_to_start=True),
        **{name: USUAL[name] for name in PEERS},
    }


def eager(names: tuple[str, str, str], clamps: bool) -> dict[str, Variant]:
    losses = (its.loop, as_list), (its.concat, as_list), (its.mask, padded)
    return {
        name: Variant(lambda _, loss=loss: partial(loss, clamps=clamps), collate=collate)
        for name, (loss, collate) in zip(names, losses, strict=True)
    }


def load_reduced_overhead(device: torch.device) -> Loss:
    if device.type == "cpu":
        raise UnavailableError("it has CUDA graphs")
    compiled = torch.compile(masked_loss, dynamic=False, mode="reduce-overhead")

    def loss(pred: Tensor, *targets: Tensor) -> Tensor:
        torch.compiler.cudagraph_mark_step_begin()
        return compiled(pred, *targets)

    return loss


# --- The batches ---


@dataclasses.dataclass(frozen=True)
class Batch:
    images: Tensor  # pinned where there is a GPU, as are the boxes
    boxes: list[Tensor]

    def laid_out(self, variant: Variant) -> list[Tensor]:
        return [each.pin_memory() for each in variant.collate(self.boxes, SLOTS)]


def make_batch(pictures: RandomPictures, number: int, count: int) -> Batch:
    images, boxes = zip(*(pictures[number * count + index] for index in range(count)), strict=True)
    stacked = torch.stack(images)
    return Batch(stacked.pin_memory() if torch.cuda.is_available() else stacked, list(boxes))


def moved(targets: Sequence[Tensor], device: torch.device) -> Targets:
    return tuple(each.to(device, non_blocking=True) for each in targets)


# --- Agreement ---


def check_values(run: Run, article: Article) -> None:
    """Of float32 boxes, and of the article's own dtypes. The article's eager losses may be wrong on
    its dtypes, whose areas wrap, and all of its earlier text and what is printed on all: what they
    give is a result. All else must be right."""
    earlier = eager(EARLIER_EAGER, clamps=False)
    article = dataclasses.replace(
        article,
        variants=article.variants | earlier,
        losses=article.losses | run.load(earlier, run.device),
    )
    its_dtypes = article.network.scale.predictions, torch.uint8
    for case, (pred, boxes) in predictions(article).items():
        for pred_dtype, box_dtype in ((torch.float32, torch.float32), its_dtypes):
            check_case(run, article, case, pred.to(pred_dtype), [b.to(box_dtype) for b in boxes])


def predictions(article: Article) -> dict[str, tuple[Tensor, list[Tensor]]]:
    """With the boxes that they are paired with; as many images as the batch has in all, so that
    nothing is compiled anew. Slots without a ground-truth box have finite predictions: a mask that
    multiplies lets NaN through."""
    batch = article.batches[0]
    near = probe(batch.boxes, SLOTS, torch.float32).nan_to_num(nan=7.0)
    untrained = article.network(batch.images.to(article.network.device)).detach().cpu()
    pair = torch.tensor([[0, 0, 10, 10], [20, 20, 30, 30]], dtype=torch.uint8)
    images = len(batch.boxes)
    return {
        "values": (near, batch.boxes),
        "values, untrained network": (untrained, batch.boxes),
        "values, boxes apart": (pair[0].expand(images, SLOTS, 4), [pair[1:]] * images),
    }


def check_case(run: Run, article: Article, case: str, pred: Tensor, boxes: list[Tensor]) -> None:
    expected = truth(pred, boxes)
    dtypes = f"{pred.dtype}/{boxes[0].dtype}".replace("torch.", "")
    columns = {"case": case, "dtypes": dtypes}
    run.record(columns | {"variant": "the formula in fp64"}, "GIoU", "", 1 - expected.loss)
    may_be_wrong = {
        name for name in article.variants if name.startswith(("its earlier", "as printed"))
    }
    if boxes[0].dtype is torch.uint8:
        may_be_wrong.update(EAGER)
    for name, loss in article.losses.items():
        targets = moved(article.variants[name].collate(boxes, SLOTS), run.device)
        leaf = pred.to(run.device).requires_grad_()
        value = loss(leaf, *targets).item()
        giou = 1 - value if name in OF_ONE_MINUS_GIOU else value
        run.record(columns | {"variant": name}, "GIoU", "", giou)
        if name not in may_be_wrong:
            check_mean(name, giou, expected, f"{case}, {dtypes}")
    run.show(columns)


def check_mean(name: str, giou: float, expected: Truth, dtypes: str) -> None:
    if not abs((1 - giou) - expected.loss) <= expected.loss_allowed:  # NaN must fail
        raise DisagreementError(
            f"{name}: a mean GIoU of {giou:.9g}, but the formula in fp64 gives "
            f"{1 - expected.loss:.9g}; {dtypes}"
        )


# --- Measuring ---


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--printed",
        nargs="+",
        default=[],
        type=Path,
        metavar="FILE.cu",
        help="the article's source of its operator, as printed; the name is an identifier",
    )


def check_options(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if options.device.type == "cpu":
        options.cases = options.cases or [VALUES]
        if options.cases != [VALUES]:
            parser.error(f"--cases: on a CPU there is only {VALUES}")
        return
    try:
        find_nvcc()
    except UnavailableError as reason:
        parser.error(str(reason))


def measure(run: Run) -> None:
    scale = SCALES["small" if run.quick else "seed"]
    scale = dataclasses.replace(scale, slots=SLOTS)
    pictures = RandomPictures("train", SEED, SLOTS - 1)
    batches = [make_batch(pictures, number, scale.batch) for number in range(BATCHES)]
    variants = variants_of(run.options.printed)
    network = Network(scale, run.device)
    article = Article(variants, run.load(variants, run.device), network, batches)
    for case in run.options.cases or CASES:
        CASES[case](run, article)


class ItsNetwork(nn.Module):
    """The article's, to the letter; `face_detector` has one that can be trained. Blocks of
    convolution, max-pool and ReLU, then two linear layers: `slots` boxes, xyxy pixels, whose
    corners are in no order."""

    def __init__(self, channels: tuple[int, ...], hidden: int, slots: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for before, after in pairwise(channels):
            layers += [nn.Conv2d(before, after, 3, padding="same"), nn.MaxPool2d(2), nn.ReLU()]
        side = PICTURE // 2 ** (len(channels) - 1)
        layers += [nn.Flatten(), nn.Linear(channels[-1] * side * side, hidden), nn.ReLU()]
        layers += [nn.Linear(hidden, 4 * slots), nn.Unflatten(1, (slots, 4))]
        self.layers = nn.Sequential(*layers)

    def forward(self, pictures: Tensor) -> Tensor:
        boxes: Tensor = self.layers(pictures[:, None].float())
        return boxes


class Network:
    def __init__(self, scale: Scale, device: torch.device) -> None:
        torch.manual_seed(SEED)
        with device:
            self.model = ItsNetwork(scale.channels, scale.hidden, scale.slots)
        self.scale, self.device = scale, device
        compiled = scale.compiled and device.type == "cuda"  # where it is timed
        self.compiled = torch.compile(self.model) if compiled else self.model

    def autocast(self) -> torch.autocast:
        enabled = self.scale.predictions is torch.bfloat16
        return torch.autocast(self.device.type, torch.bfloat16, enabled=enabled)

    def __call__(self, images: Tensor) -> Tensor:
        with self.autocast():
            return self.compiled(images)


@dataclasses.dataclass(frozen=True)
class Article:
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
    describe_batches(run, article)
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
    """Network and loss one after the other, the same with a synchronization after each part, as the
    article has it, and compiled together."""
    network, boxes, calls = article.network, article.batches[0].boxes, {}
    losses = {  # with boxes on the device
        "mask": (masked_loss, moved(padded_with_lengths(boxes, SLOTS), network.device)),
        RAGGED: (boxloss("offsets"), moved(ragged(boxes, SLOTS), network.device)),
    }
    for name, (loss, of) in losses.items():
        calls[name] = step(article, behind(network, loss), of)
        fenced = behind(network, loss, torch.cuda.synchronize)
        calls[f"{name}, fenced"] = step(article, fenced, of)
    for mode in [] if run.quick else [None, "reduce-overhead"]:
        words = f"compiled together{f', {mode}' if mode else ''}"
        for name, (loss, of) in losses.items():
            together = torch.compile(behind(network.model, loss), dynamic=False, mode=mode)
            calls[f"{name}, {words}"] = step(article, together, of)
    for name, call in list(calls.items()):
        try:
            compile_now(call)
        except UnavailableError as reason:
            run.skip(name, str(reason))
            del calls[name]
    run.time({"case": "training step"}, calls, ("wall",))


def behind(network: Loss, loss: Loss, end_part: Callable[[], None] = lambda: None) -> Loss:
    """The loss of images."""

    def both(images: Tensor, *targets: Tensor) -> Tensor:
        pred = network(images)
        end_part()
        value = loss(pred, *targets)
        end_part()
        return value

    return both


def step(article: Article, of_images: Loss, targets: Targets) -> Call:
    """Forward, loss and backward through the network."""
    network = article.network
    images = article.batches[0].images.to(network.device)

    def call() -> Tensor:
        torch.compiler.cudagraph_mark_step_begin()
        network.model.zero_grad(set_to_none=True)
        with network.autocast():
            value = of_images(images, *targets)
        value.backward()
        return value

    return call


def count_parts(run: Run, article: Article) -> None:
    """What each loss asks of torch and of the GPU; and the parts of its kernels' losses."""
    kernels, network, batch = load_kernels(run.device), article.network, article.batches[0]
    variants, losses = article.variants, article.losses
    images = batch.images.to(run.device)
    leaf = network(images).detach().requires_grad_()
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
    written = kernels.gious(*boxes, True, False)
    parts: Calls = {
        "casts": partial(its.cast, leaf, target),
        EARLIER: partial(kernels.gious, *boxes, False, False),
        KERNEL: partial(kernels.gious, *boxes, True, False),
        BRANCH: partial(kernels.gious, *boxes, True, True),
        "reductions": partial(kernels.mean, *written),
    }
    run.count({"case": "parts of its kernel's loss"}, parts)


VALUES = "values"
CASES = {VALUES: check_values, "parts": time_parts, "steps": time_steps, "counts": count_parts}
