# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The GIoU loss as a careful Triton programmer would write it: a peer, not a part of boxloss.

One launch forward, one backward. Programs stride over the boxes and leave a partial sum and count
each; the last to finish adds the partials. A box is one 16-byte load (fp32), converted in
registers. Where only some pairs count, what tells so is read first and the rest under its mask.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.testing import do_bench_cudagraph

EPS = tl.constexpr(1e-7)
MOST_PROGRAMS = tl.constexpr(2048)
DENSE, PADDED, LENGTHS = (tl.constexpr(each) for each in range(3))

BLOCKS = [(128, 4), (256, 4), (512, 4), (1024, 8), (2048, 8)]  # boxes, warps
FORWARD_CONFIGS = [
    triton.Config({"BLOCK": block, "programs": programs}, num_warps=warps)
    for block, warps in BLOCKS
    for programs in (256, 1024, 2048)
]
BACKWARD_CONFIGS = [triton.Config({"BLOCK": block}, num_warps=warps) for block, warps in BLOCKS]


def _bench(call: Callable[[], object], quantiles: tuple[float, ...]) -> list[float]:
    """Tuned the way it is timed: back to back, from a graph."""
    torch.cuda.synchronize()  # the graph runs on a stream of its own, on inputs of this one
    return do_bench_cudagraph(call, rep=2, quantiles=quantiles)  # ms for each of ten replays


@triton.jit
def _load_boxes(boxes, at, keep, COMPUTE: tl.constexpr):
    """x1, y1, x2, y2 of the boxes numbered `at`: one wide load for each box, split in registers."""
    elements = at[:, None] * 4 + tl.arange(0, 4)[None, :]
    tile = tl.load(boxes + elements, mask=keep[:, None], other=0).to(COMPUTE)
    xs, ys = tl.split(tl.reshape(tile, (at.shape[0], 2, 2)))
    x1, x2 = tl.split(xs)
    y1, y2 = tl.split(ys)
    return x1, y1, x2, y2


