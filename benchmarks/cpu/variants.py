# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Who computes the losses on the CPU, and how fast its memory is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import get_args

import torch
from boxloss.torch import box_loss
from boxloss.torch.losses import Loss as Word
from torch import Tensor

from ..common.cases import Case
from ..common.losses import Loss
from ..common.timing import Calls
from ..loss_only.peers import Peer, boxloss, dense_loss, load_dense_torchvision, peers

NEEDS_GPU = ("Triton", "fast-box-ops")


@dataclass(frozen=True)
class Setting:
    """What is timed side by side."""

    kind: str
    case: Case
    peers: dict[str, Peer]  # the first is what ratios are taken to
    limits: Callable[[Case, str], Calls]  # of the case and the pass


# Neighbouring pairs


def dense(case: Case, implementations: Sequence[str]) -> Setting:
    """GIoU, beside the best that memory allows."""
    return Setting("dense", case, _on_cpu(peers("dense", None, implementations)), memory_limits)


def losses(case: Case) -> Setting:
    """Each loss beside GIoU."""
    words: list[Word] = sorted(get_args(Word), key=lambda word: word != "giou")  # that one first
    return Setting("losses", case, {word: _loss(word) for word in words}, lambda *_: {})


def _loss(word: Word) -> Peer:
    return Peer("dense", lambda _: partial(box_loss, loss=word))


def _on_cpu(found: dict[str, Peer]) -> dict[str, Peer]:
    return {name: peer for name, peer in found.items() if not name.startswith(NEEDS_GPU)}


SUMS = "sums"
IN_PLACE, IN_NEW = "sums twice, zero_", "sums twice, zeros_like"


def memory_limits(case: Case, measured: str) -> Calls:
    """Of both box tensors."""
    return _reading(
        [case.pred.nbytes, *(each.nbytes for each in case.layouts["dense"])], case, measured
    )


def _reading(sizes: Sequence[int], case: Case, measured: str) -> Calls:
    """Reading so many bytes, by torch's sum of ones: of boxes' bytes some would be subnormal. For
    backward reading them again and writing as many as the gradient has: into memory that is there,
    and into new memory, as autograd does, which the system may first have to give."""
    gradient = torch.zeros_like(case.pred.detach())
    tensors = [torch.ones(size // 4) for size in sizes]

    def read() -> None:
        for each in tensors:
            each.sum()

    def read_and_write(write: Callable[[Tensor], Tensor]) -> None:
        read()
        read()
        write(gradient)

    if measured == "forward":
        return {SUMS: read}
    return {
        IN_PLACE: partial(read_and_write, torch.zero_),
        IN_NEW: partial(read_and_write, torch.zeros_like),
    }


# Few boxes in many slots


def retinanet(case: Case, implementations: Sequence[str]) -> Setting:
    """By mask, beside the boxes that the mask picks, and reading the mask."""
    found = {
        "boxloss": boxloss("mask"),
        **{name: boxloss("mask", name) for name in implementations},
        "picked, eager": Peer("mask", lambda _: _of_picked(dense_loss)),
        "picked, torchvision": Peer("mask", lambda case: _of_picked(load_dense_torchvision(case))),
    }
    return Setting("sparse", case, found, mask_limits)


def _of_picked(loss: Loss) -> Loss:
    return lambda pred, target, mask: loss(pred[mask], target[mask])


def mask_limits(case: Case, measured: str) -> Calls:
    """Of the mask alone; and what torch takes to count it."""
    _, mask = case.layouts["mask"]
    counting: Calls = {"mask.sum()": mask.sum} if measured == "forward" else {}
    return counting | _reading([mask.nbytes], case, measured)


def seed(case: Case, implementations: Sequence[str]) -> Setting:
    """Each layout, beside the padded formula."""
    return Setting("sparse", case, _on_cpu(peers("seed", None, implementations)), lambda *_: {})
