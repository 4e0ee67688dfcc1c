# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""One loss, many ways to compute it over pictures with varying numbers of boxes.

A variant is a collate function, which lays out the true boxes of a batch, and a loss over the
predictions and what was collated. All mean the same: prediction k of a picture is paired with its
k-th true box, and the losses 1 - GIoU of all pairs are summed and divided by their number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

import torch
from boxloss.torch import collate_padded, collate_ragged, giou_loss, use_implementation
from torch import Tensor

from ..common.losses import (
    EPS,
    Loss,
    giou,
    load_compiled,
    load_jax,
    load_torchvision,
    load_triton,
    masked_loss,
)

Targets = tuple[Tensor, ...]
CollateBoxes = Callable[[list[Tensor], int], Targets]  # (an (n, 4) tensor a picture, slots)


@dataclass(frozen=True)
class Variant:
    summary: str
    collate: CollateBoxes
    load: Callable[[], Loss]  # raises UnavailableError
    slow_to_start: bool = False  # left out at a small scale, unless asked for by name
    gpu_only: bool = False
    implementation: str | None = None  # of boxloss, where not the device's best

    def chosen(self) -> AbstractContextManager[None]:
        """For forward and backward: the latter asks for the implementation at its own time."""
        return use_implementation(self.implementation) if self.implementation else nullcontext()


# How the true boxes are laid out


def as_list(boxes: list[Tensor], slots: int) -> Targets:
    return tuple(boxes)


def padded(boxes: list[Tensor], slots: int) -> Targets:
    target, _ = collate_padded(boxes, slots)
    return (target,)


def padded_with_lengths(boxes: list[Tensor], slots: int) -> Targets:
    return tuple(collate_padded(boxes, slots))


def ragged(boxes: list[Tensor], slots: int) -> Targets:
    return tuple(collate_ragged(boxes))


# The losses


def loop_loss(pred: Tensor, *boxes: Tensor) -> Tensor:
    total = torch.zeros((), device=pred.device)
    for guesses, truths in zip(pred, boxes, strict=True):
        total = total + (1 - giou(guesses[: len(truths)].float(), truths.float())).sum()
    return total / max(sum(map(len, boxes)), 1)


def concatenated_loss(pred: Tensor, *boxes: Tensor) -> Tensor:
    guesses = torch.cat([row[: len(truths)] for row, truths in zip(pred, boxes, strict=True)])
    truths = torch.cat(boxes)
    return (1 - giou(guesses.float(), truths.float())).sum() / max(len(truths), 1)


def boxloss_padded(pred: Tensor, target: Tensor) -> Tensor:
    return giou_loss(pred, target, zero_padded=True, eps=EPS, eps_mode="clamp")


def boxloss_lengths(pred: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
    return giou_loss(pred, target, lengths=lengths, eps=EPS, eps_mode="clamp")


def boxloss_ragged(pred: Tensor, flat: Tensor, offsets: Tensor) -> Tensor:
    return giou_loss(pred, flat, offsets=offsets, eps=EPS, eps_mode="clamp")


BASELINE = "mask"  # takes the same targets as boxloss lengths

VARIANTS = {
    "mask": Variant("eager, padded and masked", padded_with_lengths, lambda: masked_loss),
    "concat": Variant("eager, all true boxes concatenated", as_list, lambda: concatenated_loss),
    "torchvision": Variant(
        "torchvision's loss, padded, boolean mask", padded_with_lengths, load_torchvision
    ),
    "torch.compile": Variant(
        "torch.compile of mask", padded_with_lengths, load_compiled, slow_to_start=True
    ),
    "jax.jit": Variant("jax.jit of mask", padded_with_lengths, load_jax, slow_to_start=True),
    "Triton": Variant(
        "Triton kernels, written by hand",
        padded_with_lengths,
        load_triton,
        slow_to_start=True,
        gpu_only=True,
    ),
    "boxloss-padded": Variant(
        "boxloss, all-zero targets are padding", padded, lambda: boxloss_padded
    ),
    "boxloss-lengths": Variant(
        "boxloss, boxes for each picture given", padded_with_lengths, lambda: boxloss_lengths
    ),
    "boxloss-ragged": Variant("boxloss, flat boxes and offsets", ragged, lambda: boxloss_ragged),
    "loop": Variant("eager, one loss for each picture", as_list, lambda: loop_loss),
}


def with_implementations(variants: dict[str, Variant], names: Iterable[str]) -> dict[str, Variant]:
    """And those of boxloss once more, by each of the implementations, too."""
    return variants | {
        name.replace("boxloss", implementation): replace(
            variant,
            summary=variant.summary.replace("boxloss", implementation),
            implementation=implementation,
        )
        for implementation in names
        for name, variant in variants.items()
        if name.startswith("boxloss")
    }


def label(name: str) -> str:
    """As tables and pictures have it."""
    return name.replace("-", " ")
