# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""How does the GIoU loss scale with boxes, images, slots and GPUs: from where on do bytes decide?

One GPU: dense pairs from 100 to a billion where the memory holds them, batches of 16 to 65,536
images, 16 to 4,096 slots, and as many boxes in all that three distributions share out among the
images. Several GPUs: the parts of a training step with one normalizer for all, in a process for
each. A model of the cost, launch + bytes / rate, is fitted to both.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from boxloss.torch import giou_loss
from torch import Tensor

from ...common.cases import SEED_SHAPE, Case, dtypes_of, near, ragged_case, seed_case, true_boxes
from ...common.exact import check, loss_allowed, sum_truth, truth
from ...common.losses import giou, masked_loss
from ...runner.agreement import Truth, compare
from ...runner.results import Row
from ...runner.run import BOTH, FORWARD, Run, UnavailableError

# --- How far each sweep goes ---

DTYPES = ("f32/f32", "bf16/u8")
RAGGED_DTYPES = "bf16/u8"  # the article's
LAYOUTS = ("padded", "lengths", "ragged")
EAGER = "eager"
MOST_EAGER = 10**7  # slots: the eager formula is for comparison, and slow


@dataclass(frozen=True)
class Sizes:
    pairs: tuple[int, ...]
    images: tuple[int, ...]  # of a batch with the article's slots
    slots: tuple[int, ...]  # of each image of the article's batch
    article: tuple[int, int]  # images and slots
    crowd: tuple[int, int]  # images and slots of the distributions
    means: tuple[float, ...]  # boxes per image of the distributions
    of_rank: tuple[int, ...]  # pairs of each GPU
    parameters: tuple[int, ...]  # of the networks whose gradients GPUs add up
    rank_rounds: int


def powers(first: int, last: int) -> tuple[int, ...]:
    return tuple(10**k for k in range(first, last + 1))


ON_GPU = Sizes(
    pairs=powers(2, 9),
    images=(16, 64, 256, 1024, 4096, 16_384, 65_536),
    slots=(16, 64, 256, 1024, 4096),
    article=SEED_SHAPE,
    crowd=(1024, 1024),
    means=(1.9, 100),
    of_rank=powers(2, 8),
    parameters=(25_000_000, 100_000_000),
    rank_rounds=40,
)
ON_CPU = replace(
    ON_GPU,
    pairs=powers(2, 7),
    images=ON_GPU.images[:5],
    slots=ON_GPU.slots[:4],
    of_rank=powers(2, 6),
    parameters=(1_000_000, 4_000_000),
    rank_rounds=10,
)
QUICK = Sizes(
    pairs=powers(2, 4),
    images=(8, 32),
    slots=(16, 64),
    article=(32, 64),
    crowd=(32, 64),
    means=(1.9, 20),
    of_rank=powers(2, 4),
    parameters=(10_000, 100_000),
    rank_rounds=3,
)

# --- Cases and variants ---

CHUNK = 2**24  # boxes that are made, or looked at in fp64, at once
# The leaf's gradient, that of a graph, of a warm-up on another stream, of a check; then CHUNK's.
GRADIENTS, WORKING_BYTES = 4, 6 * 2**30


@dataclass(frozen=True)
class Subject:
    """Losses of the same predictions, side by side."""

    pred: Tensor  # a leaf that requires its gradient
    losses: dict[str, Callable[[], Tensor]]
    check: Callable[[dict[str, Callable[[], Tensor]]], dict[str, float]]  # their errors
    columns: Row
    moved: dict[str, int] | None = None  # the least bytes of each pass, where all move the same


@dataclass(frozen=True)
class Job:
    """One point of a sweep."""

    columns: Row
    needed_bytes: int
    load: Callable[[], Subject]