@triton.jit
def _load_pairs(
    pred, target, lengths, at, n, SLOTS: tl.constexpr, COUNTED: tl.constexpr, COMPUTE: tl.constexpr
):
    """Which of the pairs numbered `at` count, and their corners."""
    keep = at < n
    if COUNTED == LENGTHS:
        keep &= at % SLOTS < tl.load(lengths + at // SLOTS, mask=keep, other=0)
    tx1, ty1, tx2, ty2 = _load_boxes(target, at, keep, COMPUTE)
    if COUNTED == PADDED:
        keep &= (tx1 != 0) | (ty1 != 0) | (tx2 != 0) | (ty2 != 0)
    px1, py1, px2, py2 = _load_boxes(pred, at, keep, COMPUTE)
    return keep, px1, py1, px2, py2, tx1, ty1, tx2, ty2


@triton.jit
def _areas(px1, py1, px2, py2, tx1, ty1, tx2, ty2):
    """Sides of the intersection and of the enclosing box; intersection, union, enclosing box."""
    width = tl.minimum(px2, tx2) - tl.maximum(px1, tx1)
    height = tl.minimum(py2, ty2) - tl.maximum(py1, ty1)
    overlaps = (width > 0) & (height > 0)
    width = tl.where(overlaps, width, 0)
    height = tl.where(overlaps, height, 0)
    outer_width = tl.maximum(px2, tx2) - tl.minimum(px1, tx1)
    outer_height = tl.maximum(py2, ty2) - tl.minimum(py1, ty1)
    inter = width * height
    union = (px2 - px1) * (py2 - py1) + (tx2 - tx1) * (ty2 - ty1) - inter
    return width, height, outer_width, outer_height, inter, union, outer_width * outer_height


@triton.autotune(FORWARD_CONFIGS, key=["n", "COUNTED"], do_bench=_bench)
@triton.jit
def _forward(
    pred,
    target,
    lengths,
    sums,
    counts,
    finished,
    loss,
    scale,
    n,
    programs,
    SLOTS: tl.constexpr,
    COUNTED: tl.constexpr,
    BLOCK: tl.constexpr,
):
    compute: tl.constexpr = loss.dtype.element_ty
    total = tl.zeros((BLOCK,), compute)
    count = tl.zeros((BLOCK,), tl.int32)
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        at = start + tl.arange(0, BLOCK)
        keep, px1, py1, px2, py2, tx1, ty1, tx2, ty2 = _load_pairs(
            pred, target, lengths, at, n, SLOTS, COUNTED, compute
        )
        _, _, _, _, inter, union, outer = _areas(px1, py1, px2, py2, tx1, ty1, tx2, ty2)
        giou = inter / (union + EPS) - (outer - union) / (outer + EPS)
        total += tl.where(keep, 1 - giou, 0)
        count += keep.to(tl.int32)
    tl.store(sums + tl.program_id(0), tl.sum(total))
    tl.store(counts + tl.program_id(0), tl.sum(count))

    # A program's partials are written before it draws its ticket. Who draws the last one finds them
    # all, past the first-level cache, and puts the tickets back for the next launch.
    tl.debug_barrier()
    if tl.atomic_add(finished, 1, sem="acq_rel") == tl.num_programs(0) - 1:
        each = tl.arange(0, MOST_PROGRAMS)
        written = each < tl.num_programs(0)
        all_sums = tl.load(sums + each, mask=written, other=0, cache_modifier=".cg")
        all_counts = tl.load(counts + each, mask=written, other=0, cache_modifier=".cg")
        counted = tl.maximum(tl.sum(all_counts), 1).to(compute)
        tl.store(loss, tl.sum(all_sums) / counted)
        tl.store(scale, 1 / counted)
        tl.store(finished, 0)


@triton.jit
def _weight(one, other):
    """How much of max(one, other) moves with `one`: all, nothing, or half at a tie."""
    return tl.where(one > other, 1.0, tl.where(one == other, 0.5, 0.0)).to(one.dtype)


@triton.autotune(BACKWARD_CONFIGS, key=["n", "COUNTED"], do_bench=_bench)
@triton.jit
def _backward(
    grad_loss,
    scale,
    pred,
    target,
    lengths,
    grad_pred,
    n,
    SLOTS: tl.constexpr,
    COUNTED: tl.constexpr,
    BLOCK: tl.constexpr,
):
    compute: tl.constexpr = scale.dtype.element_ty
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep, px1, py1, px2, py2, tx1, ty1, tx2, ty2 = _load_pairs(
        pred, target, lengths, at, n, SLOTS, COUNTED, compute
    )
    width, height, outer_width, outer_height, inter, union, outer = _areas(
        px1, py1, px2, py2, tx1, ty1, tx2, ty2
    )
    factor = tl.where(keep, tl.load(grad_loss) * tl.load(scale), 0)
    by_union = factor * (inter / (union + EPS) / (union + EPS) - 1 / (outer + EPS))
    by_inter = -factor / (union + EPS) - by_union
    by_outer = factor * (union + EPS) / (outer + EPS) / (outer + EPS)

    pred_height, pred_width = by_union * (py2 - py1), by_union * (px2 - px1)
    height, width = by_inter * height, by_inter * width
    outer_height, outer_width = by_outer * outer_height, by_outer * outer_width
    x1 = -pred_height - _weight(px1, tx1) * height - _weight(tx1, px1) * outer_height
    y1 = -pred_width - _weight(py1, ty1) * width - _weight(ty1, py1) * outer_width
    x2 = pred_height + _weight(tx2, px2) * height + _weight(px2, tx2) * outer_height
    y2 = pred_width + _weight(ty2, py2) * width + _weight(py2, ty2) * outer_width

    tile = tl.reshape(tl.join(tl.join(x1, x2), tl.join(y1, y2)), (BLOCK, 4))
    elements = at[:, None] * 4 + tl.arange(0, 4)[None, :]
    inside = (at < n)[:, None]
    tl.store(grad_pred + elements, tile.to(grad_pred.dtype.element_ty), mask=inside)


@functools.cache
def _finished(device: torch.device) -> Tensor:
    # Zero between launches. Launches on one stream may share it; this benchmark uses no second.
    return torch.zeros((), dtype=torch.int32, device=device)


class _GIoULoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, pred: Tensor, target: Tensor, lengths: Tensor | None, counted: int
    ) -> Tensor:
        compute = torch.promote_types(torch.promote_types(pred.dtype, target.dtype), torch.float32)
        loss, scale = (pred.new_empty((), dtype=compute) for _ in range(2))
        sums = pred.new_empty(MOST_PROGRAMS.value, dtype=compute)
        counts = pred.new_empty(MOST_PROGRAMS.value, dtype=torch.int32)
        n = pred.numel() // 4

        def grid(config: dict[str, int]) -> tuple[int]:
            return (min(triton.cdiv(n, config["BLOCK"]), config["programs"]),)

        finished = _finished(pred.device)
        sizes = {"SLOTS": pred.shape[-2], "COUNTED": counted}
        _forward[grid](pred, target, lengths, sums, counts, finished, loss, scale, n, **sizes)
        ctx.save_for_backward(scale, pred, target, lengths)
        ctx.sizes = sizes
        return loss

    @staticmethod
    def backward(ctx: Any, grad_loss: Tensor) -> tuple[Tensor, None, None, None]:
        scale, pred, target, lengths = ctx.saved_tensors
        grad_pred = torch.empty_like(pred)
        n = pred.numel() // 4

        def grid(config: dict[str, int]) -> tuple[int]:
            return (triton.cdiv(n, config["BLOCK"]),)

        _backward[grid](grad_loss, scale, pred, target, lengths, grad_pred, n, **ctx.sizes)
        return grad_pred, None, None, None


def dense_loss(pred: Tensor, target: Tensor) -> Tensor:
    return _GIoULoss.apply(pred, target, None, DENSE.value)


def padded_loss(pred: Tensor, target: Tensor) -> Tensor:
    return _GIoULoss.apply(pred, target, None, PADDED.value)


def lengths_loss(pred: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
    return _GIoULoss.apply(pred, target, lengths, LENGTHS.value)
