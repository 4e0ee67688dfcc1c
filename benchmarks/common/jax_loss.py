# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The masked GIoU loss by jax.jit, over torch's memory: what XLA makes of the formula."""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import Tensor

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # torch needs memory, too

import jax
import jax.numpy as jnp

from .losses import EPS

jax.devices()  # starts it, which may leave another GPU the current one
jax.config.update("jax_enable_x64", True)  # lengths are int64; the formula says float32 itself


def giou(pred: Any, target: Any) -> Any:
    px1, py1, px2, py2 = jnp.moveaxis(pred, -1, 0)
    tx1, ty1, tx2, ty2 = jnp.moveaxis(target, -1, 0)
    width = jnp.minimum(px2, tx2) - jnp.maximum(px1, tx1)
    height = jnp.minimum(py2, ty2) - jnp.maximum(py1, ty1)
    overlap = jnp.where((width > 0) & (height > 0), width * height, 0)
    areas = (px2 - px1) * (py2 - py1) + (tx2 - tx1) * (ty2 - ty1)
    union = jnp.maximum(areas - overlap, EPS)
    outer_width = jnp.maximum(px2, tx2) - jnp.minimum(px1, tx1)
    outer_height = jnp.maximum(py2, ty2) - jnp.minimum(py1, ty1)
    enclosing = jnp.maximum(outer_width * outer_height, EPS)
    return overlap / union - (enclosing - union) / enclosing


def loss(pred: Any, target: Any, lengths: Any) -> Any:
    """The mean GIoU loss of each image's first boxes, of (images, slots, 4)."""
    counts = jnp.arange(pred.shape[1]) < lengths[:, None]
    # Both selections are needed, as in the eager loss.
    guesses = jnp.where(counts[..., None], pred.astype(jnp.float32), 0)
    losses = jnp.where(counts, 1 - giou(guesses, target.astype(jnp.float32)), 0)
    total = jnp.sum(losses, dtype=jnp.float32)
    return total / jnp.maximum(lengths.sum(), 1).astype(jnp.float32)


_forward = jax.jit(loss)


@jax.jit
def _backward(upstream: Any, pred: Any, target: Any, lengths: Any) -> Any:
    return jax.grad(lambda guesses: upstream * loss(guesses, target, lengths))(pred)


def _in_jax(*tensors: Tensor) -> list[Any]:
    if tensors[0].is_cuda:
        torch.cuda.set_device(tensors[0].device)  # or torch would not hand them over
    return [jax.dlpack.from_dlpack(each.detach()) for each in tensors]


class _MaskedLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pred: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
        ctx.save_for_backward(pred, target, lengths)
        return torch.from_dlpack(_forward(*_in_jax(pred, target, lengths)))

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None, None]:
        saved = _in_jax(upstream, *ctx.saved_tensors)
        return torch.from_dlpack(_backward(*saved)), None, None


def masked_loss(pred: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
    """As the eager loss of that name."""
    return _MaskedLoss.apply(pred, target, lengths)