def jobs(sizes: Sizes, device: torch.device) -> Iterator[Job]:
    """The largest come last: what may fail there costs nothing else."""
    images, slots = sizes.article

    def batch(columns: Row, make: Callable[[], Case]) -> Job:
        return Job(columns, 0, lambda: ragged_subject(make(), columns))

    for number in sizes.images:
        case = partial(seed_case, RAGGED_DTYPES, device, (number, slots))
        yield batch({"sweep": "images", "size": number}, case)
    for number in sizes.slots:
        case = partial(seed_case, RAGGED_DTYPES, device, (images, number))
        yield batch({"sweep": "slots", "size": number}, case)
    for mean in sizes.means:
        for name in DISTRIBUTIONS:
            columns = {"sweep": "distributions", "distribution": name, "mean": mean}
            yield batch(columns, partial(crowd_case, name, mean, sizes.crowd, device))
    for boxes in sizes.pairs:
        for dtypes in DTYPES:
            pred, target = (4 * dtype.itemsize for dtype in dtypes_of(dtypes))
            needed = boxes * (pred * (1 + GRADIENTS) + target) + WORKING_BYTES
            columns = {"sweep": "pairs", "dtypes": dtypes, "boxes": boxes}
            yield Job(columns, needed, partial(dense_subject, dtypes, boxes, device))


def bytes_of_box(dtypes: str) -> dict[str, int]:
    """The least that each pass moves."""
    pred, target = (4 * dtype.itemsize for dtype in dtypes_of(dtypes))
    return {FORWARD: pred + target, BOTH: 3 * pred + 2 * target}


def chunks(boxes: int, size: int = CHUNK) -> Iterator[slice]:
    for first in range(0, boxes, size):
        yield slice(first, min(first + size, boxes))


