# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Batch layouts for the losses, from one box tensor for each image."""

from collections.abc import Iterable, Sequence
from itertools import accumulate, chain

import torch
from torch import Tensor

from .arguments import whole


def _check_boxes(boxes: Sequence[Tensor]) -> None:
    if not hasattr(boxes, "__getitem__"):
        raise TypeError(f"boxes is {type(boxes).__name__}; it must hold one tensor for each image")
    if len(boxes) == 0:
        raise ValueError("boxes is empty: it must hold one tensor for each image, at least one")
    for i, each in enumerate(boxes):
        if not isinstance(each, Tensor):
            raise TypeError(f"boxes[{i}] is {type(each).__name__}; it must be a tensor")
        if each.dim() != 2 or each.shape[1] != 4:
            raise ValueError(f"boxes[{i}] has shape {tuple(each.shape)}; it must be (n, 4)")
        if each.dtype != boxes[0].dtype:
            raise TypeError(f"boxes[{i}] is {each.dtype}, boxes[0] is {boxes[0].dtype}")
        if each.device != boxes[0].device:
            raise RuntimeError(f"boxes[{i}] is on {each.device}, boxes[0] on {boxes[0].device}")


def on_host(numbers: Iterable[int], device: torch.device) -> Tensor:
    """int64, on the CPU, in memory that can be copied to `device` asynchronously."""
    return torch.tensor(
        list(numbers), dtype=torch.int64, device="cpu", pin_memory=device.type == "cuda"
    )


def collate_ragged(boxes: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """All images' boxes in one list, for giou_loss(..., offsets=offsets).

    Args:
        boxes: one (n, 4) tensor for each image; n may be 0. One dtype, one device.

    Returns:
        The boxes (T, 4) and the offsets (images + 1), int64: image b owns rows offsets[b] to
        offsets[b + 1]. No synchronization with a GPU.

    Raises:
        ValueError: boxes is empty; a bad shape. TypeError: no tensor, or several dtypes.
        RuntimeError: several devices.
    """
    _check_boxes(boxes)
    device = boxes[0].device
    offsets = on_host(accumulate(map(len, boxes), initial=0), device)
    return torch.cat(list(boxes)), offsets.to(device, non_blocking=True)


def collate_padded(boxes: Sequence[Tensor], slots: int | None = None) -> tuple[Tensor, Tensor]:
    """A zero-padded batch, for giou_loss(..., lengths=lengths) or giou_loss(..., zero_padded=True).

    Args:
        boxes: one (n, 4) tensor for each image; n may be 0. One dtype, one device.
        slots: the batch's second dimension; the largest n when not given.

    Returns:
        The boxes (images, slots, 4) and the lengths (images), int64. No synchronization with a
        GPU.

    Raises:
        ValueError: boxes is empty; a bad shape; an image has more boxes than slots. TypeError: no
            tensor, or several dtypes; slots is no integer. RuntimeError: several devices.
    """
    _check_boxes(boxes)
    counts = list(map(len, boxes))
    most = max(counts)
    slots = most if slots is None else whole(slots, "slots")
    if most > slots:
        crowded = next(i for i, count in enumerate(counts) if count > slots)
        raise ValueError(f"boxes[{crowded}] has {counts[crowded]} boxes; slots is {slots}")
    # One copy of everything: a copy for each image takes several times as long.
    empty = [slots - count for count in counts]
    zeros = boxes[0].new_zeros((sum(empty), 4)).split(empty)
    images = zip(boxes, zeros, strict=True)
    padded = torch.cat([*chain.from_iterable(images)]).view(len(boxes), slots, 4)
    return padded, on_host(counts, padded.device).to(padded.device, non_blocking=True)
