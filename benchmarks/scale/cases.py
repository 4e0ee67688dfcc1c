# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What is timed: dense pairs, up to as many as the memory holds, and batches of images whose
numbers of boxes are drawn from three distributions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from boxloss.torch import giou_loss
from torch import Tensor

from ..common.cases import Case, dtypes_of, near, ragged_case, seed_case, true_boxes
from ..common.losses import masked_loss
from ..loss_only.peers import dense_loss
from .settings import Settings

Row = dict[str, Any]

CHUNK = 2**24  # boxes that are made, or looked at in fp64, at once
MOST_EAGER = 10**7  # slots: the eager formula is for comparison, and slow
RAGGED_PAIR = "bf16/u8"  # the article's
LAYOUTS = ("padded", "lengths", "offsets")
# The gradient of a graph, of a warm-up on another stream, and of the call outside; then CHUNK's.
GRADIENTS, WORKING_BYTES = 3, 6 * 2**30


@dataclass(frozen=True)
class Subject:
    """Losses of the same predictions, side by side."""

    pred: Tensor  # a leaf that requires its gradient
    losses: dict[str, Callable[[], Tensor]]
    bytes: dict[str, tuple[int, int]]  # the least that forward, and the backward behind it, move
    boxes: int
    longest: int  # boxes of one image, where there are images


# Dense pairs


def bytes_of_pair(pair: str) -> tuple[int, int]:
    """That forward reads, and that backward reads and writes."""
    pred, target = (4 * dtype.itemsize for dtype in dtypes_of(pair))
    return pred + target, pred + target + pred


def needed_bytes(pair: str, boxes: int) -> int:
    """Of a GPU's memory, to time them."""
    pred, target = (4 * dtype.itemsize for dtype in dtypes_of(pair))
    return boxes * (pred * (1 + GRADIENTS) + target) + WORKING_BYTES


def chunks(boxes: int, size: int = CHUNK) -> Iterator[slice]:
    for first in range(0, boxes, size):
        yield slice(first, min(first + size, boxes))


def dense_pairs(
    pair: str, boxes: int, device: torch.device, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """As common.cases makes them, but without a second copy of all."""
    generator = torch.Generator(device).manual_seed(seed)
    pred, target = (torch.empty(boxes, 4, dtype=each, device=device) for each in dtypes_of(pair))
    for part in chunks(boxes):
        truths = true_boxes(part.stop - part.start, generator)
        target[part] = truths
        pred[part] = near(truths, generator)
    return pred.requires_grad_(), target


def dense_subject(pred: Tensor, target: Tensor, pair: str) -> Subject:
    boxes = len(pred)
    losses: dict[str, Callable[[], Tensor]] = {"boxloss": partial(giou_loss, pred, target)}
    if boxes <= MOST_EAGER:
        losses["eager"] = partial(dense_loss, pred, target)
    forward, backward = (boxes * each for each in bytes_of_pair(pair))
    return Subject(pred, losses, dict.fromkeys(losses, (forward, backward)), boxes, 0)


# Batches of images


def ragged_subject(case: Case) -> Subject:
    """boxloss on each layout, and the eager formula on the padded one."""
    pred = case.pred
    target, lengths = case.layouts["lengths"]
    flat, offsets = case.layouts["offsets"]
    losses: dict[str, Callable[[], Tensor]] = {
        "padded": partial(giou_loss, pred, target, zero_padded=True),
        "lengths": partial(giou_loss, pred, target, lengths=lengths),
        "offsets": partial(giou_loss, pred, flat, offsets=offsets),
    }
    if pred.shape[0] * pred.shape[1] <= MOST_EAGER:
        losses["eager"] = partial(masked_loss, pred, target, lengths)
    guesses = case.boxes * 4 * pred.element_size()
    all_slots, one_each = target.nbytes + guesses, flat.nbytes + guesses
    read = {
        "padded": all_slots,
        "lengths": one_each + lengths.nbytes,
        "offsets": one_each + offsets.nbytes,
        "eager": all_slots,
    }
    # A gradient is written whole, zeros too.
    moved = {name: (read[name], read[name] + pred.nbytes) for name in losses}
    return Subject(pred, losses, moved, case.boxes, int(lengths.max()))


def article_case(images: int, slots: int, device: torch.device) -> Case:
    return seed_case(RAGGED_PAIR, device, (images, slots))


def _half_normal(images: int, generator: torch.Generator) -> Tensor:
    return torch.randn(images, generator=generator, dtype=torch.float64).abs()


def _uniform(images: int, generator: torch.Generator) -> Tensor:
    return torch.rand(images, generator=generator, dtype=torch.float64)


def _pareto(images: int, generator: torch.Generator) -> Tensor:
    """Heavy-tailed: of a few images are most boxes."""
    return (1 - _uniform(images, generator)) ** (-1 / PARETO)


PARETO = 1.2  # its exponent: the mean is finite, the variance is not
EVEN, HEAVY_TAILED = "uniform", "Pareto"
DISTRIBUTIONS = {"half-normal": _half_normal, EVEN: _uniform, HEAVY_TAILED: _pareto}


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
    return ragged_case(distribution, RAGGED_PAIR, lengths, shape[1], device, generator)


# The sweeps


@dataclass(frozen=True)
class Job:
    """One point of a sweep: what tells its rows from others'."""

    where: Row
    case: Callable[[torch.device], Case] | None  # None: dense pairs

    @property
    def name(self) -> str:
        return ", ".join(
            f"{value:,}" if isinstance(value, int) else str(value) for value in self.where.values()
        )


def jobs(settings: Settings) -> Iterator[Job]:
    """The largest come last: what may fail there costs nothing else."""
    images, slots = settings.article
    for batch in settings.batches:
        yield Job({"sweep": "images", "size": batch}, partial(article_case, batch, slots))
    for number in settings.slots:
        yield Job({"sweep": "slots", "size": number}, partial(article_case, images, number))
    for mean in settings.means:
        for distribution in DISTRIBUTIONS:
            yield Job(
                {"sweep": "distributions", "distribution": distribution, "mean": mean},
                partial(crowd_case, distribution, mean, settings.crowd),
            )
    for boxes in settings.sizes:
        for pair in settings.pairs:
            yield Job({"sweep": "pairs", "pair": pair, "size": boxes}, None)