def dense_pairs(
    dtypes: str, boxes: int, device: torch.device, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """As common.cases makes them, but without a second copy of all."""
    generator = torch.Generator(device).manual_seed(seed)
    pred, target = (torch.empty(boxes, 4, dtype=each, device=device) for each in dtypes_of(dtypes))
    for part in chunks(boxes):
        truths = true_boxes(part.stop - part.start, generator)
        target[part] = truths
        pred[part] = near(truths, generator)
    return pred.requires_grad_(), target


def dense_subject(dtypes: str, boxes: int, device: torch.device) -> Subject:
    pred, target = dense_pairs(dtypes, boxes, device)
    losses: dict[str, Callable[[], Tensor]] = {"boxloss": partial(giou_loss, pred, target)}
    if boxes <= MOST_EAGER:
        losses[EAGER] = lambda: (1 - giou(pred.float(), target.float())).mean()
    moved = {each: boxes * of_box for each, of_box in bytes_of_box(dtypes).items()}
    columns = {"sweep": "pairs", "dtypes": dtypes, "boxes": boxes}
    return Subject(pred, losses, partial(check_dense, pred, target), columns, moved)


def ragged_subject(case: Case, columns: Row) -> Subject:
    """boxloss on each layout, and the eager formula on the padded one."""
    pred = case.pred
    target, lengths = case.layouts["lengths"]
    flat, offsets = case.layouts["offsets"]
    losses: dict[str, Callable[[], Tensor]] = {
        "padded": partial(giou_loss, pred, target, zero_padded=True),
        "lengths": partial(giou_loss, pred, target, lengths=lengths),
        "ragged": partial(giou_loss, pred, flat, offsets=offsets),
    }
    if pred.shape[0] * pred.shape[1] <= MOST_EAGER:
        losses[EAGER] = partial(masked_loss, pred, target, lengths)
    more = {"dtypes": case.pair, "boxes": case.boxes}
    return Subject(pred, losses, partial(check_ragged, case), columns | more)


def _half_normal(images: int, generator: torch.Generator) -> Tensor:
    return torch.randn(images, generator=generator, dtype=torch.float64).abs()


def _uniform(images: int, generator: torch.Generator) -> Tensor:
    return torch.rand(images, generator=generator, dtype=torch.float64)


def _pareto(images: int, generator: torch.Generator) -> Tensor:
    """Heavy-tailed: most boxes are of a few images. The mean is finite, the variance is not."""
    return (1 - _uniform(images, generator)) ** (-1 / 1.2)


DISTRIBUTIONS = {"half-normal": _half_normal, "uniform": _uniform, "Pareto": _pareto}


def lengths_of(distribution: str, images: int, slots: int, mean: float, seed: int = 0) -> Tensor:
    """Boxes per image, round(images * mean) in all whatever the distribution, shared out in
    proportion to its draws; never more than slots."""
    draws = DISTRIBUTIONS[distribution](images, torch.Generator().manual_seed(seed))
    most = (slots - 1) / mean
    shares = draws / draws.mean()
    while shares.max() > most * (1 + 1e-6):  # what is cut off goes to all others
        shares = shares.clamp(max=most)
        shares /= shares.mean()
    ends = (shares.cumsum(0) * mean).round().long()
    ends[-1] = round(images * mean)
    return ends.diff(prepend=ends.new_zeros(1))


def crowd_case(
    distribution: str, mean: float, shape: tuple[int, int], device: torch.device
) -> Case:
    lengths = lengths_of(distribution, *shape, mean)
    generator = torch.Generator().manual_seed(0)
    return ragged_case(distribution, RAGGED_DTYPES, lengths, shape[1], device, generator)


# --- Agreement with the formula in fp64, of dense pairs only a chunk at a time: not even their
# gradients would fit ---

SAMPLE = 2**16  # boxes at the beginning, in the middle and at the end, whose gradient is looked at


def check_ragged(case: Case, losses: dict[str, Callable[[], Tensor]]) -> dict[str, float]:
    """The losses' errors, or DisagreementError."""
    expected = truth(case)
    return {name: check(name, loss, case, expected) for name, loss in losses.items()}


def check_dense(
    leaf: Tensor, target: Tensor, losses: dict[str, Callable[[], Tensor]]
) -> dict[str, float]:
    """The same; of the gradients samples."""
    pred, boxes = leaf.detach(), len(leaf)
    exact = exact_sum(pred, target) / boxes
    found = {}
    for name, loss in losses.items():
        value = loss()
        (gradient,) = torch.autograd.grad(value, leaf)
        for part in samples(boxes):
            expected = _truth(pred[part], target[part], boxes, exact)
            compare(name, value, gradient[part], expected, f"{boxes:,} pairs, from {part.start:,}")
        found[name] = abs(value.item() - exact)
    return found


def exact_sum(pred: Tensor, target: Tensor) -> float:
    """Of the losses."""
    total = torch.zeros((), dtype=torch.float64, device=pred.device)
    for part in chunks(len(pred)):
        total += (1 - giou(pred[part].double(), target[part].double())).sum()
    return total.item()


def samples(boxes: int) -> list[slice]:
    """Each once: of few boxes they are the same."""
    size = min(SAMPLE, boxes)
    firsts = dict.fromkeys((0, (boxes - size) // 2, boxes - size))
    return [slice(first, first + size) for first in firsts]


def _truth(pred: Tensor, target: Tensor, boxes: int, exact: float) -> Truth:
    """Of the loss of all boxes, with the gradient of these."""
    _, *gradients = sum_truth(pred, target, boxes)
    return Truth(exact, loss_allowed(boxes), *gradients)


# --- Measuring ---

PARTS = ("one", "several")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="default: both")
    parser.add_argument(
        "--gpus", type=int, default=2, help='in part "several"; on the CPU processes; default: 2'
    )


def check_options(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if options.gpus < 2:
        parser.error(f"--gpus: {options.gpus} given; 2 or more allowed")


def measure(run: Run) -> None:
    from . import model, ranks

    sizes = QUICK if run.quick else ON_GPU if run.device.type == "cuda" else ON_CPU
    if "one" in run.options.parts:
        for job in jobs(sizes, run.device):
            measure_job(run, job)
        model.record_lines(run)
    if "several" in run.options.parts:
        ranks.measure_ranks(run, sizes)
        model.record_cluster(run)


def measure_job(run: Run, job: Job) -> None:
    if run.has(**job.columns, quantity="error"):  # which comes last
        return
    name = ", ".join(str(each) for each in job.columns.values())
    run.say(f"\n[bold]{name}[/]")
    try:
        if run.device.type == "cuda":
            torch.cuda.empty_cache()
            free, _ = torch.cuda.mem_get_info(run.device)
            if job.needed_bytes > free:
                needs, has = job.needed_bytes / 2**30, free / 2**30
                raise UnavailableError(f"needs {needs:.0f} GiB, of which {has:.0f} are free")
        subject = job.load()
        errors = subject.check(subject.losses)
        run.time_passes(
            subject.columns, subject.losses, subject.pred, ("wall", "gpu"), moved=subject.moved
        )
    except (UnavailableError, torch.OutOfMemoryError) as reason:
        run.skip(name, str(reason).partition("\n")[0])
        return
    for variant, error in errors.items():
        run.record(subject.columns | {"variant": variant}, "error", "", error)


# --- Picture ---


def draw(frame: Any, machine: dict[str, str]) -> Any:
    from .picture import draw_all

    return draw_all(frame, machine)


PICTURES = {"scale": draw}
