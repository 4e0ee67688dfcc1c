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
    boxes = (case.pred, case.layouts[layout][0])
    pred_size, target_size = (each.element_size() for each in boxes)
    if name != CAST:
        return _of_kernels(case, layout, pred_size, target_size, with_backward)
    casts = [_of_cast(each) for each in boxes]
    moved = _of_kernels(case, layout, FLOAT32_SIZE, FLOAT32_SIZE, with_backward)
    return moved + sum(casts) + with_backward * casts[0]  # autograd casts the gradient back


def _of_cast(boxes: Tensor) -> int:
    if boxes.dtype == torch.float32:
        return 0
    return boxes.numel() * (boxes.element_size() + FLOAT32_SIZE)


def _of_kernels(
    case: Case, layout: str, pred_size: int, target_size: int, with_backward: bool
) -> int:
    """Of the loss and, with it, of the gradient, which reads the boxes once more."""
    slots = case.pred.shape[:-1].numel()
    targets = case.boxes if layout == "lengths" else slots  # padding is found out by reading it
    reads = 4 * (case.boxes * pred_size + targets * target_size)
    reads += sum(each.nbytes for each in case.layouts[layout][1:])
    return 2 * reads + 4 * slots * pred_size if with_backward else reads
