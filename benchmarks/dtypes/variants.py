# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""boxloss on boxes as they are, what casts them first, and the bytes that each has to move."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..common.cases import Case
from ..common.counts import operator_bytes
from ..common.losses import Loss
from ..loss_only.peers import Peer, boxloss, peers

NATIVE = "native"
CAST = "cast, then boxloss"
EAGER = "cast, then eager"
COMPILED = "cast and formula, compiled"

# The dtypes of what torch.compile is started for: it takes seconds each time.
COMPILED_PAIRS = {"dense": ("bf16/f32", "bf16/u8"), "lengths": ("bf16/u8",), "padded": ()}
FLOAT32_SIZE = torch.float32.itemsize


def variants(layout: str, pair: str, with_compiled: bool) -> dict[str, Peer]:
    """Those of a layout of the true boxes: "dense", "lengths" or "padded"."""
    known = peers("dense" if layout == "dense" else "seed", None)
    found = {NATIVE: boxloss(layout), CAST: cast_first(layout)}
    if layout == known["eager"].layout:  # which needs lengths where slots are empty
        found[EAGER] = known["eager"]
    if with_compiled and pair in COMPILED_PAIRS[layout]:
        found[COMPILED] = known["torch.compile"]
    return found


def cast_first(layout: str) -> Peer:
    def load(case: Case) -> Loss:
        loss = boxloss(layout).load(case)
        return lambda pred, target, *where: loss(pred.float(), target.float(), *where)

    return Peer(layout, load)


def least_bytes(
    name: str, case: Case, layout: str, with_backward: bool, call: Callable[[], Any]
) -> int:
    """What a variant has to move, were there no cache. Each of torch's operators moves all of its
    tensors; a kernel of the loss, what it cannot do without. Compiled code is taken to be the best
    that a compiler can make: such a kernel in each pass."""
    if name == EAGER:
        return operator_bytes(call)
    pred, (target, *where) = case.pred, case.layouts[layout]
    sizes = [each.element_size() for each in (pred, target)]
    if name != CAST:
        return _kernels(case, layout, *sizes, with_backward, where)
    moved = _kernels(case, layout, FLOAT32_SIZE, FLOAT32_SIZE, with_backward, where)
    casts = [
        each.numel() * (each.element_size() + FLOAT32_SIZE) if _is_cast(each) else 0
        for each in (pred, target)
    ]
    # Autograd casts the gradient back.
    return moved + sum(casts) + with_backward * casts[0]


def _is_cast(boxes: Tensor) -> bool:
    return boxes.dtype != torch.float32


def _kernels(
    case: Case,
    layout: str,
    pred_size: int,
    target_size: int,
    with_backward: bool,
    where: list[Tensor],
) -> int:
    """Of the loss and, with it, of the gradient, which reads the boxes once more."""
    slots = case.pred.shape[:-1].numel()
    targets = case.boxes if layout == "lengths" else slots  # padding is found out by reading it
    reads = 4 * (case.boxes * pred_size + targets * target_size)
    reads += sum(each.nbytes for each in where)
    return 2 * reads + 4 * slots * pred_size if with_backward else reads
